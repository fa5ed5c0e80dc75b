# LITE_ARCH, the instruction sets that every file of src/isa is built for (LITE_ISAS, lowest first),
# those with files of their own only (LITE_EXTRA_ISAS), and their flags (LITE_FLAGS_<isa>).
string(TOLOWER "${CMAKE_SYSTEM_PROCESSOR}" processor)
if(processor MATCHES "^(x86_64|amd64)$")
  set(LITE_ARCH x86_64)
  set(LITE_ISAS sse2 avx2 avx512)
  set(LITE_EXTRA_ISAS avx2bytes avxvnni avx512vnni avx512bf16 amx)
  set(LITE_FLAGS_sse2 -msse2)
  set(LITE_FLAGS_avx2 -mavx2 -mfma -mf16c)
  set(LITE_FLAGS_avx2bytes ${LITE_FLAGS_avx2} -DLITE_SATURATES)  # isa/int8_bounds.h
  set(LITE_FLAGS_avxvnni ${LITE_FLAGS_avx2} -mavxvnni)
  set(LITE_FLAGS_avx512 ${LITE_FLAGS_avx2} -mavx512f -mavx512bw -mavx512dq -mavx512vl
      -mprefer-vector-width=512)
  set(LITE_FLAGS_avx512vnni ${LITE_FLAGS_avx512} -mavx512vnni)
  set(LITE_FLAGS_avx512bf16 ${LITE_FLAGS_avx512vnni} -mavx512bf16)
  set(LITE_FLAGS_amx ${LITE_FLAGS_avx512bf16} -mamx-tile -mamx-int8 -mamx-bf16)
  # Sanitizers check what this machine would run; the narrower sets are the same source.
  if(LITE_SANITIZE AND EXISTS /proc/cpuinfo)
    file(STRINGS /proc/cpuinfo wide REGEX "^flags.* avx512f .* avx512vl( |$)" LIMIT_COUNT 1)
    if(wide)
      set(LITE_ISAS avx512)
      list(REMOVE_ITEM LITE_EXTRA_ISAS avx2bytes avxvnni)
    endif()
  endif()
elseif(processor MATCHES "^(aarch64|arm64)$")
  set(LITE_ARCH aarch64)
  set(LITE_ISAS neon)
  set(LITE_EXTRA_ISAS neonfp16 neondot neoni8mm)
  set(LITE_FLAGS_neon -march=armv8-a)
  set(LITE_FLAGS_neonfp16 -march=armv8.2-a+fp16)
  set(LITE_FLAGS_neondot -march=armv8.2-a+fp16+dotprod)
  set(LITE_FLAGS_neoni8mm -march=armv8.2-a+fp16+dotprod+i8mm)
  if(LITE_ZIG)  # which takes the names of LLVM's features
    set(LITE_FLAGS_neon -mcpu=generic)
    set(LITE_FLAGS_neonfp16 -mcpu=generic+v8_2a+fullfp16)
    set(LITE_FLAGS_neondot -mcpu=generic+v8_2a+fullfp16+dotprod)
    set(LITE_FLAGS_neoni8mm -mcpu=generic+v8_2a+fullfp16+dotprod+i8mm)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # gcc hoists loads over the multiply chains of a full register tile and then spills it.
    target_compile_options(lite_flags INTERFACE -fno-schedule-insns)
  endif()
elseif(processor STREQUAL "wasm32")
  set(LITE_ARCH wasm32)
  set(LITE_ISAS simd128)
  set(LITE_EXTRA_ISAS "")
  set(LITE_FLAGS_simd128 -D__SSE2__)  # isa/simd128.h
  set(LITE_CPU -mcpu=generic+simd128+bulk_memory+atomics)
  # No C++ library, which zig would compile first: nothing of it is used but the guards of static variables,
  # and those of its build for WASI do not lock.
  target_compile_options(lite_flags INTERFACE ${LITE_CPU} -fno-threadsafe-statics)
  target_link_options(lite_flags INTERFACE ${LITE_CPU} -nostdlib++)  # of one CPU: zig compiles one C library
elseif(processor MATCHES "^arm")
  set(LITE_ARCH armv7)
  set(LITE_ISAS neon)
  set(LITE_EXTRA_ISAS "")
  target_compile_options(lite_flags INTERFACE -march=armv7-a -mfpu=neon)
  if(ANDROID)  # whose C library passes floats in integer registers
    target_compile_options(lite_flags INTERFACE -mfloat-abi=softfp)
  else()
    target_compile_options(lite_flags INTERFACE -mfloat-abi=hard)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")  # clang has that form of fp16 only
    target_compile_options(lite_flags INTERFACE -mfp16-format=ieee -Wno-psabi)
  endif()
else()
  message(FATAL_ERROR "processor ${CMAKE_SYSTEM_PROCESSOR} is not supported: x86_64, aarch64 or armv7")
endif()
