# A wheel for x86-64, macOS or Windows carries the runner of AArch64 Linux too: for boards, and so that
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
    INSTALL_COMMAND "" BUILD_ALWAYS ON)
  install(PROGRAMS "${CMAKE_CURRENT_BINARY_DIR}/arm/lite_run"
          DESTINATION ${native_dir}/bin/aarch64 COMPONENT runtime)
  install(PROGRAMS "${CMAKE_CURRENT_BINARY_DIR}/arm/liblite_runtime.so"
          DESTINATION ${native_dir}/lib/aarch64 COMPONENT runtime)
else()
  message(STATUS "no aarch64-linux-gnu-g++: built without the AArch64 runner")
endif()
