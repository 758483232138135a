// The one door to doctest for tests; main() lives in tests/main.cpp.
#pragma once

#define DOCTEST_CONFIG_SUPER_FAST_ASSERTS
#include <doctest/doctest.h>
