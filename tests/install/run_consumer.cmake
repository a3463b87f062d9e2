# Installs Microscale from its build folder, then configures, builds and runs the project CONSUMER, all under WORK.
cmake_minimum_required(VERSION 3.22)

function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(REMOVE_RECURSE "${WORK}")
run(${CMAKE_COMMAND} --install "${MICROSCALE_BUILD}" --config ${BUILD_TYPE} --prefix "${WORK}/prefix")
run(${CMAKE_COMMAND} -S "${CONSUMER}" -B "${WORK}/build" -G "${GENERATOR}" -DCMAKE_CXX_COMPILER=${COMPILER}
    -DCMAKE_BUILD_TYPE=Consumer "-DCMAKE_CXX_FLAGS=${FLAGS}" -DKokkos_DIR=${KOKKOS}
    -DCMAKE_PREFIX_PATH=${WORK}/prefix -DMICROSCALE_SOURCE=${MICROSCALE_SOURCE})
run(${CMAKE_COMMAND} --build "${WORK}/build")
run("${WORK}/build/consumer")
