# What the OpenCL part has built in, from the files that Python reads: the list of places where a
# library may be, and the kernel texts with their SHA-256. Plain CMake, so that no tool is needed.
get_filename_component(opencl_folder "${CMAKE_CURRENT_LIST_DIR}/../../lite_engine/backends/opencl"
                       ABSOLUTE)
set(opencl_made "${CMAKE_CURRENT_BINARY_DIR}/opencl")

function(lite_write path text)  # leaves a file that is the same as it was
  if(EXISTS "${path}")
    file(READ "${path}" old)
    if(old STREQUAL text)
      return()
    endif()
  endif()
  file(WRITE "${path}" "${text}")
endfunction()

file(STRINGS "${opencl_folder}/places.txt" lines REGEX "^[a-z]")
set(places "")
foreach(line IN LISTS lines)
  string(REGEX REPLACE "^([a-z-]+) (.*)$" "LITE_PLACE(\"\\1\", \"\\2\")\n" row "${line}")
  string(APPEND places "${row}")
endforeach()
lite_write("${opencl_made}/opencl_places.inc" "${places}")

file(GLOB kernel_files CONFIGURE_DEPENDS "${opencl_folder}/kernels/*.cl")
file(WRITE "${opencl_made}/line_feed" "\n")
# What comes before a kernel's own text: common.h, and i8.h too in those of integers.
set(common "${opencl_folder}/kernels/common.h")
set(integers "${opencl_folder}/kernels/i8.h")
set(common_i8 "${opencl_made}/common_i8.h")
execute_process(COMMAND "${CMAKE_COMMAND}" -E cat "${common}" "${opencl_made}/line_feed" "${integers}"
                OUTPUT_FILE "${common_i8}" COMMAND_ERROR_IS_FATAL ANY)
set(arrays "")
set(rows "")
foreach(file IN ITEMS "${common}" "${common_i8}" ${kernel_files})
  get_filename_component(name "${file}" NAME_WE)
  file(READ "${file}" hex HEX)
  string(REGEX REPLACE "(..)" "0x\\1," bytes "${hex}")
  string(REGEX REPLACE "(0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,)" "\\1\n"
         bytes "${bytes}")
  string(APPEND arrays "const unsigned char kText_${name}[] = {\n${bytes}0};\n")
  if(NOT name MATCHES "^common")
    set(shared common)
    if(name MATCHES "^i8_")
      set(shared common_i8)
    endif()
    # CMake's strings are no place for the text itself, so the hash is taken of a file.
    execute_process(COMMAND "${CMAKE_COMMAND}" -E cat "${${shared}}" "${opencl_made}/line_feed" "${file}"
                    OUTPUT_FILE "${opencl_made}/whole" COMMAND_ERROR_IS_FATAL ANY)
    file(SHA256 "${opencl_made}/whole" hash)
    string(REGEX REPLACE "(..)" "0x\\1," hash "${hash}")
    string(REGEX REPLACE ",$" "" hash "${hash}")
    string(APPEND rows " \\\n  X(${name}, ${shared}, ${hash})")
  endif()
endforeach()
lite_write("${opencl_made}/opencl_kernel_texts.inc"
           "${arrays}\n#define LITE_KERNEL_TEXTS(X)${rows}\n")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${opencl_folder}/places.txt"
             "${common}" "${integers}" ${kernel_files})
set_property(SOURCE src/opencl/places.cc src/opencl/kernel_texts.cc APPEND PROPERTY
             INCLUDE_DIRECTORIES "${opencl_made}")
