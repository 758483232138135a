// An outside program that knows only the installed package.
#include "accrue/accrue.h"

#include <cstdio>

int main() {
  std::printf("%s\n", accrue::name_of(accrue::DType::float32));
  return 0;
}
