/* Lite Runtime: public C ABI. Plain C, no exceptions, no global state but the kernel tables.
 *
 *   char error[256];
 *   lite_file* file = lite_file_open("model.lite", error, sizeof error);
 *   lite_program* program = lite_file_program(file, NULL, NULL, error, sizeof error);
 *   lite_program_bind(program, lite_program_find(program, "image"), pixels, bytes);
 *   lite_program_run(program, error, sizeof error);
 *   const float* scores = lite_program_data(program, lite_program_output(program, 0));
 *
 * Functions that can fail return NULL, -1 or a non-zero status and write one line to `error`.
 * One program may be used by one thread at a time; different programs by different threads. */
#ifndef LITE_RUNTIME_H
#define LITE_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32)
#define LITE_API __declspec(dllexport)
#else
#define LITE_API __attribute__((visibility("default")))
#endif

#define LITE_ABI_VERSION 5

typedef struct lite_program lite_program;
typedef struct lite_file lite_file;

/* All zero is a good default. */
typedef struct {
  int32_t threads;            /* 0: one per processor this process may use, at most 64 */
  int32_t pin;                /* 1: thread i is pinned to the i-th fastest allowed processor */
  const char* max_isa;        /* highest instruction set to use ("avx2"), NULL: no limit */
  int64_t fail_allocation;    /* tests: the n-th allocation (1, 2, ...) fails; 0: none */
  int64_t memory_limit_bytes; /* arena, packed weights and scratch together; 0: no limit */
  int64_t l2_bytes;           /* tests: second-level cache to prepare for; 0: this machine's */
  int32_t backend;            /* of a file: 0 what it prefers and what works, 1 cpu, 2 opencl */
  const char* device;         /* OpenCL device: its number or part of its name, NULL: the first */
  const char* cache_dir;      /* folder for compiled OpenCL kernels, NULL: none are kept */
  int32_t timed;              /* 1: steps of an OpenCL device note their times, which costs some */
  const char* precision;      /* of a file: "fp32", "fp16" or "bf16" is what float values must be computed
                                 in, NULL: what the file says for the backend and the CPU can do */
  int32_t tune;               /* 1: an OpenCL device measures the variants of layers that a file converted with
                                 --tunable has, and keeps which is the fastest in cache_dir, or beside the file
                                 where that is NULL; the same table as that of Python's `lite tune` */
} lite_options;

typedef struct {
  const char* name;
  int32_t dtype; /* numbers of the program format: 1 f32, 2 f16, ... */
  int32_t role;  /* 1 input, 2 output, 3 weight, 4 arena */
  int32_t rank;
  int64_t dims[8];
  int64_t pitch; /* elements between innermost rows */
  int32_t halo[4];
  size_t bytes; /* of the dense tensor */
} lite_tensor_info;

typedef struct {
  const char* name;
  const char* op;
  const char* kernel;
  const char* variant;      /* full kernel name with instruction set and tile */
  int64_t start_ns, end_ns; /* of the last run, from the run's start */
} lite_step_info;

typedef struct {
  size_t arena_bytes, packed_bytes, scratch_bytes, weight_bytes;
  int64_t run_ns; /* wall time of the last run */
} lite_memory_info; /* packed_bytes counts what lies on an OpenCL device and what other programs share, too */

typedef struct {
  const char *name, *op, *kernel; /* of the layer; name NULL: none differs */
  double error;                   /* relative L2 error of what it writes, against the CPU */
  int64_t index;                  /* of the value that is off most, as it lies in memory */
  double device, cpu;             /* that value */
} lite_layer_check;

typedef struct {
  const char* name; /* as programs name it: "f32_unary" */
  const char* ops;  /* operators that it runs, separated by spaces */
  const char* isa;  /* "base": portable code */
} lite_kernel_info;

LITE_API int lite_abi_version(void);
LITE_API const char* lite_version(void);
/* "x86", "arm" or "wasm": what this library runs. */
LITE_API const char* lite_target(void);
/* CPU features in use, separated by spaces, for example "sse2 avx2 avx512 avx512vnni". */
LITE_API const char* lite_cpu_features(void);
/* Instruction sets compiled in that this machine has, lowest first, separated by spaces. */
LITE_API const char* lite_isas(void);
/* i-th row of the kernel tables, those of all instruction sets; 0 when it exists. */
LITE_API int lite_kernel(int index, lite_kernel_info* info);

/* Loads a library of kernels (lite_plugin.h) by its path, which has a '/' in it: its code runs in this
 * process. Or a `.cl` file that Python's `opencl_kernel` made: the text of a custom operator's OpenCL kernel.
 * Programs that are loaded from then on use it. 0 when it was loaded. */
LITE_API int lite_plugin_load(const char* path, char* error, size_t error_bytes);

/* Loads a program; one with an OpenCL part needs a device that it was made for. `program` and `weights` stay the caller's and must outlive the result;
 * weights[i] has weight_bytes[i] bytes. */
LITE_API lite_program* lite_program_load(const void* program, size_t program_bytes,
                                         const void* const* weights, const size_t* weight_bytes,
                                         size_t num_weights, const lite_options* options,
                                         char* error, size_t error_bytes);
LITE_API void lite_program_free(lite_program*);

LITE_API int lite_program_num_inputs(const lite_program*);
LITE_API int lite_program_num_outputs(const lite_program*);
LITE_API int lite_program_num_tensors(const lite_program*);
LITE_API int lite_program_num_steps(const lite_program*);
LITE_API int lite_program_threads(const lite_program*);
/* Tensor index of the i-th input or output; -1 when there is none. */
LITE_API int lite_program_input(const lite_program*, int i);
LITE_API int lite_program_output(const lite_program*, int i);
LITE_API int lite_program_find(const lite_program*, const char* tensor_name);
LITE_API int lite_program_tensor(const lite_program*, int tensor, lite_tensor_info* info);
LITE_API int lite_program_step(const lite_program*, int step, lite_step_info* info);
/* From the next run on, every thread notes what it computes of each step: two clock reads more for each.
 * on = 0 ends it. 0 when accepted, -1 without memory. */
LITE_API int lite_program_note_threads(lite_program*, int on);
/* Nanoseconds that a thread computed of a step in the last run (the rest of the step it waited); -1 when
 * that was not noted. */
LITE_API int64_t lite_program_thread_ns(const lite_program*, int step, int thread);
LITE_API void lite_program_memory(const lite_program*, lite_memory_info* info);

/* Copies between the host's memory and an OpenCL device's that the last run made: their number; `bytes`
 * (NULL: not wanted) is what they copied. Taps are not counted. */
LITE_API int64_t lite_program_copies(const lite_program*, int64_t* bytes);

/* Gives an input or output memory of the caller's (exactly its bytes, kept while it runs). An OpenCL device
 * copies what is bound. data NULL returns to the program's own memory, whose values are then the last that
 * the program had there. 0 when accepted. */
LITE_API int lite_program_bind(lite_program*, int tensor, void* data, size_t bytes);
/* Memory of an input or output (bound or own), or of a tensor tapped in the last run. Where an OpenCL device
 * shares the host's memory, an input's or output's own memory is the device's buffer, and nothing is copied:
 * write inputs there, read outputs there, do neither during a run, and ask again after each run, because a
 * driver may move a buffer. */
LITE_API void* lite_program_data(lite_program*, int tensor);
/* Copies a tensor, dense, right after the step that writes it; on = 0 forgets it. 0 when accepted.
 */
LITE_API int lite_program_tap(lite_program*, int tensor, int on, char* error, size_t error_bytes);
LITE_API int lite_program_run(lite_program*, char* error, size_t error_bytes);

/* A .lite file (layout: src/runtime/lite_file.cc). The file must outlive its programs. */
LITE_API lite_file* lite_file_open(const char* path, char* error, size_t error_bytes);
/* The same of bytes in memory that begin at a multiple of 64; they must outlive the file. */
LITE_API lite_file* lite_file_open_bytes(const void* data, size_t size, char* error,
                                         size_t error_bytes);
LITE_API void lite_file_close(lite_file*);
/* Targets of the file, separated by spaces. */
LITE_API const char* lite_file_targets(const lite_file*);
/* A section's bytes ("META", "GRAPH", "PROG.arm"); NULL when the file has none. */
LITE_API const void* lite_file_section(const lite_file*, const char* tag, size_t* bytes);
/* Loads the libraries of kernels that the file carries for this target, whose code runs in this process,
 * and its OpenCL kernels of custom operators, whose code runs on the device:
 * only for files whose maker you trust. Nothing else executes code of a file. 0 when all were loaded. */
LITE_API int lite_file_trust(const lite_file*, char* error, size_t error_bytes);
/* target NULL: what options->backend says, and LITE_BACKEND (auto, opencl or lite_target's word) where
 * that is 0. The file stays open as long
 * as the program: where a device fails during a run, the file's program for the CPU takes over. */
LITE_API lite_program* lite_file_program(lite_file*, const char* target,
                                         const lite_options* options, char* error,
                                         size_t error_bytes);

/* What was chosen and why: "opencl: NAME, ..." or "cpu: reason". */
LITE_API const char* lite_program_choice(const lite_program*);
/* That, where the CPU runs what an OpenCL device was to run: one layer, or all after the device failed; or what
 * is wrong with a folder of compiled kernels or measured variants. NULL otherwise. Worth telling once; outputs
 * are right. */
LITE_API const char* lite_program_warning(const lite_program*);
/* Runs a program with an OpenCL part again on its inputs, on the device and layer by layer on the CPU, and
 * compares what the layers write: `first` is the first one that differs by more than `tolerance`. The number
 * of layers compared: 0 where no device runs any. -1 with one line in `error`. */
LITE_API int lite_program_check(lite_program*, double tolerance, lite_layer_check* first, char* error,
                                size_t error_bytes);
/* Leaves layers of the device to the CPU from the next run on, as happens by itself to a layer whose launch
 * fails. `reason` is what lite_program_choice and lite_program_warning say of them. -1 with one line in
 * `error`, and the program as it was, where one of the layers is not the device's or has no kernel of the CPU. */
LITE_API int lite_program_leave(lite_program*, const char* const* layers, int count, const char* reason,
                                char* error, size_t error_bytes);
/* With options->tune: what was measured. NULL where nothing was. */
LITE_API const char* lite_program_tuning(const lite_program*);
/* "auto", "cpu", "opencl"; NULL for another number. */
LITE_API const char* lite_backend_name(int backend);

/* OpenCL on this machine as JSON: every library that was tried, with its reason and how to fix it,
 * and every device. Libraries are opened in another process: `runner` (the path of lite_run), or a
 * fork of this one when that is NULL; one that says nothing for `timeout_s` seconds (0: 20) hangs.
 * NULL when out of memory; free it with lite_text_free. */
LITE_API char* lite_opencl_report(const char* runner, int32_t timeout_s);
LITE_API void lite_text_free(void* text);
/* The other process's part: what a runner does with the arguments of main when the first one begins
 * with "--probe-". Returns the exit status. */
LITE_API int lite_opencl_child(int argc, char** argv);

/* Pipelines: an image or a sound in, an answer out, over several models and the steps between them
 * (docs/pipelines.md). One pipeline may be used by one thread at a time. */
typedef struct lite_app lite_app;

#define LITE_APP_MAX_OUTPUTS 16

/* A dense array; dtype as in lite_tensor_info. */
typedef struct {
  int32_t dtype;
  int32_t rank;
  int64_t dims[8];
  const void* data;
  size_t bytes;
} lite_array;

/* Runs the i-th model of a pipeline. Fills `outputs`, which must stay as they are until the next call;
 * returns their number, at most LITE_APP_MAX_OUTPUTS, or -1 with one line in `error`. */
typedef int (*lite_model_call)(void* user, int model, const lite_array* input, lite_array* outputs,
                               char* error, size_t error_bytes);

/* The pipeline of a file (`lite pipeline`), which must outlive it. */
LITE_API lite_app* lite_app_open(lite_file*, const lite_options* options, char* error,
                                 size_t error_bytes);
/* A pipeline whose models the caller runs. */
LITE_API lite_app* lite_app_make(const char* json, size_t bytes, lite_model_call call, void* user,
                                 char* error, size_t error_bytes);
LITE_API void lite_app_free(lite_app*);
/* `input` are the bytes of a JPEG, PNG or BMP file, or of a WAV file. 0 when it ran. */
LITE_API int lite_app_run(lite_app*, const void* input, size_t bytes, char* error, size_t error_bytes);
/* What was found in the last image or sound, as JSON; with its stages' times where `times` is not 0. Valid
 * until the next call; NULL when nothing ran or memory does not suffice. */
LITE_API const char* lite_app_answer(lite_app*, int times);
/* The last image with the answer drawn on it, as a PNG file. Valid until the next call;
 * NULL for a sound. */
LITE_API const void* lite_app_drawn(lite_app*, size_t* bytes);
/* Frames of a camera or a video through the pipeline of a file, which must outlive it: at most `waiting` frames
 * wait, `workers` are worked on at the same time. Functions may be called from any thread, lite_stream_next by
 * one at a time. */
typedef struct lite_stream lite_stream;

typedef struct {
  int64_t number;      /* of the frame, from 0 */
  const char* answer;  /* as lite_app_answer, or why there is none; valid until the next call */
  int32_t failed;      /* the frame could not be answered */
  double latency_ms;   /* from lite_stream_put to the answer */
} lite_frame;

/* Answered and dropped since the start; frames in a second and mean latency of the last 30 answers. */
typedef struct {
  int64_t answered, dropped;
  double per_second, latency_ms;
} lite_rates;

LITE_API lite_stream* lite_stream_open(lite_file*, const lite_options* options, int32_t waiting,
                                       int32_t workers, char* error, size_t error_bytes);
/* Copies the frame and returns its number. When `waiting` frames wait, the oldest is dropped where `drop` is
 * not 0; otherwise this waits. -1 after lite_stream_end or without memory. */
LITE_API int64_t lite_stream_put(lite_stream*, const void* frame, size_t bytes, int32_t drop);
/* No more frames come. */
LITE_API void lite_stream_end(lite_stream*);
/* The next answer in the order of the frames: 1, or 0 when none is ready. With `wait` it is 0 only after the
 * last one. */
LITE_API int32_t lite_stream_next(lite_stream*, int32_t wait, lite_frame* frame);
LITE_API void lite_stream_rates(lite_stream*, lite_rates*);
LITE_API void lite_stream_close(lite_stream*);

/* What a model's outputs mean, read as a pipeline reads them. `json` has `outputs` (scale and zero_point of
 * each), `labels`, `read` and `placed`: width and height of the input, and of the image in it, and the image's
 * left and top. With `picture`, the image's own width and height, things have their masks as COCO's run lengths. The
 * answer is JSON, with places as parts of the image; free it with lite_text_free. NULL with one line in `error`. */
LITE_API char* lite_outputs_read(const char* json, size_t bytes, const lite_array* outputs, int count,
                                 char* error, size_t error_bytes);
/* A JPEG, PNG or BMP file's pixels, upright: height * width * 3 bytes, red first. Free them with
 * lite_text_free. NULL with one line in `error`. */
LITE_API uint8_t* lite_image_decode(const void* file, size_t bytes, int32_t* width, int32_t* height,
                                    char* error, size_t error_bytes);

#ifdef __cplusplus
}
#endif
#endif
