/* The native methods of lite.app.LiteApp. */
#include <jni.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lite_runtime.h"

typedef struct {
  lite_file* file;
  lite_app* app;
} App;

static App* app_of(jlong handle) { return (App*)(intptr_t)handle; }

static void throw_text(JNIEnv* env, const char* text) {
  jclass type = (*env)->FindClass(env, "java/lang/RuntimeException");
  if (type) (*env)->ThrowNew(env, type, text);
}

static void release(App* app) {
  lite_app_free(app->app);
  lite_file_close(app->file);
  free(app);
}

JNIEXPORT jlong JNICALL Java_lite_app_LiteApp_open(JNIEnv* env, jobject self, jstring path,
                                                   jstring cache_dir) {
  (void)self;
  char error[512] = "out of memory";
  const char* file = (*env)->GetStringUTFChars(env, path, NULL);
  const char* cache = file ? (*env)->GetStringUTFChars(env, cache_dir, NULL) : NULL;
  App* app = cache ? calloc(1, sizeof *app) : NULL;
  if (app) app->file = lite_file_open(file, error, sizeof error);
  if (app && app->file) {
    lite_options options = {0}; /* all processors; the first backend of the file that works here */
    options.cache_dir = cache;
    app->app = lite_app_open(app->file, &options, error, sizeof error);
  }
  if (cache) (*env)->ReleaseStringUTFChars(env, cache_dir, cache);
  if (file) (*env)->ReleaseStringUTFChars(env, path, file);
  if (app && app->app) return (jlong)(intptr_t)app;
  if (app) release(app);
  if (!(*env)->ExceptionCheck(env)) throw_text(env, error);
  return 0;
}

/* Null where the JVM has no memory for it, and has thrown. */
static jbyteArray array_of(JNIEnv* env, const void* bytes, size_t size) {
  jbyteArray out = size <= INT32_MAX ? (*env)->NewByteArray(env, (jsize)size) : NULL;
  if (out) (*env)->SetByteArrayRegion(env, out, 0, (jsize)size, bytes);
  return out;
}

/* The answer's UTF-8, which NewStringUTF would read as Java's own form of it. */
JNIEXPORT jbyteArray JNICALL Java_lite_app_LiteApp_run(JNIEnv* env, jobject self, jlong handle,
                                                       jbyteArray file) {
  (void)self;
  char error[512] = "out of memory";
  lite_app* app = app_of(handle)->app;
  const jsize size = (*env)->GetArrayLength(env, file);
  jbyte* bytes = (*env)->GetByteArrayElements(env, file, NULL);
  if (!bytes) return NULL; /* the JVM has thrown */
  const int failed = lite_app_run(app, bytes, (size_t)size, error, sizeof error);
  (*env)->ReleaseByteArrayElements(env, file, bytes, JNI_ABORT);
  const char* answer = failed ? NULL : lite_app_answer(app, 1);
  if (answer) return array_of(env, answer, strlen(answer));
  throw_text(env, error);
  return NULL;
}

JNIEXPORT jbyteArray JNICALL Java_lite_app_LiteApp_drawn(JNIEnv* env, jobject self, jlong handle) {
  (void)self;
  size_t size = 0;
  const void* png = lite_app_drawn(app_of(handle)->app, &size);
  return png ? array_of(env, png, size) : NULL;
}

JNIEXPORT void JNICALL Java_lite_app_LiteApp_close(JNIEnv* env, jobject self, jlong handle) {
  (void)env, (void)self;
  release(app_of(handle));
}
