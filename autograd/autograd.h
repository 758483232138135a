// Variables, the graph, the operations on it, and windows.
#pragma once

#include "accrue/autograd/grad_mode.h"
#include "accrue/autograd/gradcheck.h"
#include "accrue/autograd/loss.h"
#include "accrue/autograd/ops/binary.h"
#include "accrue/autograd/ops/compare.h"
#include "accrue/autograd/ops/extremum.h"
#include "accrue/autograd/ops/index.h"
#include "accrue/autograd/ops/layer_norm.h"
#include "accrue/autograd/ops/linear.h"
#include "accrue/autograd/ops/losses.h"
#include "accrue/autograd/ops/reduce.h"
#include "accrue/autograd/ops/softmax.h"
#include "accrue/autograd/ops/unary.h"
#include "accrue/autograd/ops/views.h"
#include "accrue/autograd/variable.h"
#include "accrue/autograd/window.h"
