# accrue_test(): one test program per folder, one ctest entry per test file. accrue_check(): others.
# accrue_on_device(): those of a folder on a device, too.
# accrue_device_test(): programs that run CUDA kernels.
find_package(doctest REQUIRED)
find_package(rapidcheck REQUIRED)
find_package(Eigen3 REQUIRED)

# accrue_check(<label>.<name> <command>...)
function(accrue_check name)
  add_test(NAME ${name} COMMAND ${ARGN})
  string(REGEX REPLACE "\\..*" "" label ${name})
  set_tests_properties(${name} PROPERTIES LABELS ${label})
endfunction()

# accrue_test(<folder> a_test.cpp ...): entries <folder>.a ..., labelled <folder>. The program links
# the layer of that name and what it uses, or all layers for other folders.
function(accrue_test folder)
  list(TRANSFORM ARGN PREPEND ${PROJECT_SOURCE_DIR}/tests/${folder}/ OUTPUT_VARIABLE sources)
  add_executable(test_${folder} ${sources})
  set(layer accrue)
  if(folder IN_LIST ACCRUE_LAYERS)
    set(layer ${folder})
  endif()
  target_link_libraries(test_${folder} PRIVATE accrue_test_main accrue::${layer})
  if(ACCRUE_SANITIZE AND NOT folder STREQUAL "kernels") # checks take longest to compile, not to run
    target_compile_options(test_${folder} PRIVATE -O0)
  endif()
  list(TRANSFORM ARGN REPLACE "_test\\.cpp$" "" OUTPUT_VARIABLE names)
  set_target_properties(test_${folder} PROPERTIES ACCRUE_TEST_NAMES "${names}")
  foreach(name IN LISTS names)
    accrue_check(${folder}.${name} test_${folder} --source-file=*/${folder}/${name}_test.cpp)
  endforeach()
endfunction()

function(accrue_needed_by_device_tests target)
  if(NOT TARGET device_tests)
    add_custom_target(device_tests)
  endif()
  add_dependencies(device_tests ${target})
endfunction()

# accrue_on_device(<folder> [EXCEPT <name>...]): the tests of accrue_test() once more, with their
# tensors on a device of the simulator (tests/support/device.h): entries <folder>.<name>_on_device.
# Cases that need the CPU are listed in tests/support/cpu_only.h. The host must not touch a device's
# memory, which AddressSanitizer sees; ThreadSanitizer runs what has threads.
function(accrue_on_device folder)
  set(under_threads data train)
  if(NOT ACCRUE_CUDA STREQUAL "simulated"
     OR (ACCRUE_SANITIZE AND folder STREQUAL "sweeps")
     OR (ACCRUE_SANITIZE STREQUAL "thread" AND NOT folder IN_LIST under_threads))
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" EXCEPT)
  target_link_libraries(test_${folder} PRIVATE accrue_cuda)
  accrue_needed_by_device_tests(test_${folder})
  get_target_property(names test_${folder} ACCRUE_TEST_NAMES)
  list(REMOVE_ITEM names ${arg_EXCEPT})
  foreach(name IN LISTS names)
    accrue_check(${folder}.${name}_on_device test_${folder} --source-file=*/${folder}/${name}_test.cpp)
    set_tests_properties(
      ${folder}.${name}_on_device PROPERTIES LABELS "${folder};device" SKIP_RETURN_CODE 77
      ENVIRONMENT "ACCRUE_TEST_DEVICE=1;ACCELERATE_TORCH_DEVICE=cuda;ACCRUE_QUICK=1")
  endforeach()
endfunction()

# accrue_device_test(<folder> TESTS a_test.cpp ... [SOURCES b.cpp ...] LINK <target>...): tests of
# device code. They link no more than they need, so that sanitized builds are short; the target
# device_tests builds and the label device runs them.
function(accrue_device_test folder)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LINK;TESTS;SOURCES")
  set(sources ${arg_TESTS} ${arg_SOURCES})
  list(TRANSFORM sources PREPEND ${PROJECT_SOURCE_DIR}/tests/${folder}/)
  add_executable(test_${folder} ${sources})
  target_link_libraries(test_${folder} PRIVATE accrue_test_main ${arg_LINK})
  accrue_needed_by_device_tests(test_${folder})
  foreach(file IN LISTS arg_TESTS)
    string(REGEX REPLACE "_test\\.cpp$" "" name ${file})
    accrue_check(${folder}.${name} test_${folder} --source-file=*/${folder}/${file})
    set_tests_properties(${folder}.${name} PROPERTIES LABELS "${folder};device")
  endforeach()
endfunction()
