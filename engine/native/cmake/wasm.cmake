# Modules of WebAssembly: lite.wasm for pages, which exports what is in src/wasm and imports a clock, and the
# runner lite_run.wasm for engines with files (WASI), which is how Python runs models there.
add_executable(lite_wasm src/wasm/lite_wasm.cc src/wasm/lite_wasm_app.cc ${objects} ${opencl})
target_link_libraries(lite_wasm PRIVATE lite_flags)
target_link_options(lite_wasm PRIVATE -mexec-model=reactor -s)
set_target_properties(lite_wasm PROPERTIES OUTPUT_NAME lite SUFFIX .wasm)
install(PROGRAMS "$<TARGET_FILE:lite_wasm>" DESTINATION ${native_dir}/bin/wasm32 COMPONENT runtime)

add_executable(lite_run ${runner_sources} ${objects} ${opencl})
target_link_libraries(lite_run PRIVATE lite_flags)
target_link_options(lite_run PRIVATE -s)
set_target_properties(lite_run PROPERTIES SUFFIX .wasm)
install(PROGRAMS "$<TARGET_FILE:lite_run>" DESTINATION ${native_dir}/bin/wasm32 COMPONENT runtime)
