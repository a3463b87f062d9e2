# How Microscale's own targets are made.

set(MICROSCALE_GENERATED_DIR "${CMAKE_CURRENT_BINARY_DIR}/generated")
set(MICROSCALE_INSTALL_INCLUDEDIR "${CMAKE_INSTALL_INCLUDEDIR}/Microscale")

# microscale_add_library(<target> STATIC|INTERFACE)
#
# A library of the project, to users Microscale::<target without microscale_>, whose public headers are the
# *.hpp files of the calling folder and, if STATIC, whose sources are its *.cpp files.
function(microscale_add_library target type)
  string(REGEX REPLACE "^microscale_" "" name ${target})
  set(usage INTERFACE)
  add_library(${target} ${type})
  add_library(Microscale::${name} ALIAS ${target})
  if(type STREQUAL STATIC)
    set(usage PUBLIC)
    file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.cpp")
    target_sources(${target} PRIVATE ${sources})
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    microscale_set_warnings(${target})
  endif()
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  target_compile_features(${target} ${usage} cxx_std_20)
  target_include_directories(
    ${target} ${usage} "$<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}>" "$<BUILD_INTERFACE:${MICROSCALE_GENERATED_DIR}>"
                       "$<INSTALL_INTERFACE:${MICROSCALE_INSTALL_INCLUDEDIR}>")
  install(TARGETS ${target} EXPORT MicroscaleTargets)
  file(GLOB headers CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.hpp")
  install(FILES ${headers} DESTINATION "${MICROSCALE_INSTALL_INCLUDEDIR}")
endfunction()

# microscale_set_warnings(<target>): the warnings under which all of Microscale's own code compiles.
function(microscale_set_warnings target)
  set(gnu_like "$<COMPILE_LANG_AND_ID:CXX,GNU,Clang,AppleClang>")
  target_compile_options(${target} PRIVATE "$<${gnu_like}:-Wall;-Wextra;-Wpedantic;-Wshadow>")
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # GCC 12 sees errors inside std::string (its bugs 105329 and 105651) and, under the address sanitizer, inside
    # std::regex (bug 105562) that are not there.
    target_compile_options(${target} PRIVATE -Wno-restrict -Wno-array-bounds -Wno-maybe-uninitialized)
  endif()
  if(Microscale_WARNINGS_AS_ERRORS)
    target_compile_options(${target} PRIVATE "$<${gnu_like}:-Werror>")
  endif()
endfunction()

# microscale_add_program(<name> SOURCES <file>... [LIBRARIES <target>...])
#
# An executable of the project (a tool, an example, a benchmark): links Microscale, starts from the build folder and,
# when installed, with the Kokkos it was linked with.
function(microscale_add_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LIBRARIES")
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE Microscale::microscale ${arg_LIBRARIES})
  if(TARGET Kokkos::kokkoscore)
    set_target_properties(${name} PROPERTIES INSTALL_RPATH "$<TARGET_FILE_DIR:Kokkos::kokkoscore>")
  endif()
  microscale_set_warnings(${name})
endfunction()
