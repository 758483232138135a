// The whole library in one include.
#pragma once

#include "accrue/core/device.h"
#include "accrue/core/dtype.h"
#include "accrue/core/error.h"
