// All optimizers, clipping and schedules.
#pragma once

#include "accrue/optim/adagrad.h"
#include "accrue/optim/adam.h"
#include "accrue/optim/adamw.h"
#include "accrue/optim/chained_schedules.h"
#include "accrue/optim/clip.h"
#include "accrue/optim/grad_scaler.h"
#include "accrue/optim/one_cycle.h"
#include "accrue/optim/optimizer.h"
#include "accrue/optim/parameter_list.h"
#include "accrue/optim/plateau.h"
#include "accrue/optim/rmsprop.h"
#include "accrue/optim/schedule.h"
#include "accrue/optim/sgd.h"
#include "accrue/optim/warmup_schedules.h"
