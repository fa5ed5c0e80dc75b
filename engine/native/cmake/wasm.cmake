# Modules of WebAssembly: lite.wasm for pages, which exports src/wasm/lite_wasm.cc and imports a clock,
# lite_pipeline.wasm, which is the same and runs pipelines, and the runner lite_run.wasm for engines with
# files (WASI), which is how Python runs models there.
set(modules lite)
if(LITE_PIPELINES)
  list(APPEND modules lite_pipeline)
endif()
foreach(module IN LISTS modules)
  add_executable(${module}_wasm src/wasm/lite_wasm.cc ${objects} ${opencl})
  target_link_libraries(${module}_wasm PRIVATE lite_flags)
  target_link_options(${module}_wasm PRIVATE -mexec-model=reactor -s)
  set_target_properties(${module}_wasm PROPERTIES OUTPUT_NAME ${module} SUFFIX .wasm)
  install(PROGRAMS "$<TARGET_FILE:${module}_wasm>" DESTINATION ${native_dir}/bin/wasm32 COMPONENT runtime)
endforeach()
if(LITE_PIPELINES)
  target_sources(lite_pipeline_wasm PRIVATE src/wasm/lite_wasm_app.cc)
endif()

add_executable(lite_run ${runner_sources} ${objects} ${opencl})
target_link_libraries(lite_run PRIVATE lite_flags)
target_link_options(lite_run PRIVATE -s)
set_target_properties(lite_run PROPERTIES SUFFIX .wasm)
install(PROGRAMS "$<TARGET_FILE:lite_run>" DESTINATION ${native_dir}/bin/wasm32 COMPONENT runtime)
