# Dynamic products run where glibc is older than the one here, 2.17 on: each function that
# got a new version since is bound to its first one. A linker takes the version from the library that
# it finds a function in, so such libraries are made here, empty but for names and versions. On the
# device names and versions find the real functions wherever they are; the libraries' own names only
# have to be ones that every glibc has, and that the linker does not also see as the real ones.
set(LITE_OLD_GLIBC "")
if(LITE_ARCH MATCHES "^(aarch64|x86_64)$" AND CMAKE_SYSTEM_NAME STREQUAL "Linux" AND NOT LITE_SANITIZE
   AND NOT LITE_ZIG)  # zig's targets name their glibc
  include(CheckCXXSymbolExists)
  check_cxx_symbol_exists(__GLIBC__ "features.h" LITE_HAS_GLIBC)
endif()

# lite_old_library(libx.so.0 GLIBC_2.2.5 f g GLIBC_2.3.4 h): the functions after each version.
function(lite_old_library soname)
  string(MAKE_C_IDENTIFIER "${soname}" name)
  set(made "${CMAKE_CURRENT_BINARY_DIR}/old_glibc")
  set(bodies "")
  set(map "")
  foreach(word IN LISTS ARGN)
    if(word MATCHES "^GLIBC_")
      string(APPEND map "${end}${word} { global:")
      set(end " };\n")
    else()
      string(APPEND map " ${word};")
      string(APPEND bodies "void ${word}(void) {}\n")
    endif()
  endforeach()
  lite_write("${made}/${name}.cc" "extern \"C\" {\n${bodies}}\n")
  lite_write("${made}/${name}.map" "${map}${end}")
  add_library(old_${name} SHARED "${made}/${name}.cc")
  target_compile_options(old_${name} PRIVATE -fno-builtin -w)
  target_link_options(old_${name} PRIVATE -nostdlib LINKER:-soname,${soname}
                      "LINKER:--version-script,${made}/${name}.map")
  set_target_properties(old_${name} PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${made}" NO_SONAME ON)
  list(APPEND LITE_OLD_GLIBC old_${name})
  set(LITE_OLD_GLIBC "${LITE_OLD_GLIBC}" PARENT_SCOPE)
endfunction()

if(LITE_HAS_GLIBC)
  if(LITE_ARCH STREQUAL "x86_64")  # its glibc began earlier, and added one of these later
    set(first GLIBC_2.2.5)
    set(affinity GLIBC_2.3.4 pthread_setaffinity_np)
  else()
    set(first GLIBC_2.17)
    set(affinity pthread_setaffinity_np)
  endif()
  lite_old_library(libpthread.so.0 ${first} pthread_create pthread_join pthread_once ${affinity})
  lite_old_library(libdl.so.2 ${first} dlopen dlsym dlerror __libc_start_main exp expf exp2f log logf
                   log2f pow powf)
endif()

# A function that is newer and not in these lists would raise the oldest glibc unnoticed;
# tests/native/runner/test_old_glibc.py reads the versions that the products need.
function(lite_link_for_old_glibc target)
  if(LITE_OLD_GLIBC)
    target_link_libraries(${target} PRIVATE ${LITE_OLD_GLIBC})
    set_target_properties(${target} PROPERTIES SKIP_BUILD_RPATH ON)
  endif()
endfunction()
