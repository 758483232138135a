# accrue_module(): one target per folder, linked by the table of layers.

# Includes read "accrue/<folder>/<file>.h" inside the tree too, through this link.
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/include)
file(CREATE_LINK ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/include/accrue SYMBOLIC)

# What every user of a folder needs: the include path, C++20 and uncontracted arithmetic, since
# headers hold arithmetic whose bits are promised.
function(accrue_usage target scope)
  target_include_directories(
    ${target} ${scope} $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>
                       $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_compile_features(${target} ${scope} cxx_std_20)
  target_compile_options(${target} ${scope} $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>)
endfunction()

# Compiles `sources` for one instruction set. They put their code into namespace ACCRUE_ISA and keep
# every function with a body inside it, so that nothing compiled for AVX2 is linked into portable code.
function(accrue_isa module isa sources)
  set(target accrue_${module}_${isa})
  add_library(${target} OBJECT ${sources})
  accrue_usage(${target} PUBLIC)
  target_compile_definitions(${target} PRIVATE ACCRUE_ISA=${isa})
  target_compile_options(${target} PRIVATE -fno-math-errno ${ARGN})
  target_sources(accrue_${module} PRIVATE $<TARGET_OBJECTS:${target}>)
endfunction()

# accrue_module(<folder> HEADERS ... SOURCES ... [ISA_SOURCES ...] [AVX512_SOURCES ...])
# HEADERS are public and installed; ISA_SOURCES are compiled once per instruction set, those of them
# that AVX512_SOURCES repeats for AVX-512 too.
function(accrue_module name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "HEADERS;SOURCES;ISA_SOURCES;AVX512_SOURCES")
  set(target accrue_${name})
  if(arg_SOURCES OR arg_ISA_SOURCES)
    add_library(${target} STATIC ${arg_SOURCES})
    set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX)
    set(scope PUBLIC)
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  endif()
  add_library(accrue::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  accrue_usage(${target} ${scope})
  list(TRANSFORM ACCRUE_MAY_USE_${name} PREPEND accrue:: OUTPUT_VARIABLE layers)
  target_link_libraries(${target} ${scope} ${layers} Threads::Threads)

  if(arg_ISA_SOURCES)
    accrue_isa(${name} portable "${arg_ISA_SOURCES}" -Wno-psabi)
    if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
      accrue_isa(${name} avx2 "${arg_ISA_SOURCES}" -mavx2 -mfma)
      accrue_isa(${name} avx512 "${arg_AVX512_SOURCES}" -mavx2 -mfma -mavx512f -mavx512vl -mprefer-vector-width=512)
      target_compile_definitions(${target} PRIVATE ACCRUE_HAS_AVX2)
    endif()
  endif()

  foreach(header IN LISTS arg_HEADERS)
    cmake_path(GET header PARENT_PATH subfolder)
    install(FILES ${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/accrue/${name}/${subfolder})
    if(header MATCHES "\\.h$") # not the .def lists, which mean nothing alone
      set_property(GLOBAL APPEND PROPERTY ACCRUE_PUBLIC_HEADERS ${name}/${header})
    endif()
  endforeach()
  install(TARGETS ${target} EXPORT accrue-targets)
endfunction()
