# Which backends are built. Each has an option Microscale_ENABLE_<NAME> = AUTO | ON | OFF. To add a backend, give it a
# branch in microscale_check_backend below and a folder in backends/.

set(MICROSCALE_BACKENDS AVX512 SM90 SM100 CDNA4 CUBLASLT HIPBLASLT) # in order of preference
set(MICROSCALE_ENABLED_BACKENDS "") # lower-case names of those that are built, in the same order

# Sets <missing> to why <backend> cannot be built here, or to nothing if it can.
function(microscale_check_backend backend missing)
  set(${missing} "not written yet" PARENT_SCOPE)
endfunction()

set(MICROSCALE_BACKEND_SUMMARY "")
set(MICROSCALE_BACKEND_MACROS "")
foreach(backend IN LISTS MICROSCALE_BACKENDS)
  set(option Microscale_ENABLE_${backend})
  set(${option} AUTO CACHE STRING "Build the ${backend} backend: AUTO, ON or OFF")
  set_property(CACHE ${option} PROPERTY STRINGS AUTO ON OFF)
  string(TOLOWER ${backend} name)

  microscale_check_backend(${backend} missing)
  set(enabled 0)
  if(${option} STREQUAL "AUTO")
    if(missing)
      set(state "off (${missing})")
    else()
      set(enabled 1)
    endif()
  elseif(${option})
    if(missing)
      message(FATAL_ERROR "${option}=${${option}} cannot be met: the ${name} backend is ${missing}.")
    endif()
    set(enabled 1)
  else()
    set(state "off (${option}=${${option}})")
  endif()
  if(enabled)
    set(state "on")
    list(APPEND MICROSCALE_ENABLED_BACKENDS ${name})
    string(APPEND MICROSCALE_BACKEND_MACROS "#define MICROSCALE_ENABLE_BACKEND_${backend}\n")
  else()
    string(APPEND MICROSCALE_BACKEND_MACROS "/* #undef MICROSCALE_ENABLE_BACKEND_${backend} */\n")
  endif()
  list(APPEND MICROSCALE_BACKEND_SUMMARY "  backend ${name}: ${state}")
endforeach()

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
