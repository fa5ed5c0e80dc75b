#include "lite_run_profile.h"

#include <stdlib.h>

#include "platform/files.h"
#include "screen.h"

void print_json_text(FILE* out, const char* text) {
  fputc('"', out);
  while (*text) {
    unsigned code;
    const int bytes = control_at(text, &code);
    if (bytes) fprintf(out, "\\u%04x", code);
    else if (*text == '"' || *text == '\\') fprintf(out, "\\%c", *text);
    else fputc(*text, out);
    text += bytes ? bytes : 1;
  }
  fputc('"', out);
}

namespace {

int compare_ns(const void* a, const void* b) {
  const int64_t x = *static_cast<const int64_t*>(a), y = *static_cast<const int64_t*>(b);
  return x < y ? -1 : x > y;
}

// A step's object up to the samples, left open.
void print_step(FILE* out, const lite_program* p, int step) {
  lite_step_info info;
  lite_program_step(p, step, &info);
  fprintf(out, "%s\n  {\"index\": %d, \"name\": ", step ? "," : "", step);
  print_json_text(out, info.name);
  fputs(", \"op\": ", out);
  print_json_text(out, info.op);
  fputs(", \"kernel\": ", out);
  print_json_text(out, info.kernel);
  fputs(", \"variant\": ", out);
  print_json_text(out, info.variant);
  fputs(", \"samples_ns\": [", out);
}

}  // namespace

bool write_profile(const lite_program* p, const char* path, int runs, const int64_t* times,
                   const WarmUp& before, bool adaptive, char* error, size_t error_bytes) {
  FILE* out = lite::open_file(path, "w");
  if (!out) {
    snprintf(error, error_bytes, "%s cannot be written", path);
    return false;
  }
  const int steps = lite_program_num_steps(p), stride = steps + 1;
  int64_t* column = static_cast<int64_t*>(malloc(runs * sizeof(int64_t)));
  if (!column) {
    fclose(out);
    snprintf(error, error_bytes, "out of memory");
    return false;
  }
  lite_memory_info memory;
  lite_program_memory(p, &memory);
  int64_t copied;
  const int64_t copies = lite_program_copies(p, &copied);
  fprintf(
      out,
      "{\"version\": \"%s\", \"target\": \"%s\", \"cpu\": \"%s\", \"threads\": %d, \"runs\": %d,\n"
      " \"first_run_ns\": %lld, \"arena_bytes\": %zu, \"packed_bytes\": %zu, "
      "\"scratch_bytes\": %zu, \"weight_bytes\": %zu,\n \"copies\": %lld, \"copied_bytes\": %lld, \"choice\": ",
      lite_version(), lite_target(), lite_cpu_features(), lite_program_threads(p), runs,
      static_cast<long long>(before.first_ns), memory.arena_bytes, memory.packed_bytes, memory.scratch_bytes,
      memory.weight_bytes, static_cast<long long>(copies), static_cast<long long>(copied));
  print_json_text(out, lite_program_choice(p));
  if (adaptive)
    fprintf(out, ",\n \"warm_up\": {\"runs\": %d, \"ns\": %lld, \"steady\": %s}", before.runs,
            static_cast<long long>(before.all_ns), before.steady ? "true" : "false");
  fputs(",\n \"steps\": [", out);
  for (int s = 0; s <= steps; ++s) {
    for (int r = 0; r < runs; ++r) column[r] = times[static_cast<int64_t>(r) * stride + s];
    if (s < steps) print_step(out, p, s);
    else fputs("],\n \"total_ns\": {\"samples\": [", out);
    for (int r = 0; r < runs; ++r)
      fprintf(out, r ? ", %lld" : "%lld", static_cast<long long>(column[r]));
    qsort(column, runs, sizeof(int64_t), compare_ns);
    const long long median = column[runs / 2], low = column[0];
    const long long p90 = column[(runs - 1) * 9 / 10];
    if (s == steps) {
      fprintf(out, "], \"median\": %lld, \"min\": %lld, \"p90\": %lld}}\n", median, low, p90);
      break;
    }
    fprintf(out, "], \"ns\": %lld, \"min_ns\": %lld}", median, low);
  }
  free(column);
  const bool good = fclose(out) == 0;
  if (!good) snprintf(error, error_bytes, "%s cannot be written; is the disk full?", path);
  return good;
}
