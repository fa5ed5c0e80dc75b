// @NAME@: a photo in, the answer out, with liblite_runtime alone.
//
//   app @MODEL@ PHOTO [DRAWN.png]
//
// Prints the answer as JSON with each stage's time, and what it took on standard error; DRAWN.png is
// the photo with the answer on it.
#include <sys/resource.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>

#include "lite_runtime.h"

namespace {

struct Closer {
  void operator()(lite_file* file) const { lite_file_close(file); }
  void operator()(lite_app* app) const { lite_app_free(app); }
};

std::string read(const char* path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(std::string(path) + " cannot be read");
  return {std::istreambuf_iterator<char>(file), {}};
}

void run(const char* model, const char* photo, const char* drawn) {
  char error[1024] = "";
  const std::unique_ptr<lite_file, Closer> file(lite_file_open(model, error, sizeof error));
  if (!file) throw std::runtime_error(error);
  lite_options options{};  // all processors; the backend that the file prefers and that works here
  const std::unique_ptr<lite_app, Closer> app(
      lite_app_open(file.get(), &options, error, sizeof error));
  if (!app) throw std::runtime_error(error);
  const std::string image = read(photo);
  if (lite_app_run(app.get(), image.data(), image.size(), error, sizeof error))
    throw std::runtime_error(std::string(photo) + ": " + error);
  const char* answer = lite_app_answer(app.get(), 1);
  if (!answer) throw std::runtime_error("out of memory");
  std::fputs(answer, stdout);
  if (drawn) {
    std::size_t bytes = 0;
    const void* png = lite_app_drawn(app.get(), &bytes);
    std::ofstream out(drawn, std::ios::binary);
    if (!png || !out.write(static_cast<const char*>(png), static_cast<std::streamsize>(bytes)))
      throw std::runtime_error(std::string(drawn) + " cannot be written");
  }
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  std::fprintf(stderr, "peak memory: %.1f MB\n", static_cast<double>(used.ru_maxrss) / 1e3);
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 3) throw std::runtime_error("usage: app @MODEL@ PHOTO [DRAWN.png]");
  run(argv[1], argv[2], argc > 3 ? argv[3] : nullptr);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "error: %s\n", error.what());
  return 1;
}
