// device_named(): the device that a command line or a variable of the environment names.
#pragma once

#include "accrue/core/device.h"

#include <optional>
#include <string_view>

namespace accrue {

/// cpu, cuda (the first) or cuda:N; nothing for another name. Whether it exists is not asked.
std::optional<Device> device_named(std::string_view name);

}  // namespace accrue
