// @NAME@: a photo in, the answer out, with liblite_runtime alone.
//
//   app @MODEL@ PHOTO [DRAWN.png]
//   app @MODEL@ --stream FOLDER
//
// Prints the answer as JSON with each stage's time, and what it took on standard error; DRAWN.png is
// the photo with the answer on it. The second form takes the files of a folder as frames of a video
// and prints a line of JSON for each, and the rates on standard error.
#include <dirent.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "lite_runtime.h"

namespace {

struct Closer {
  void operator()(DIR* folder) const { closedir(folder); }
  void operator()(lite_file* file) const { lite_file_close(file); }
  void operator()(lite_app* app) const { lite_app_free(app); }
  void operator()(lite_stream* stream) const { lite_stream_close(stream); }
};

// Nothing of a file that cannot be read.
std::string read(const char* path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

std::unique_ptr<lite_file, Closer> open(const char* model) {
  char error[1024] = "";
  std::unique_ptr<lite_file, Closer> file(lite_file_open(model, error, sizeof error));
  if (!file) throw std::runtime_error(error);
  return file;
}

void run(const char* model, const char* photo, const char* drawn) {
  char error[1024] = "";
  const auto file = open(model);
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
}

// In one line: the answer's own line breaks become spaces; a frame that cannot be read has a reason.
void tell(const lite_frame& frame) {
  std::string text = frame.answer;
  std::replace(text.begin(), text.end(), '\n', ' ');
  std::printf("{\"frame\": %lld, \"latency_ms\": %.3f, ", static_cast<long long>(frame.number),
              frame.latency_ms);
  if (frame.failed) {
    std::string quoted;
    for (const char c : text) quoted += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
    std::printf("\"error\": \"%s\"}\n", quoted.c_str());
  } else {
    std::printf("\"answer\": %s}\n", text.c_str());
  }
}

// A folder, a pipe, a device. A link that leads nowhere is none: it is a frame that cannot be read.
bool is_other_than_file(const std::string& path) {
  struct stat found{};
  return stat(path.c_str(), &found) == 0 && !S_ISREG(found.st_mode);
}

// By name, but for hidden ones.
std::vector<std::string> files_of(const std::string& folder) {
  const std::unique_ptr<DIR, Closer> open(opendir(folder.c_str()));
  if (!open) throw std::runtime_error(folder + " is not a folder that can be read");
  std::vector<std::string> files;
  while (const dirent* entry = readdir(open.get())) {
    const std::string path = folder + "/" + entry->d_name;
    if (entry->d_name[0] != '.' && !is_other_than_file(path)) files.push_back(path);
  }
  std::sort(files.begin(), files.end());
  return files;
}

void stream(const char* model, const char* folder) {
  constexpr int waiting = 2, workers = 2;  // while one frame is in a model, the next one is decoded
  constexpr int drop = 0;  // 1 for a camera, which does not wait: the newest frame wins
  char error[1024] = "";
  const std::vector<std::string> frames = files_of(folder);
  const auto file = open(model);
  lite_options options{};
  const std::unique_ptr<lite_stream, Closer> running(
      lite_stream_open(file.get(), &options, waiting, workers, error, sizeof error));
  if (!running) throw std::runtime_error(error);
  lite_frame answered;
  for (const std::string& path : frames) {
    const std::string frame = read(path.c_str());
    if (lite_stream_put(running.get(), frame.data(), frame.size(), drop) < 0)
      throw std::runtime_error("out of memory");
    while (lite_stream_next(running.get(), 0, &answered)) tell(answered);
  }
  lite_stream_end(running.get());
  while (lite_stream_next(running.get(), 1, &answered)) tell(answered);
  lite_rates rates{};
  lite_stream_rates(running.get(), &rates);
  std::fprintf(stderr, "%lld frames, %lld dropped: %.1f frames/s, latency %.0f ms\n",
               static_cast<long long>(rates.answered), static_cast<long long>(rates.dropped),
               rates.per_second, rates.latency_ms);
}

void tell_memory() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  std::fprintf(stderr, "peak memory: %.1f MB\n", static_cast<double>(used.ru_maxrss) / 1e3);
}

}  // namespace

int main(int argc, char** argv) try {
  const bool frames = argc > 2 && std::string(argv[2]) == "--stream";
  if (argc < 3 || argc > 4 || (frames && argc < 4))
    throw std::runtime_error("usage: app @MODEL@ PHOTO [DRAWN.png] | --stream FOLDER");
  if (frames)
    stream(argv[1], argv[3]);
  else
    run(argv[1], argv[2], argc > 3 ? argv[3] : nullptr);
  tell_memory();
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "error: %s\n", error.what());
  return 1;
}
