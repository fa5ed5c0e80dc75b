// A pipeline: models and the steps between them, from a photo to an answer (docs/pipelines.md).
#pragma once

#include "lite_runtime.h"
#include "opencl/text.h"
#include "reading.h"
#include "sound.h"

namespace lite::app {

// A picture under work: the whole photo, or a part that was cut out of it.
struct View {
  Image image;
  double back[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};  // its pixels → the photo's, a homography
  Answer* answers = nullptr;                     // in the order of the models
  ~View();
  Answer* last() const;
  void add(Answer* answer);
};

struct Model {
  const char* name;
  Preprocess preprocess;  // of an image
  Features features;      // of a sound
  Reading reading;
  int dtype = 1;  // of the input
  int64_t batch = 1;  // pictures that it takes at once
  Quant input;
  Array<Quant> outputs;
};

struct Stage {
  enum Kind { kModel, kCrop, kTurn } kind;
  int model;           // kModel; kTurn: whose answer decides
  double grow;         // kCrop: of a side, on each side
  const char* label;   // kTurn
  double above;        // kTurn
  int64_t limit;       // kCrop: at most so many, the best
  char name[64];
  int64_t nanoseconds, prepare_ns, model_ns, read_ns;
  int64_t items;
};

struct App {
  Json config;
  lite_model_call call = nullptr;
  void* user = nullptr;
  Array<Model*> models;
  Array<Stage> stages;
  bool hears = false;     // sounds come in, not images
  Sound sound;
  View* photo = nullptr;  // of a sound: a picture without pixels, for the answers
  int64_t decode_ns = 0, total_ns = 0;
  opencl::Text answer;
  Array<uint8_t> drawn;
  void* owned = nullptr;  // what a file's models are run with (app_file.cc)
  void (*release)(void*) = nullptr;
  ~App();
};

// Null, or why not: `json` is not a pipeline.
const char* read_pipeline(App* app, const char* json, size_t bytes);
// Null, or one line in `error`.
bool run_pipeline(App* app, Bytes photo, char* error, size_t bytes);
// How many outputs a program gives of its only input, or -1 and one line in `error`.
int run_program(lite_program* p, const lite_array* in, lite_array* out, char* error, size_t bytes);
// The answer as JSON, with the stages' times or without.
void write_answer(App* app, bool times);
// The photo with what was found on it.
bool draw_answer(const App& app, Image* out);
// Cuts `found` out of a view; slanted ones become upright. Null where memory does not suffice.
View* cut_out(const View& from, const Found& found, double grow);
// By half a turn.
void turn_half(View* view);
// A point of a view → the photo's pixels.
void to_photo(const View& view, double x, double y, double* out);

// Which pixels of the photo the mask of `found` has, all of them in x0...x1, y0...y1.
class MaskPixels {
 public:
  MaskPixels(const View& photo, const View& view, const Answer& answer, const Found& found);
  bool at(int x, int y) const;
  int x0 = 0, y0 = 0, x1 = 0, y1 = 0;

 private:
  const View& view_;
  const Answer& answer_;
  const Found& found_;
  double from_[9] = {};  // the photo's pixels → those of the view
};

// The mask of `found` as a member "mask" of JSON: how many of the photo's pixels lie outside and inside in turn, column
// by column, as COCO counts them.
void write_mask(opencl::Text* out, const View& photo, const View& view, const Answer& answer, const Found& found);

}  // namespace lite::app
