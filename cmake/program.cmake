# accrue_program(): a program of bench/. accrue_peer(): a benchmark against another library.
find_package(fmt REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)

# accrue_program(<name> a.cpp ...): <build>/bench/<name>, linked to the whole library and to
# accrue_programs, what programs share.
function(accrue_program name)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE accrue_programs)
endfunction()

# accrue_peer(<name> HEADER <h> [HEADER_FOLDERS ...] LIBRARIES <lib>... SOURCES a.cpp ...): a program
# built on request (./dev bench) and only where the peer is installed.
function(accrue_peer name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "HEADER" "HEADER_FOLDERS;LIBRARIES;SOURCES")
  find_path(${name}_INCLUDE ${arg_HEADER})
  set(found ${${name}_INCLUDE})
  set(libraries "")
  foreach(library IN LISTS arg_LIBRARIES)
    find_library(${name}_${library} ${library})
    list(APPEND libraries ${${name}_${library}})
    set(found "${found};${${name}_${library}}")
  endforeach()
  if(found MATCHES "NOTFOUND")
    message(STATUS "${name}: left out, needs ${arg_HEADER} and ${arg_LIBRARIES}")
    return()
  endif()
  accrue_program(${name} ${arg_SOURCES})
  set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL TRUE)
  list(TRANSFORM arg_HEADER_FOLDERS PREPEND ${${name}_INCLUDE}/ OUTPUT_VARIABLE folders)
  target_include_directories(${name} SYSTEM PRIVATE ${${name}_INCLUDE} ${folders})
  target_link_libraries(${name} PRIVATE ${libraries})
endfunction()
