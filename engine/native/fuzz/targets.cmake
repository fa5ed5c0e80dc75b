# libFuzzer targets, one per reader of bytes from elsewhere: fuzz_<reader> reads its input as that
# reader would. The readers are compiled with line coverage, too (tests/fuzz/native.py).
set(readers src/plugins/plugins.cc src/runtime/program.cc src/runtime/turns.cc src/runtime/lite_file.cc src/runtime/lite_derived.cc
    src/runner/lite_run_npy.cc src/runner/jpeg_frames.cc)
file(GLOB app_sources src/app/*.cc)
list(APPEND readers ${app_sources} src/opencl/device_plan.cc src/opencl/constants.cc
     src/opencl/layout.cc src/opencl/defines.cc src/opencl/reach.cc src/opencl/expression.cc
     src/opencl/statement.cc)
set_property(SOURCE ${readers} APPEND PROPERTY COMPILE_OPTIONS
  -fprofile-instr-generate -fcoverage-mapping)

foreach(target program file npy image sound stream pipeline outputs opencl)
  add_executable(fuzz_${target} fuzz/fuzz_${target}.cc src/runner/lite_run_npy.cc
    src/runner/jpeg_frames.cc ${objects}
    ${opencl})
  target_include_directories(fuzz_${target} PRIVATE src "${opencl_made}")
  target_link_libraries(fuzz_${target} PRIVATE lite_flags Threads::Threads ${CMAKE_DL_LIBS})
  target_link_options(fuzz_${target} PRIVATE -fsanitize=fuzzer,address,undefined
    -fprofile-instr-generate)
endforeach()
