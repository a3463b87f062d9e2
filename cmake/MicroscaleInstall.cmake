# Installs the package: find_package(Microscale) gives Microscale::microscale and what it stands on.
include(CMakePackageConfigHelpers)

set(_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/Microscale")

install(FILES "${MICROSCALE_GENERATED_DIR}/Microscale_Config.hpp" DESTINATION "${MICROSCALE_INSTALL_INCLUDEDIR}")
install(EXPORT MicroscaleTargets NAMESPACE Microscale:: DESTINATION "${_package_dir}")
configure_package_config_file(cmake/MicroscaleConfig.cmake.in "${CMAKE_CURRENT_BINARY_DIR}/MicroscaleConfig.cmake"
                              INSTALL_DESTINATION "${_package_dir}")
write_basic_package_version_file("${CMAKE_CURRENT_BINARY_DIR}/MicroscaleConfigVersion.cmake"
                                 COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/MicroscaleConfig.cmake"
              "${CMAKE_CURRENT_BINARY_DIR}/MicroscaleConfigVersion.cmake" DESTINATION "${_package_dir}")
