// The data layer in one include: data sets, collating, loaders and window plans.
#pragma once

#include "accrue/data/collate.h"
#include "accrue/data/data_loader.h"
#include "accrue/data/dataset.h"
#include "accrue/data/tensor_dataset.h"
#include "accrue/data/window_plan.h"
