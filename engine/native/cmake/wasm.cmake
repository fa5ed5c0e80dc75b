# Modules of WebAssembly: lite.wasm for pages, which exports what is in src/wasm and imports a clock; the
# same on a memory that workers share; and the runner lite_run.wasm for engines with files (WASI), which
# is how Python runs models there.
add_library(lite_page OBJECT src/wasm/lite_wasm.cc src/wasm/lite_wasm_app.cc)
target_link_libraries(lite_page PRIVATE lite_flags)
foreach(name lite lite_threads)
  add_executable(${name}_wasm $<TARGET_OBJECTS:lite_page> ${objects} ${opencl})
  target_link_libraries(${name}_wasm PRIVATE lite_flags)
  target_link_options(${name}_wasm PRIVATE -mexec-model=reactor -s)
  set_target_properties(${name}_wasm PROPERTIES LINKER_LANGUAGE CXX OUTPUT_NAME ${name} SUFFIX .wasm)
  install(PROGRAMS "$<TARGET_FILE:${name}_wasm>" DESTINATION ${native_dir}/bin/wasm32 COMPONENT runtime)
endforeach()
# lite.js makes the memory, of this size at first, and gives every worker a stack and its thread-local data.
target_link_options(lite_threads_wasm PRIVATE
  "LINKER:--shared-memory,--import-memory,--export-memory,--initial-memory=33554432,--max-memory=4294901760"
  "LINKER:--export=__stack_pointer,--export=__wasm_init_tls,--export=__tls_size")

add_executable(lite_run ${runner_sources} ${objects} ${opencl})
target_link_libraries(lite_run PRIVATE lite_flags)
target_link_options(lite_run PRIVATE -s)
set_target_properties(lite_run PROPERTIES SUFFIX .wasm)
install(PROGRAMS "$<TARGET_FILE:lite_run>" DESTINATION ${native_dir}/bin/wasm32 COMPONENT runtime)
