// The whole library in one include.
#pragma once

#include "accrue/autograd/autograd.h"
#include "accrue/core/core.h"
#include "accrue/data/data.h"
#include "accrue/dist/dist.h"
#include "accrue/nn/nn.h"
#include "accrue/optim/optim.h"
#include "accrue/train/train.h"
