// All modules, layers and losses.
#pragma once

#include "accrue/nn/activation.h"
#include "accrue/nn/attention.h"
#include "accrue/nn/conv2d.h"
#include "accrue/nn/dropout.h"
#include "accrue/nn/embedding.h"
#include "accrue/nn/flatten.h"
#include "accrue/nn/init.h"
#include "accrue/nn/layer.h"
#include "accrue/nn/linear.h"
#include "accrue/nn/loss.h"
#include "accrue/nn/module.h"
#include "accrue/nn/norm.h"
#include "accrue/nn/pool2d.h"
#include "accrue/nn/sequential.h"
#include "accrue/nn/transformer.h"
