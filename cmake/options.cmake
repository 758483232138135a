# Compiler settings for our own code. What users of the library need too is PUBLIC in module.cmake.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

find_program(ACCRUE_CCACHE ccache)
if(ACCRUE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER) # relative paths: clones share the cache
  # Presets that differ in the tests they build share objects, also those with debug information.
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
                                  ${ACCRUE_CCACHE})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()

# GCC 12 sees overlapping copies inside "text" + std::string where there are none (its bug 105651).
option(ACCRUE_WARNINGS_FAIL "Warnings are errors; not with compilers that this project has not met" ON)
set(warnings -Wall -Wextra -Wshadow -Wconversion -Wnon-virtual-dtor $<$<BOOL:${ACCRUE_WARNINGS_FAIL}>:-Werror>
             -Wno-sign-conversion $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>)
foreach(warning IN LISTS warnings) # nvcc reads neither
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:${warning}>)
endforeach()
if(ACCRUE_SANITIZE)
  list(JOIN ACCRUE_SANITIZE "," sanitizers)
  add_compile_options(-fsanitize=${sanitizers} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_compile_definitions(_GLIBCXX_ASSERTIONS)
  add_link_options(-fsanitize=${sanitizers})
endif()
