// The log of paddle_api: one line on standard error, or in Android's own log.
#pragma once

#include <cstdio>
#if defined(__ANDROID__)
#include <android/log.h>
#define LITE_LOG(...) __android_log_print(ANDROID_LOG_WARN, "lite", __VA_ARGS__)
#else
#define LITE_LOG(...) \
  (fputs("lite: ", stderr), fprintf(stderr, __VA_ARGS__), fputc('\n', stderr))
#endif
