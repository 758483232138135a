#include "accrue/nn/pool2d.h"

namespace accrue::nn {
namespace {

/// As torch prints an option that was given as one number, where one is enough.
std::string number_or_pair(Size2 size) { return size.h == size.w ? text(size.h) : text(size); }

std::string window_str(Size2 kernel_size, Size2 stride, Size2 padding) {
  return text("kernel_size=",
              number_or_pair(kernel_size),
              ", stride=",
              number_or_pair(stride == kKernelSize ? kernel_size : stride),
              ", padding=",
              number_or_pair(padding));
}

}  // namespace

std::string MaxPool2d::options_str() const {
  return text(window_str(kernel_size_, options_.stride, options_.padding),
              ", dilation=",
              number_or_pair(options_.dilation),
              ", ceil_mode=",
              options_.ceil_mode ? "True" : "False");
}

std::string AvgPool2d::options_str() const {
  return window_str(kernel_size_, options_.stride, options_.padding);
}

}  // namespace accrue::nn
