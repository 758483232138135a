// The dist layer in one include: process groups, collectives, ordered sums, buckets.
#pragma once

#include "accrue/dist/bucketer.h"
#include "accrue/dist/call.h"
#include "accrue/dist/process_group.h"
#include "accrue/dist/ring.h"
#include "accrue/dist/sum_nodes.h"
#include "accrue/dist/threads.h"
#include "accrue/dist/world.h"
