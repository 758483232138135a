// The trainer: what joins models, optimizers, schedules and loaders.
#pragma once

#include "accrue/train/accelerator.h"
#include "accrue/train/distributed_data_parallel.h"
#include "accrue/train/evaluation.h"
#include "accrue/train/stop_signal.h"
