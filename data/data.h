// The data layer in one include: data sets, collating, loaders, window plans, shards, streams.
#pragma once

#include "accrue/data/collate.h"
#include "accrue/data/data_loader.h"
#include "accrue/data/dataset.h"
#include "accrue/data/sharded_loader.h"
#include "accrue/data/shards.h"
#include "accrue/data/stream_loader.h"
#include "accrue/data/tensor_dataset.h"
#include "accrue/data/window_plan.h"
