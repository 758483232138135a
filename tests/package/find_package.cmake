# Installs the build into its own tree, then builds and runs the consumer against what was installed.
cmake_minimum_required(VERSION 3.25)
set(prefix ${BUILD}/package)
file(REMOVE_RECURSE ${prefix})

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix}/installed)
run(${CMAKE_COMMAND} -G ${GENERATOR} -S ${CMAKE_CURRENT_LIST_DIR}/consumer -B ${prefix}/consumer
    -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_PREFIX_PATH=${prefix}/installed)
run(${CMAKE_COMMAND} --build ${prefix}/consumer)
run(${prefix}/consumer/consumer)
