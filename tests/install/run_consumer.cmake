# Configures, builds and runs the project CONSUMER under WORK, with the compiler and flags that Microscale was built with.
# For as_package, Microscale is first installed from its build folder.
cmake_minimum_required(VERSION 3.22)

function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(REMOVE_RECURSE "${WORK}")
if(CONSUMER MATCHES "as_package$")
  set(kokkos) # the package knows it
  run(${CMAKE_COMMAND} --install "${MICROSCALE_BUILD}" --config ${BUILD_TYPE} --prefix "${WORK}/prefix")
  if(EXISTS "${WORK}/prefix/bin/microscale")
    run("${WORK}/prefix/bin/microscale" --version)
  endif()
else()
  set(kokkos -DKokkos_DIR=${KOKKOS})
endif()
run(${CMAKE_COMMAND} -S "${CONSUMER}" -B "${WORK}/build" -G "${GENERATOR}" -DCMAKE_CXX_COMPILER=${COMPILER}
    -DCMAKE_BUILD_TYPE=Consumer "-DCMAKE_CXX_FLAGS=${FLAGS}" ${kokkos} -DCMAKE_PREFIX_PATH=${WORK}/prefix -DMICROSCALE_SOURCE=${MICROSCALE_SOURCE})
run(${CMAKE_COMMAND} --build "${WORK}/build")
run("${WORK}/build/consumer")
