# accrue_test(): one test program per folder, one ctest entry per test file. accrue_check(): others.
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
  foreach(file IN LISTS ARGN)
    string(REGEX REPLACE "_test\\.cpp$" "" name ${file})
    accrue_check(${folder}.${name} test_${folder} --source-file=*/${folder}/${file})
  endforeach()
endfunction()
