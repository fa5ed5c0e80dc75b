# Flags that every source shares (target lite_flags) and how the two products are linked.
add_library(lite_flags INTERFACE)
target_include_directories(lite_flags INTERFACE include src)
target_compile_definitions(lite_flags INTERFACE LITE_VERSION="${LITE_VERSION}")
target_compile_options(lite_flags INTERFACE
  -ffp-contract=fast -fno-math-errno -fvisibility=hidden
  -fno-exceptions -fno-rtti -Wall -Wextra -Wno-unused-parameter)

# C++ runtime code goes inside: the only needs that remain are libc and libm.
if(LITE_ZIG)
  # zig links its own libc++ statically, and knows few of the linker's words.
  set(LITE_LIBRARY_LINK_FLAGS -s)
  set(LITE_RUNNER_LINK_FLAGS -s)
else()
set(LITE_LIBRARY_LINK_FLAGS -static-libstdc++ -static-libgcc LINKER:--exclude-libs,ALL
    LINKER:--no-undefined LINKER:--gc-sections)
set(LITE_RUNNER_LINK_FLAGS -static-libstdc++ -static-libgcc LINKER:--gc-sections)
endif()

if(LITE_KERNEL_LIST)  # a trimmed build is for a device: no symbols
  list(APPEND LITE_LIBRARY_LINK_FLAGS -s)
  list(APPEND LITE_RUNNER_LINK_FLAGS -s)
endif()

# Nothing unwinds the stack in a release: no exceptions, and no tables for them.
if(NOT LITE_SANITIZE)
  target_compile_options(lite_flags INTERFACE -fno-asynchronous-unwind-tables)
  if(NOT CMAKE_SYSTEM_NAME STREQUAL "Windows")  # whose debuggers walk the stack by them
    target_compile_options(lite_flags INTERFACE -fno-unwind-tables)  # AArch64's are of this kind
  endif()
else()
  set(kind ${LITE_SANITIZE})
  if(kind STREQUAL "fuzzer")
    set(kind fuzzer-no-link,address)
  endif()
  target_compile_options(lite_flags INTERFACE -fsanitize=${kind} -g1 -fno-omit-frame-pointer)
  if(NOT LITE_SANITIZE STREQUAL "fuzzer")  # compiles in half the time; a fuzzer runs for hours
    target_compile_options(lite_flags INTERFACE -O1)
  endif()
  # The kernels' unrolled tiles compile ten times slower with UBSan and inline checks.
  set(LITE_KERNEL_FLAGS -fno-sanitize=undefined)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")  # checks as calls, not inline
    list(APPEND LITE_KERNEL_FLAGS --param asan-instrumentation-with-call-threshold=0)
  endif()
  if(kind MATCHES "address")
    target_compile_options(lite_flags INTERFACE -fsanitize=undefined
      -fno-sanitize-recover=undefined)
    set(sanitizers -fsanitize=${kind},undefined)
  else()
    set(sanitizers -fsanitize=${kind})
  endif()
  set(LITE_LIBRARY_LINK_FLAGS ${sanitizers})
  set(LITE_RUNNER_LINK_FLAGS ${sanitizers})
endif()

set(LITE_DYNAMIC_RUNNER_LINK_FLAGS ${LITE_RUNNER_LINK_FLAGS})
if(LITE_ZIG AND LITE_ZIG_TARGET MATCHES "-musl")  # which zig links statically unless told
  list(APPEND LITE_DYNAMIC_RUNNER_LINK_FLAGS -dynamic)
endif()
set(LITE_RUNNER_IS_STATIC OFF)
if(LITE_STATIC_RUNNER AND NOT LITE_SANITIZE AND CMAKE_SYSTEM_NAME STREQUAL "Linux")
  include(CheckCXXSourceCompiles)
  set(CMAKE_REQUIRED_LINK_OPTIONS -static)
  check_cxx_source_compiles("int main() { return 0; }" LITE_CAN_LINK_STATICALLY)
  unset(CMAKE_REQUIRED_LINK_OPTIONS)
  if(LITE_CAN_LINK_STATICALLY)
    list(APPEND LITE_RUNNER_LINK_FLAGS -static)
    set(LITE_RUNNER_IS_STATIC ON)
  endif()
endif()
