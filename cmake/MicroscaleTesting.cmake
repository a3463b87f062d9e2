# How a test is added. In the CMakeLists.txt of a folder of tests/:
#
#   microscale_add_test(NAME quantize SOURCES Test_Quantize.cpp)
#   microscale_add_plain_test(NAME element SOURCES Test_Element.cpp)
#
# Both make an executable test_<name> of GoogleTest tests and the ctest <name>. The first initialises Kokkos and links
# Microscale::microscale; the second has no Kokkos and links Microscale::dispatch, and so formats.
#
#   microscale_add_operation_test(NAME quantize SOURCES Test_Quantize.cpp)
#
# is for tests of operations that know nothing of backends. They run once on every one (tests/support/BackendUnderTest.hpp):
# <name> without what the processor adds, that is on the reference; <name>_avx512 if the processor has AVX-512;
# <name>_avx512_model on the model of it (tests/device_model/avx512) anywhere.

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

# microscale_add_operation_test(NAME <name> SOURCES <file>... [LIBRARIES <target>...])
function(microscale_add_operation_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME" "SOURCES;LIBRARIES")
  set(objects test_${arg_NAME}_objects)
  add_library(${objects} OBJECT ${arg_SOURCES})
  target_link_libraries(${objects} PRIVATE microscale_test_main ${arg_LIBRARIES})
  target_compile_definitions(${objects} PRIVATE MICROSCALE_TEST_GOLDEN_DIR="${PROJECT_SOURCE_DIR}/tests/golden")
  target_precompile_headers(${objects} REUSE_FROM microscale_test_main)
  microscale_set_warnings(${objects})

  set(environment "OMP_NUM_THREADS=2;OMP_PROC_BIND=false;OMP_WAIT_POLICY=passive")
  function(_add_run name target)
    add_test(NAME ${name} COMMAND ${target})
    set_tests_properties(${name} PROPERTIES TIMEOUT 900 SKIP_RETURN_CODE 77 ENVIRONMENT "${environment};${ARGN}")
  endfunction()
  add_executable(test_${arg_NAME} $<TARGET_OBJECTS:${objects}>)
  target_link_libraries(test_${arg_NAME} PRIVATE microscale_test_main ${arg_LIBRARIES})
  _add_run(${arg_NAME} test_${arg_NAME} MICROSCALE_AVX512=off)
  _add_run(${arg_NAME}_avx512 test_${arg_NAME} MICROSCALE_TEST_BACKEND=avx512)
  # The linker prefers a program's own list of backends to that of the library.
  add_executable(test_${arg_NAME}_avx512_model $<TARGET_OBJECTS:${objects}>
                                               $<TARGET_OBJECTS:microscale_avx512_model_list>)
  target_link_libraries(test_${arg_NAME}_avx512_model PRIVATE microscale_test_main ${arg_LIBRARIES}
                                                              microscale_backend_avx512_model)
  _add_run(${arg_NAME}_avx512_model test_${arg_NAME}_avx512_model MICROSCALE_TEST_BACKEND=avx512)
endfunction()

# microscale_add_plain_test(NAME <name> SOURCES <file>... [LIBRARIES <target>...] [LABELS <label>...])
function(microscale_add_plain_test)
  _microscale_add_gtest(MAIN microscale_test_plain_main ${ARGV})
endfunction()

# microscale_add_compile_fail_test(NAME <name> SOURCE <file> MESSAGE <regex> [CASE <macro>] [LIBRARIES <target>...])
#
# <file> compiles as it stands, and with <macro> (default MICROSCALE_COMPILE_FAIL) defined it does not: the compiler
# then reports an error whose line matches <regex>. Several tests may use one file, each with a macro of its own.
function(microscale_add_compile_fail_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;SOURCE;MESSAGE;CASE" "LIBRARIES")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_NAME OR NOT arg_SOURCE OR NOT arg_MESSAGE)
    message(FATAL_ERROR "microscale_add_compile_fail_test(NAME <name> SOURCE <file> MESSAGE <regex> [CASE <macro>]"
                        " [LIBRARIES <target>...])")
  endif()
  if(NOT arg_CASE)
    set(arg_CASE MICROSCALE_COMPILE_FAIL)
  endif()

  # As it stands, the source is part of the ordinary build, once however many cases it has.
  cmake_path(GET arg_SOURCE STEM source_name)
  if(NOT TARGET compile_${source_name})
    _microscale_add_compile_object(compile_${source_name})
  endif()
  _microscale_add_compile_object(compile_fail_${arg_NAME} EXCLUDE_FROM_ALL)
  target_compile_definitions(compile_fail_${arg_NAME} PRIVATE ${arg_CASE})
  microscale_add_build_test(NAME compile_fail_${arg_NAME} TARGET compile_fail_${arg_NAME})
  set_tests_properties(compile_fail_${arg_NAME} PROPERTIES PASS_REGULAR_EXPRESSION "error: [^\n]*${arg_MESSAGE}")
endfunction()

function(_microscale_add_compile_object target)
  add_library(${target} OBJECT ${ARGN} ${arg_SOURCE})
  target_link_libraries(${target} PRIVATE microscale_test_main ${arg_LIBRARIES})
  target_precompile_headers(${target} REUSE_FROM microscale_test_main)
  target_compile_definitions(${target} PRIVATE MICROSCALE_TEST_GOLDEN_DIR="${PROJECT_SOURCE_DIR}/tests/golden")
  microscale_set_warnings(${target})
endfunction()

# microscale_add_build_test(NAME <name> TARGET <target>): a test that builds a target. These run one at a time, since
# the build tool keeps its notes in one place, and carry the label "build".
function(microscale_add_build_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;TARGET" "")
  add_test(NAME ${arg_NAME} COMMAND ${CMAKE_COMMAND} --build ${CMAKE_BINARY_DIR} --config $<CONFIG> --target
                                    ${arg_TARGET})
  set_tests_properties(${arg_NAME} PROPERTIES LABELS build RESOURCE_LOCK build TIMEOUT 900)
endfunction()
