// What OpenCL is on this machine, as JSON, and the parts that other processes play.
#include <stdlib.h>
#include <string.h>

#include "blake2b.h"
#include "child.h"
#include "kernel_texts.h"
#include "lite_runtime.h"
#include "load_trial.h"
#include "opening.h"

namespace lite::opencl {

namespace {

void add_libraries(const Attempt* attempts, int count, Text* out) {
  out->add("\"libraries\": [");
  for (int i = 0; i < count; ++i) {
    const Attempt& a = attempts[i];
    const struct {
      const char *key, *text;
    } texts[] = {{"library", a.candidate.library}, {"found_by", a.candidate.found_by},
                 {"state", a.kind}, {"reason", a.reason}, {"fix", a.fix}};
    out->add(i ? ",\n  {" : "\n  {");
    for (const auto& t : texts) {
      out->add("%s\"%s\": ", t.key == texts[0].key ? "" : ", ", t.key);
      out->add_json(t.text);
    }
    out->add("}");
  }
  out->add("]");
}

// Numbered as open_device does.
void add_devices(const Attempt* attempts, int count, Text* out) {
  int index = 0;
  out->add("\"devices\": [");
  for (int i = 0; i < count; ++i) {
    for (const char* at = attempts[i].devices.text(); *at;) {
      const char* end = strchr(at, '\n');
      out->add("%s{\"index\": %d, \"library\": ", index ? ",\n  " : "\n  ", index);
      out->add_json(attempts[i].candidate.library);
      out->add(", ");
      out->add_bytes(at + 1, end - at - 1);
      ++index;
      at = end + 1;
    }
  }
  out->add("]");
}

void add_kernels(Text* out) {
  out->add("\"kernels\": {");
  for (int i = 0; const KernelText* text = kernel_text(i); ++i) {
    char hex[65];
    to_hex(text->digest, sizeof text->digest, hex);
    out->add("%s\"%s\": \"%s\"", i ? ",\n  " : "\n  ", text->name, hex);
  }
  out->add("}");
}

}  // namespace

}  // namespace lite::opencl

using namespace lite::opencl;

char* lite_opencl_report(const char* runner, int32_t timeout_s) {
  Attempt* attempts = static_cast<Attempt*>(calloc(kMaxCandidates, sizeof(Attempt)));
  if (!attempts) return nullptr;
  const Probing how{runner, timeout_s};
  const int count = attempt_all(attempts, how);
  ask_devices(attempts, count, how);
  Text out;
  out.add("{\"version\": \"%s\", \"target\": \"%s\",\n ", lite_version(), lite_target());
  add_libraries(attempts, count, &out);
  out.add(",\n ");
  add_devices(attempts, count, &out);
  out.add(",\n ");
  add_kernels(&out);
  out.add("}\n");
  for (int i = 0; i < count; ++i) attempts[i].devices.release();
  free(attempts);
  if (out.failed) out.release();
  return out.data;
}

void lite_text_free(void* text) { free(text); }

int lite_opencl_child(int argc, char** argv) {
  if (argc < 2) return kNotStarted;
  const bool devices = strcmp(argv[1], "--probe-opencl-devices") == 0;
  if (devices || strcmp(argv[1], "--probe-opencl") == 0) {
    answer_probe(kAnswerFd, devices, argv + 2, argc - 2);
    return 0;
  }
  if (strcmp(argv[1], "--probe-program") == 0 && argc == 6)
    return answer_trial(argv[2], argv[3], argv[4], argv[5]);
  return kNotStarted;
}
