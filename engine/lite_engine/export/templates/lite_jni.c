/* Java binding: the native methods of lite.LiteRuntime. */
#include <jni.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lite_runtime.h"

typedef struct {
  lite_file* file;
  lite_program* program;
} Model;

static Model* model_of(jlong handle) { return (Model*)(intptr_t)handle; }

static void throw_text(JNIEnv* env, const char* text) {
  jclass type = (*env)->FindClass(env, "java/lang/RuntimeException");
  if (type) (*env)->ThrowNew(env, type, text);
}

static void release(Model* model) {
  lite_program_free(model->program);
  lite_file_close(model->file);
  free(model);
}

/* The tensor of the i-th input or output; -1 after throwing. */
static int tensor_of(JNIEnv* env, Model* model, jboolean input, jint i, lite_tensor_info* info) {
  const int tensor =
      input ? lite_program_input(model->program, i) : lite_program_output(model->program, i);
  if (tensor >= 0 && lite_program_tensor(model->program, tensor, info) == 0) return tensor;
  throw_text(env, "the model has no such input or output");
  return -1;
}

/* The texts of open: the path and those of lite_options, NULL where none is given. */
enum { kPath, kBackend, kDevice, kCacheDir, kPrecision, kTexts };

/* -1 where the backend has no such name. */
static int backend_of(const char* word) {
  const char* name;
  for (int i = 0; (name = lite_backend_name(i)) != NULL; ++i)
    if (!word || strcmp(word, name) == 0) return i;
  return -1;
}

static Model* open_model(const char* const* texts, int threads, int tune, char* error, size_t bytes) {
  const int backend = backend_of(texts[kBackend]);
  if (backend < 0) {
    snprintf(error, bytes, "backend '%.40s' is not one of auto, cpu, opencl", texts[kBackend]);
    return NULL;
  }
  Model* model = calloc(1, sizeof *model);
  if (!model) return NULL;
  model->file = lite_file_open(texts[kPath], error, bytes);
  if (model->file) {
    lite_options options = {0};
    options.threads = threads;
    options.backend = backend;
    options.device = texts[kDevice];
    options.cache_dir = texts[kCacheDir];
    options.precision = texts[kPrecision];
    options.tune = tune;
    model->program = lite_file_program(model->file, NULL, &options, error, bytes);
  }
  if (model->program) return model;
  release(model);
  return NULL;
}

JNIEXPORT jlong JNICALL Java_lite_LiteRuntime_open(JNIEnv* env, jclass type, jstring path,
                                                   jint threads, jstring backend, jstring device,
                                                   jstring cache_dir, jstring precision,
                                                   jboolean tune) {
  (void)type;
  if (!path) return throw_text(env, "no path is given"), 0;
  const jstring given[kTexts] = {path, backend, device, cache_dir, precision};
  const char* texts[kTexts] = {NULL};
  char error[512] = "out of memory";
  int read = 0;
  for (; read < kTexts; ++read)
    if (given[read] && !(texts[read] = (*env)->GetStringUTFChars(env, given[read], NULL))) break;
  Model* model = read == kTexts ? open_model(texts, threads, tune, error, sizeof error) : NULL;
  for (int i = 0; i < read; ++i)
    if (texts[i]) (*env)->ReleaseStringUTFChars(env, given[i], texts[i]);
  if (model) return (jlong)(intptr_t)model;
  if (read == kTexts) throw_text(env, error);  /* otherwise the JVM has thrown */
  return 0;
}

/* `what` as in LiteRuntime.java. */
JNIEXPORT jstring JNICALL Java_lite_LiteRuntime_told(JNIEnv* env, jclass type, jlong handle,
                                                     jint what) {
  (void)type;
  const lite_program* program = model_of(handle)->program;
  const char* text = what == 0   ? lite_program_choice(program)
                     : what == 1 ? lite_program_warning(program)
                                 : lite_program_tuning(program);
  return text ? (*env)->NewStringUTF(env, text) : NULL;
}

JNIEXPORT void JNICALL Java_lite_LiteRuntime_close(JNIEnv* env, jclass type, jlong handle) {
  (void)env, (void)type;
  release(model_of(handle));
}

JNIEXPORT jint JNICALL Java_lite_LiteRuntime_count(JNIEnv* env, jclass type, jlong handle,
                                                   jboolean input) {
  (void)env, (void)type;
  const lite_program* program = model_of(handle)->program;
  return input ? lite_program_num_inputs(program) : lite_program_num_outputs(program);
}

JNIEXPORT jstring JNICALL Java_lite_LiteRuntime_name(JNIEnv* env, jclass type, jlong handle,
                                                     jboolean input, jint i) {
  (void)type;
  lite_tensor_info info;
  if (tensor_of(env, model_of(handle), input, i, &info) < 0) return NULL;
  return (*env)->NewStringUTF(env, info.name);
}

JNIEXPORT jlongArray JNICALL Java_lite_LiteRuntime_shape(JNIEnv* env, jclass type, jlong handle,
                                                         jboolean input, jint i) {
  (void)type;
  lite_tensor_info info;
  if (tensor_of(env, model_of(handle), input, i, &info) < 0) return NULL;
  jlongArray out = (*env)->NewLongArray(env, info.rank);
  jlong dims[8];
  for (int k = 0; k < info.rank; ++k) dims[k] = info.dims[k];
  if (out) (*env)->SetLongArrayRegion(env, out, 0, info.rank, dims);
  return out;
}

JNIEXPORT jint JNICALL Java_lite_LiteRuntime_type(JNIEnv* env, jclass type, jlong handle,
                                                  jboolean input, jint i) {
  (void)type;
  lite_tensor_info info;
  return tensor_of(env, model_of(handle), input, i, &info) < 0 ? 0 : info.dtype;
}

JNIEXPORT jstring JNICALL Java_lite_LiteRuntime_version(JNIEnv* env, jclass type) {
  (void)type;
  return (*env)->NewStringUTF(env, lite_version());
}

JNIEXPORT jobject JNICALL Java_lite_LiteRuntime_data(JNIEnv* env, jclass type, jlong handle,
                                                     jboolean input, jint i) {
  (void)type;
  lite_tensor_info info;
  Model* model = model_of(handle);
  const int tensor = tensor_of(env, model, input, i, &info);
  if (tensor < 0) return NULL;
  void* data = lite_program_data(model->program, tensor);
  if (!data) return throw_text(env, "out of memory"), NULL;
  return (*env)->NewDirectByteBuffer(env, data, (jlong)info.bytes);
}

JNIEXPORT void JNICALL Java_lite_LiteRuntime_run(JNIEnv* env, jclass type, jlong handle) {
  (void)type;
  char error[512] = "";
  if (lite_program_run(model_of(handle)->program, error, sizeof error)) throw_text(env, error);
}

JNIEXPORT jstring JNICALL Java_lite_LiteRuntime_check(JNIEnv* env, jclass type, jlong handle,
                                                      jdouble tolerance) {
  (void)type;
  char error[512] = "";
  lite_layer_check first = {0};
  if (lite_program_check(model_of(handle)->program, tolerance, &first, error, sizeof error) < 0)
    return throw_text(env, error), NULL;
  return first.name ? (*env)->NewStringUTF(env, first.name) : NULL;
}

/* The same strings as C texts in `out`; how many could be read. */
static int texts_of(JNIEnv* env, const jstring* given, int count, const char** out) {
  int read = 0;
  while (read < count && given[read] && (out[read] = (*env)->GetStringUTFChars(env, given[read], NULL))) ++read;
  return read;
}

JNIEXPORT void JNICALL Java_lite_LiteRuntime_leave(JNIEnv* env, jclass type, jlong handle,
                                                   jobjectArray layers, jstring reason) {
  (void)type;
  char error[512] = "out of memory";
  const int count = layers ? (*env)->GetArrayLength(env, layers) : 0;
  /* The layers, and the reason behind them. */
  jstring* given = calloc((size_t)count + 1, sizeof *given);
  const char** texts = calloc((size_t)count + 1, sizeof *texts);
  int read = 0;
  if (given && texts) {
    for (int i = 0; i < count; ++i) given[i] = (*env)->GetObjectArrayElement(env, layers, i);
    given[count] = reason;
    read = texts_of(env, given, count + 1, texts);
    if (read <= count) snprintf(error, sizeof error, "a layer or the reason is null");
  }
  const int failed = read != count + 1 || lite_program_leave(model_of(handle)->program, texts, count,
                                                             texts[count], error, sizeof error);
  for (int i = 0; i < read; ++i) (*env)->ReleaseStringUTFChars(env, given[i], texts[i]);
  free(given);
  free(texts);
  if (failed && !(*env)->ExceptionCheck(env)) throw_text(env, error);
}
