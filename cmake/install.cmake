# accrue::accrue (all folders) and the package that find_package(accrue) reads.
include(CMakePackageConfigHelpers)

add_library(accrue INTERFACE)
add_library(accrue::accrue ALIAS accrue)
list(TRANSFORM ACCRUE_LAYERS PREPEND accrue:: OUTPUT_VARIABLE all_layers)
target_link_libraries(accrue INTERFACE ${all_layers})

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/accrue)
install(TARGETS accrue EXPORT accrue-targets)
install(FILES ${PROJECT_SOURCE_DIR}/accrue.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/accrue)
install(EXPORT accrue-targets NAMESPACE accrue:: DESTINATION ${package_dir})
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/accrue-config-version.cmake COMPATIBILITY SameMinorVersion)
configure_file(${PROJECT_SOURCE_DIR}/cmake/accrue-config.cmake.in
               ${PROJECT_BINARY_DIR}/accrue-config.cmake @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/accrue-config.cmake
              ${PROJECT_BINARY_DIR}/accrue-config-version.cmake DESTINATION ${package_dir})
