// The whole of core in one include.
#pragma once

#include "accrue/core/allocator.h"
#include "accrue/core/bits.h"
#include "accrue/core/counter_generator.h"
#include "accrue/core/device.h"
#include "accrue/core/dtype.h"
#include "accrue/core/error.h"
#include "accrue/core/generator.h"
#include "accrue/core/lanes.h"
#include "accrue/core/print.h"
#include "accrue/core/sample_axis.h"
#include "accrue/core/shape.h"
#include "accrue/core/size2.h"
#include "accrue/core/storage.h"
#include "accrue/core/strided.h"
#include "accrue/core/tensor.h"
#include "accrue/core/tree_node.h"
