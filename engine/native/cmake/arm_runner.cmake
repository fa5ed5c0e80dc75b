# A wheel for x86-64, macOS or Windows carries the runners of AArch64 Linux too: for boards, and so that
# `arm` works under qemu-aarch64.
find_program(LITE_ARM_COMPILER aarch64-linux-gnu-g++)
if(LITE_ARM_COMPILER)
  include(ExternalProject)
  ExternalProject_Add(arm
    SOURCE_DIR "${CMAKE_CURRENT_SOURCE_DIR}"
    BINARY_DIR "${CMAKE_CURRENT_BINARY_DIR}/arm"
    CMAKE_ARGS -DCMAKE_BUILD_TYPE=Release -DLITE_ARM_RUNNER=OFF
      "-DCMAKE_MAKE_PROGRAM=${CMAKE_MAKE_PROGRAM}"
      "-DCMAKE_TOOLCHAIN_FILE=${CMAKE_CURRENT_SOURCE_DIR}/cmake/aarch64-linux-gnu.cmake"
    INSTALL_COMMAND "${CMAKE_COMMAND}" --install <BINARY_DIR> --component runtime
      --prefix "${CMAKE_CURRENT_BINARY_DIR}/arm-installed"
    BUILD_ALWAYS ON)
  # All that a board needs: both runners and the library. The headers are installed already.
  foreach(folder bin/aarch64 lib/aarch64)
    install(DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/arm-installed/${native_dir}/${folder}/"
            DESTINATION ${native_dir}/${folder} COMPONENT runtime USE_SOURCE_PERMISSIONS)
  endforeach()
else()
  message(STATUS "no aarch64-linux-gnu-g++: built without the AArch64 runner")
endif()
