// The answer on the photo: frames in a colour per class, masks half transparent, and labels in a small font of
// capital letters and digits (other letters stay out; the JSON has them).
#include <ctype.h>
#include <math.h>
#include <stdio.h>

#include <algorithm>

#include "app.h"

namespace lite::app {

namespace {

// Five rows of three bits per glyph, the upper left bit first.
struct Glyph {
  char letter;
  uint16_t rows;
};
const Glyph kFont[] = {
    {'0', 075557}, {'1', 026227}, {'2', 071747}, {'3', 071717}, {'4', 055711}, {'5', 074717},
    {'6', 074757}, {'7', 071222}, {'8', 075757}, {'9', 075717}, {'A', 025755}, {'B', 065656},
    {'C', 034443}, {'D', 065556}, {'E', 074647}, {'F', 074644}, {'G', 034553}, {'H', 055755},
    {'I', 072227}, {'J', 011152}, {'K', 055655}, {'L', 044447}, {'M', 057755}, {'N', 065555},
    {'O', 025552}, {'P', 065644}, {'Q', 025563}, {'R', 065655}, {'S', 034216}, {'T', 072222},
    {'U', 055557}, {'V', 055552}, {'W', 055775}, {'X', 055255}, {'Y', 055222}, {'Z', 071247},
    {'.', 000002}, {'-', 000700}, {':', 002020}, {'%', 051245}, {'/', 011244}, {',', 000024}};

const uint8_t kColours[8][3] = {{230, 60, 60},  {40, 160, 80}, {50, 110, 220}, {230, 160, 20},
                                {150, 70, 190}, {20, 170, 180}, {240, 110, 170}, {120, 90, 50}};

struct Pen {
  Image* on;
  const uint8_t* colour;
  int wide;
  void dot(int x, int y, int size) {
    for (int v = std::max(y, 0); v < std::min(y + size, on->height); ++v)
      for (int u = std::max(x, 0); u < std::min(x + size, on->width); ++u) memcpy(on->at(u, v), colour, 3);
  }
  void line(const double* a, const double* b) {
    const double length = std::max(fabs(b[0] - a[0]), fabs(b[1] - a[1]));
    const int steps = static_cast<int>(std::min(std::max(length, 1.0), 1e6));
    for (int i = 0; i <= steps; ++i) {
      const double t = static_cast<double>(i) / steps;
      const double x = a[0] + (b[0] - a[0]) * t, y = a[1] + (b[1] - a[1]) * t;
      if (fabs(x) < 1e6 && fabs(y) < 1e6) dot(static_cast<int>(x) - wide / 2, static_cast<int>(y) - wide / 2, wide);
    }
  }
  void text(int x, int y, const char* text) {
    const int cell = wide;
    int length = 0;
    for (const char* c = text; *c; ++c) length += (*c & 0xC0) != 0x80;
    x = std::max(0, std::min(x, on->width - length * 4 * cell));
    y = std::max(0, y);
    for (int v = y; v < std::min(y + 7 * cell, on->height); ++v)
      for (int u = x; u < std::min(x + (length * 4 + 1) * cell, on->width); ++u) memcpy(on->at(u, v), colour, 3);
    static const uint8_t white[3] = {255, 255, 255};
    Pen pen{on, white, wide};
    for (; *text; ++text) {
      if ((*text & 0xC0) == 0x80) continue;
      for (const Glyph& g : kFont)
        if (g.letter == toupper(static_cast<unsigned char>(*text)))
          for (int i = 0; i < 15; ++i)
            if (g.rows >> (14 - i) & 1) pen.dot(x + cell * (1 + i % 3), y + cell * (1 + i / 3), cell);
      x += 4 * cell;
    }
  }
};

// Half of the pixel, half of a colour.
void blend(const uint8_t* colour, uint8_t* pixel) {
  for (int c = 0; c < 3; ++c) pixel[c] = static_cast<uint8_t>((pixel[c] + colour[c]) / 2);
}

// Class 0 is the background unless it has a colour of its own.
void colour_mask(const Answer& a, const Reading& how, const View& view, Image* out) {
  const int own = static_cast<int>(how.colors.size() / 3);
  for (int y = 0; y < out->height; ++y)
    for (int x = 0; x < out->width; ++x) {
      const int u = static_cast<int>(int64_t{x} * a.mask_w / view.image.width);
      const int v = static_cast<int>(int64_t{y} * a.mask_h / view.image.height);
      if (u >= a.mask_w || v >= a.mask_h) continue;
      const int number = a.mask[static_cast<size_t>(v) * a.mask_w + u];
      const uint8_t* colour = own ? &how.colors[3 * (number % own)] : kColours[number % 8];
      if (number || own) blend(colour, out->at(x, y));
    }
}

// What later models said of a part, else its own label.
void caption(const App& app, const Answer& a, const Found& f, char* out, size_t bytes) {
  char room[24];
  for (const Answer* own = f.crop ? f.crop->answers : nullptr; own; own = own->next) {
    if (own->kind == Kind::kText) snprintf(out, bytes, "%s", own->text.data());
    else if (own->kind == Kind::kTop && !own->next && !own->classes.empty())
      snprintf(out, bytes, "%s", app.models[own->model]->reading.name(own->classes[0].index, room, sizeof room));
    else continue;
    return;
  }
  if (a.kind == Kind::kBoxes)
    snprintf(out, bytes, "%s %.0f%%", app.models[a.model]->reading.name(f.index, room, sizeof room),
             100.0 * static_cast<double>(f.score));
}

void draw_view(const App& app, const View& view, Image* out) {
  const int wide = std::max(2, std::min(out->width, out->height) / 200);
  for (const Answer* a = view.answers; a; a = a->next) {
    if (a->kind == Kind::kMask && &view == app.photo) colour_mask(*a, app.models[a->model]->reading, view, out);
    if ((a->kind == Kind::kTop || a->kind == Kind::kVector) && &view == app.photo && !a->classes.empty()) {
      char line[96], room[24];
      snprintf(line, sizeof line, "%.60s %.2f",
               app.models[a->model]->reading.name(a->classes[0].index, room, sizeof room),
               static_cast<double>(a->classes[0].score));
      Pen{out, kColours[2], wide}.text(0, 0, line);
    }
    for (const Found& f : a->found) {
      const float square[8] = {f.box[0], f.box[1], f.box[2], f.box[1], f.box[2], f.box[3], f.box[0], f.box[3]};
      const float* p = f.slanted ? f.corners : square;
      double at[4][2];
      for (int i = 0; i < 4; ++i)
        to_photo(view, static_cast<double>(p[2 * i]) * view.image.width,
                 static_cast<double>(p[2 * i + 1]) * view.image.height, at[i]);
      Pen pen{out, kColours[static_cast<uint32_t>(f.index) % 8], wide};
      const MaskPixels mask(*app.photo, view, *a, f);
      for (int y = mask.y0; y < mask.y1; ++y)
        for (int x = mask.x0; x < mask.x1; ++x)
          if (mask.at(x, y)) blend(pen.colour, out->at(x, y));
      for (int i = 0; i < 4; ++i) pen.line(at[i], at[(i + 1) % 4]);
      for (int32_t k = 0; k < f.num_points; ++k) {
        const Keypoint& p = a->points[f.first_point + k];
        double to[2];
        to_photo(view, static_cast<double>(p.x) * view.image.width, static_cast<double>(p.y) * view.image.height, to);
        pen.line(to, to);
      }
      char line[96] = "";
      caption(app, *a, f, line, sizeof line);
      if (*line) pen.text(static_cast<int>(at[0][0]), static_cast<int>(at[0][1]) - 7 * wide, line);
      if (f.crop) draw_view(app, *f.crop, out);
    }
  }
}

}  // namespace

bool draw_answer(const App& app, Image* out) {
  const Answer* last = app.photo->last();
  const Image& photo = last && last->kind == Kind::kImage ? last->image : app.photo->image;
  if (!out->make(photo.width, photo.height)) return false;
  memcpy(out->pixels.data(), photo.pixels.data(), photo.pixels.size());
  if (&photo == &app.photo->image) draw_view(app, *app.photo, out);
  return true;
}

}  // namespace lite::app
