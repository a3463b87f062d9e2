# Which backends are built. Each has an option Microscale_ENABLE_<NAME> = AUTO | ON | OFF. To add a backend, give it a
# branch in microscale_check_backend below and a folder in backends/, as docs/adding_a_backend.md says.

set(MICROSCALE_BACKENDS AVX512 SM90 SM100 CDNA4 CUBLASLT HIPBLASLT) # in order of preference
set(MICROSCALE_ENABLED_BACKENDS "") # lower-case names of those that are built, in the same order
set(MICROSCALE_TARGETS avx512 sm90 sm100 cdna4) # those with a target in dispatch/, which plans without kernels too

# What the AVX-512 kernels are compiled with. The list of CPU features in backends/avx512 says the same.
set(MICROSCALE_AVX512_OPTIONS -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vbmi -mavx512vnni -mavx512bf16 -mfma -mavx2
                              -mf16c -mbmi2)

# Sets <missing> to why <backend> cannot be built here, or to nothing if it can.
function(microscale_check_backend backend missing)
  set(why "not written yet")
  if(backend STREQUAL "AVX512")
    include(CheckCXXCompilerFlag)
    string(REPLACE ";" " " flags "${MICROSCALE_AVX512_OPTIONS}")
    check_cxx_compiler_flag("${flags}" MICROSCALE_COMPILER_HAS_AVX512)
    set(why "")
    if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
      set(why "for x86-64, and this is ${CMAKE_SYSTEM_PROCESSOR}")
    elseif(NOT MICROSCALE_COMPILER_HAS_AVX512)
      set(why "beyond this compiler: ${flags}")
    endif()
  endif()
  set(${missing} "${why}" PARENT_SCOPE)
endfunction()

set(MICROSCALE_BACKEND_SUMMARY "")
set(MICROSCALE_BACKEND_MACROS "")
foreach(backend IN LISTS MICROSCALE_BACKENDS)
  set(option Microscale_ENABLE_${backend})
  set(${option} AUTO CACHE STRING "Build the ${backend} backend: AUTO, ON or OFF")
  set_property(CACHE ${option} PROPERTY STRINGS AUTO ON OFF)
  string(TOLOWER ${backend} name)

  microscale_check_backend(${backend} missing)
  set(reason "") # why it is not built
  if(${option} STREQUAL "AUTO")
    set(reason "${missing}")
  elseif(NOT ${option})
    set(reason "${option}=${${option}}")
  elseif(missing)
    message(FATAL_ERROR "${option}=${${option}} cannot be met: the ${name} backend is ${missing}.")
  endif()
  if(NOT reason STREQUAL "")
    set(state "off (${reason})")
    set(MICROSCALE_BACKEND_OFF_${name} "${reason}")
    string(APPEND MICROSCALE_BACKEND_MACROS "/* #undef MICROSCALE_ENABLE_BACKEND_${backend} */\n")
  else()
    set(state "on")
    list(APPEND MICROSCALE_ENABLED_BACKENDS ${name})
    string(APPEND MICROSCALE_BACKEND_MACROS "#define MICROSCALE_ENABLE_BACKEND_${backend}\n")
  endif()
  list(APPEND MICROSCALE_BACKEND_SUMMARY "  backend ${name}: ${state}")
endforeach()

# microscale_add_backend(<name> SOURCES <file>... [OPTIONS <flag>...] [LIBRARIES <target>...] [PRIVATE_TO_TESTS])
#
# The library microscale_backend_<name> from sources of its own flags, without Kokkos, that define
# microscale::backend_<name>::kernels(), or, for a backend without a target in dispatch/,
# microscale::backend_<name>::backend(). It sees formats/ and the interface in dispatch/.
function(microscale_add_backend name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "PRIVATE_TO_TESTS" "" "SOURCES;OPTIONS;LIBRARIES")
  set(target microscale_backend_${name})
  add_library(${target} STATIC ${arg_SOURCES})
  target_link_libraries(${target} PUBLIC microscale_formats PRIVATE ${arg_LIBRARIES})
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/dispatch")
  target_compile_options(${target} PRIVATE "$<$<COMPILE_LANG_AND_ID:CXX,GNU,Clang,AppleClang>:-ffp-contract=off>"
                                           ${arg_OPTIONS})
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  microscale_set_warnings(${target})
  if(NOT arg_PRIVATE_TO_TESTS)
    install(TARGETS ${target} EXPORT MicroscaleTargets)
  endif()
endfunction()

# microscale_add_avx512_kernels(<name> OPTIONS <flag>... [PRIVATE_TO_TESTS])
#
# A library of the sources in backends/avx512: for the processor, or, with other options, for the model of it that tests
# run on. The options go to the sources with vector code only.
function(microscale_add_avx512_kernels name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "PRIVATE_TO_TESTS" "" "OPTIONS")
  set(folder "${PROJECT_SOURCE_DIR}/backends/avx512")
  set(plain "${folder}/Avx512_Backend.cpp" "${folder}/Avx512_Cpu.cpp")
  file(GLOB sources CONFIGURE_DEPENDS "${folder}/*.cpp")
  list(REMOVE_ITEM sources ${plain})
  set(vectors microscale_backend_${name}_vectors)
  add_library(${vectors} OBJECT ${sources})
  set(private "")
  if(arg_PRIVATE_TO_TESTS)
    set(private PRIVATE_TO_TESTS)
  endif()
  microscale_add_backend(${name} SOURCES ${plain} $<TARGET_OBJECTS:${vectors}> ${private})
  target_include_directories(${vectors} PRIVATE "${PROJECT_SOURCE_DIR}/dispatch" "${folder}")
  target_include_directories(microscale_backend_${name} PRIVATE "${folder}")
  target_link_libraries(${vectors} PRIVATE microscale_formats)
  target_compile_options(
    ${vectors} PRIVATE "$<$<COMPILE_LANG_AND_ID:CXX,GNU,Clang,AppleClang>:-ffp-contract=off>" ${arg_OPTIONS})
  set_target_properties(${vectors} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  microscale_set_warnings(${vectors})
endfunction()

# microscale_write_backend_list(<file> <name>...)
#
# Generates the list of the named backends, in this order, for dispatch. Those for which MICROSCALE_BACKEND_OFF_<name>
# gives a reason are listed with it and not linked. MICROSCALE_BACKEND_KERNELS_<name> names another library than
# <name> that has the kernels of a target.
function(microscale_write_backend_list file)
  set(MICROSCALE_BACKEND_DECLARATIONS "")
  set(MICROSCALE_BACKEND_ENTRIES "")
  foreach(name IN LISTS ARGN)
    set(off "${MICROSCALE_BACKEND_OFF_${name}}")
    string(REPLACE "\\" "\\\\" off "${off}")
    string(REPLACE "\"" "\\\"" off "${off}")
    set(library ${name})
    if(DEFINED MICROSCALE_BACKEND_KERNELS_${name})
      set(library ${MICROSCALE_BACKEND_KERNELS_${name}})
    endif()
    set(function backend)
    if(name IN_LIST MICROSCALE_TARGETS)
      set(function kernels)
    endif()
    set(object nullptr)
    if(NOT DEFINED MICROSCALE_BACKEND_OFF_${name})
      set(object "&microscale::backend_${library}::${function}()")
      set(type Backend)
      if(function STREQUAL "kernels")
        set(type Kernels)
      endif()
      string(APPEND MICROSCALE_BACKEND_DECLARATIONS
             "namespace microscale::backend_${library} {\nconst ${type}& ${function}();\n}\n")
    endif()
    if(name IN_LIST MICROSCALE_TARGETS)
      set(object "&${name}_target(${object})")
    endif()
    string(APPEND MICROSCALE_BACKEND_ENTRIES "      {\"${name}\", ${object}, \"${off}\"},\n")
  endforeach()
  configure_file("${PROJECT_SOURCE_DIR}/dispatch/Microscale_BackendList.cpp.in" "${file}")
endfunction()

# Prints what was found and what will be built, with the reason for every backend that is off.
function(microscale_print_summary)
  message(STATUS "Microscale ${PROJECT_VERSION}")
  message(STATUS "  Kokkos ${Kokkos_VERSION}: ${Kokkos_DEVICES} (${Kokkos_DIR})")
  message(STATUS "  backend reference: on (always)")
  foreach(line IN LISTS MICROSCALE_BACKEND_SUMMARY)
    message(STATUS "${line}")
  endforeach()
  foreach(part IN ITEMS TESTS BENCHMARKS TOOLS EXAMPLES)
    string(TOLOWER ${part} label)
    message(STATUS "  ${label}: ${Microscale_ENABLE_${part}}")
  endforeach()
endfunction()
