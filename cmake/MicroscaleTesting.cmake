# How a test is added. In the CMakeLists.txt of a folder of tests/:
#
#   microscale_add_test(NAME quantize SOURCES Test_Quantize.cpp)
#   microscale_add_plain_test(NAME element SOURCES Test_Element.cpp)
#
# Both make an executable test_<name> of GoogleTest tests and the ctest <name>. The first initialises Kokkos and links
# Microscale::microscale; the second has no Kokkos and links Microscale::dispatch, and so formats.

function(_microscale_add_gtest)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;MAIN" "SOURCES;LIBRARIES;LABELS")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_NAME OR NOT arg_SOURCES)
    message(FATAL_ERROR "microscale_add_test(NAME <name> SOURCES <file>... [LIBRARIES <target>...] [LABELS <label>...])")
  endif()
  set(target test_${arg_NAME})
  add_executable(${target} ${arg_SOURCES})
  target_link_libraries(${target} PRIVATE ${arg_MAIN} ${arg_LIBRARIES})
  target_compile_definitions(${target} PRIVATE MICROSCALE_TEST_GOLDEN_DIR="${PROJECT_SOURCE_DIR}/tests/golden")
  target_precompile_headers(${target} REUSE_FROM ${arg_MAIN})
  microscale_set_warnings(${target})
  add_test(NAME ${arg_NAME} COMMAND ${target})
  set_tests_properties(
    ${arg_NAME} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT 900
                           ENVIRONMENT "OMP_NUM_THREADS=2;OMP_PROC_BIND=false;OMP_WAIT_POLICY=passive")
endfunction()

# microscale_add_test(NAME <name> SOURCES <file>... [LIBRARIES <target>...] [LABELS <label>...])
function(microscale_add_test)
  _microscale_add_gtest(MAIN microscale_test_main ${ARGV})
endfunction()

# microscale_add_plain_test(NAME <name> SOURCES <file>... [LIBRARIES <target>...] [LABELS <label>...])
function(microscale_add_plain_test)
  _microscale_add_gtest(MAIN microscale_test_plain_main ${ARGV})
endfunction()
