# Dynamic products for a board run where glibc is older than the one here, 2.17 on: each function that
# got a new version since is bound to its first one. A linker takes the version from the library that
# it finds a function in, so such libraries are made here, empty but for names and versions. On the
# device names and versions find the real functions wherever they are; the libraries' own names only
# have to be ones that every glibc has, and that the linker does not also see as the real ones.
set(LITE_OLD_GLIBC "")
if(LITE_ARCH STREQUAL "aarch64" AND CMAKE_SYSTEM_NAME STREQUAL "Linux" AND NOT LITE_SANITIZE)
  include(CheckCXXSymbolExists)
  check_cxx_symbol_exists(__GLIBC__ "features.h" LITE_HAS_GLIBC)
endif()

function(lite_old_library soname)
  string(MAKE_C_IDENTIFIER "${soname}" name)
  set(made "${CMAKE_CURRENT_BINARY_DIR}/old_glibc")
  set(bodies "")
  foreach(function IN LISTS ARGN)
    string(APPEND bodies "void ${function}(void) {}\n")
  endforeach()
  string(REPLACE ";" "; " exported "${ARGN}")
  lite_write("${made}/${name}.cc" "extern \"C\" {\n${bodies}}\n")
  lite_write("${made}/${name}.map" "GLIBC_2.17 { global: ${exported}; local: *; };\n")
  add_library(old_${name} SHARED "${made}/${name}.cc")
  target_compile_options(old_${name} PRIVATE -fno-builtin -w)
  target_link_options(old_${name} PRIVATE -nostdlib LINKER:-soname,${soname}
                      "LINKER:--version-script,${made}/${name}.map")
  set_target_properties(old_${name} PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${made}" NO_SONAME ON)
  list(APPEND LITE_OLD_GLIBC old_${name})
  set(LITE_OLD_GLIBC "${LITE_OLD_GLIBC}" PARENT_SCOPE)
endfunction()

if(LITE_HAS_GLIBC)
  lite_old_library(libpthread.so.0 pthread_create pthread_join pthread_once pthread_setaffinity_np)
  lite_old_library(libdl.so.2 dlopen dlsym dlerror __libc_start_main exp expf exp2f log logf log2f
                   pow powf)
endif()

# A function that is newer and not in these lists would raise the oldest glibc unnoticed;
# tests/native/runner/test_old_glibc.py reads the versions that the products need.
function(lite_link_for_old_glibc target)
  if(LITE_OLD_GLIBC)
    target_link_libraries(${target} PRIVATE ${LITE_OLD_GLIBC})
    set_target_properties(${target} PROPERTIES SKIP_BUILD_RPATH ON)
  endif()
endfunction()
