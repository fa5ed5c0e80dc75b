#include "plugins.h"

#include <stdio.h>

#include <atomic>

#include "../opencl/kernel_texts.h"
#include "../runtime/lite_file.h"

namespace lite {

namespace {

constexpr int kMaxRows = 1024;

struct Row {
  Kernel kernel;  // first: a step's kernel is its row
  lite_plugin_kernel own;
  char op[128], library[48];
};

// Rows are never changed once `count` says that they are there.
Row rows[kMaxRows];
std::atomic<int> count{0};
std::atomic_flag adding = ATOMIC_FLAG_INIT;

// What a step keeps: the call with its tensors and attributes behind it.
struct State {
  const Row* row;
  lite_plugin_call call;
  lite_plugin_tensor* tensors;
  std::atomic<bool> failed;
  char error[300];
};

const Row* row_of(const Step& step) { return reinterpret_cast<const Row*>(step.kernel); }

void fill(lite_plugin_tensor* out, const Tensor* t) {
  if (!t) return;
  *out = {t->name, static_cast<int32_t>(t->dtype), t->rank, {}, t->size, t->bytes,
          is_weight(*t) ? t->data : nullptr};
  memcpy(out->dims, t->dims, sizeof out->dims);
}

bool prepare(Step& step, Env& env) {
  const Row* row = row_of(step);
  const size_t tensors = static_cast<size_t>(step.num_inputs) + step.num_outputs;
  const size_t tensor_bytes = tensors * sizeof(lite_plugin_tensor);
  const size_t attr_bytes = static_cast<size_t>(step.num_attrs) * sizeof(lite_plugin_attr);
  auto* block = static_cast<uint8_t*>(env.allocate(sizeof(State) + tensor_bytes + attr_bytes));
  if (!block) return env.out_of_memory();
  State* state = reinterpret_cast<State*>(block);
  state->row = row;
  state->tensors = reinterpret_cast<lite_plugin_tensor*>(block + sizeof(State));
  auto* attrs = reinterpret_cast<lite_plugin_attr*>(block + sizeof(State) + tensor_bytes);
  for (int i = 0; i < step.num_inputs; ++i) fill(&state->tensors[i], step.inputs[i]);
  for (int i = 0; i < step.num_outputs; ++i)
    fill(&state->tensors[step.num_inputs + i], step.outputs[i]);
  for (int i = 0; i < step.num_attrs; ++i) {
    const Attr& a = step.attrs[i];
    attrs[i] = {a.name, static_cast<int32_t>(a.kind), a.count, a.ints};
  }
  state->call = {step.op, step.name, step.num_inputs, step.num_outputs, step.num_attrs,
                 state->tensors, state->tensors + step.num_inputs, attrs, env.threads, nullptr,
                 state->error, sizeof state->error};
  if (row->own.prepare && row->own.prepare(&state->call))
    return env.fail("%s: %s", row->library, *state->error ? state->error : "refused without a reason");
  step.state = state;  // from here on it is released with the program
  step.phases = 2;
  return true;
}

void run(const Step& step, int phase, int thread, int threads, void*) {
  State* state = static_cast<State*>(step.state);
  if (phase == 0) {  // addresses may be others in each run
    if (thread != 0) return;
    for (int i = 0; i < step.num_inputs; ++i)
      if (step.inputs[i]) state->tensors[i].data = step.inputs[i]->data;
    for (int i = 0; i < step.num_outputs; ++i)
      if (step.outputs[i]) state->tensors[step.num_inputs + i].data = step.outputs[i]->data;
    state->failed.store(false);
    return;
  }
  char error[sizeof state->error] = "";
  lite_plugin_call call = state->call;
  call.error = error;
  if (!state->row->own.run(&call, thread, threads)) return;
  if (state->failed.exchange(true)) return;
  snprintf(state->error, sizeof state->error, "%s", *error ? error : "failed without a reason");
}

}  // namespace

bool add_plugin(const lite_plugin* plugin, const char* path, char* error, size_t error_bytes) {
  if (plugin->abi != LITE_PLUGIN_ABI) {
    snprintf(error, error_bytes, "%s has plug-in ABI %d, this runtime has %d; compile it with this "
             "runtime's lite_plugin.h", path, plugin->abi, LITE_PLUGIN_ABI);
    return false;
  }
  while (adding.test_and_set()) {}  // held for as long as a table is copied
  int at = count.load();
  const char* wrong = plugin->num_kernels < 0 || !plugin->kernels ? "has no table of kernels" : nullptr;
  if (!wrong && plugin->num_kernels > kMaxRows - at) wrong = "has more kernels than fit";
  for (int i = 0; !wrong && i < plugin->num_kernels; ++i) {
    const lite_plugin_kernel& own = plugin->kernels[i];
    if (!own.op || !own.run || strlen(own.op) >= sizeof rows[0].op || strchr(own.op, ' '))
      wrong = "has a kernel without run, or with an operator that is not one word";
  }
  for (int i = 0; !wrong && i < plugin->num_kernels; ++i) {
    const char* library;
    const Kernel* newest = plugin_kernel(plugin->kernels[i].op, &library);
    if (newest && reinterpret_cast<const Row*>(newest)->own.run == plugin->kernels[i].run) continue;
    Row& row = rows[at++];
    row.own = plugin->kernels[i];
    snprintf(row.op, sizeof row.op, "%s", row.own.op);
    snprintf(row.library, sizeof row.library, "%s", plugin->name ? plugin->name : "library");
    const uint32_t flags = row.own.flags & LITE_PLUGIN_ONE_THREAD ? uint32_t{kOneThread} : 0;
    row.kernel = {row.op, kPluginKernel, prepare, run, flags};
  }
  if (!wrong) count.store(at);
  adding.clear();
  if (wrong) snprintf(error, error_bytes, "%s %s", path, wrong);
  return !wrong;
}

const Kernel* plugin_kernel(const char* op, const char** library) {
  for (int i = count.load() - 1; i >= 0; --i)
    if (strcmp(rows[i].op, op) == 0) return *library = rows[i].library, &rows[i].kernel;
  return nullptr;
}

bool plugins_succeeded(lite_program* p) {
  for (int i = 0; p->has_plugins && i < p->program.num_steps; ++i) {
    const Step& step = p->program.steps[i];
    if (!step.kernel || step.kernel->run != run) continue;
    const State* state = static_cast<const State*>(step.state);
    if (state->failed.load())
      return p->env.fail("layer '%s' (%s): %s: %s", step.name, step.op, state->row->library, state->error);
  }
  return true;
}

void release_plugins(lite_program* p) {
  for (int i = 0; p->has_plugins && i < p->program.num_steps; ++i) {
    const Step& step = p->program.steps[i];
    if (!step.kernel || step.kernel->run != run || !step.state) continue;
    State* state = static_cast<State*>(step.state);
    if (state->row->own.release) state->row->own.release(&state->call);
  }
}

}  // namespace lite

extern "C" {

int lite_file_trust(const lite_file* file, char* error, size_t error_bytes) {
  for (int i = 0; i < 10; ++i) {
    char tag[9];
    snprintf(tag, sizeof tag, "LIB%d.%s", i, lite::section_word(lite_target()));
    size_t size = 0;
    const void* bytes = lite_file_section(file, tag, &size);
    if (!bytes) break;
    const lite_plugin* plugin = lite::open_plugin_bytes(bytes, size, error, error_bytes);
    if (!plugin || !lite::add_plugin(plugin, tag, error, error_bytes)) return -1;
  }
  for (int i = 0; i < 10; ++i) {
    char tag[9], why[200];
    snprintf(tag, sizeof tag, "CLTEXT.%d", i);
    size_t size = 0;
    const void* text = lite_file_section(file, tag, &size);
    if (!text) break;
    if (lite::opencl::add_kernel_text(static_cast<const char*>(text), size, why, sizeof why)) continue;
    snprintf(error, error_bytes, "%s %s", tag, why);
    return -1;
  }
  return 0;
}

int lite_plugin_load(const char* path, char* error, size_t error_bytes) {
  const size_t length = strlen(path);
  if (length > 3 && strcmp(path + length - 3, ".cl") == 0) {
    char why[200];
    if (lite::opencl::load_kernel_text(path, why, sizeof why)) return 0;
    snprintf(error, error_bytes, "%s %s", path, why);
    return -1;
  }
  const lite_plugin* plugin = lite::open_plugin(path, error, error_bytes);
  return plugin && lite::add_plugin(plugin, path, error, error_bytes) ? 0 : -1;
}

}  // extern "C"
