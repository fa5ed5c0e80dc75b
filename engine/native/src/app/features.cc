#include <math.h>

#include "sound.h"

namespace lite::app {

namespace {

struct Complex {
  double re, im;
};

// In place, of a power of two (Cooley and Tukey, 1965).
void fft(Complex* x, int n) {
  for (int i = 1, k = 0; i < n; ++i) {
    int bit = n >> 1;
    for (; k & bit; bit >>= 1) k ^= bit;
    k ^= bit;
    if (i < k) {
      const Complex held = x[i];
      x[i] = x[k];
      x[k] = held;
    }
  }
  for (int half = 1; half < n; half *= 2) {
    for (int k = 0; k < half; ++k) {
      const double angle = -M_PI * k / half, c = cos(angle), s = sin(angle);
      for (int i = k; i < n; i += 2 * half) {
        Complex& a = x[i];
        Complex& b = x[i + half];
        const Complex t{b.re * c - b.im * s, b.re * s + b.im * c};
        b = {a.re - t.re, a.im - t.im};
        a = {a.re + t.re, a.im + t.im};
      }
    }
  }
}

double mel(double hertz) { return 1127.0 * log(1 + hertz / 700.0); }

// Per bin the filter below its frequency (-1: none) and that filter's share; the next one has the rest.
struct Bank {
  Array<int32_t> band;
  Array<double> share;
  int first, last;
};

bool make_bank(const Features& f, int bins, Bank* bank) {
  const double bottom = mel(f.low), top = mel(f.high), width = 0.5 * static_cast<double>(f.rate) / (bins - 1);
  const double step = (top - bottom) / static_cast<double>(f.filters + 1);
  bank->first = static_cast<int>(1.5 + f.low / width);
  bank->last = static_cast<int>(f.high / width);
  if (bank->last > bins - 1) bank->last = bins - 1;
  if (!bank->band.resize(bins) || !bank->share.resize(bins)) return false;
  for (int i = bank->first; i <= bank->last; ++i) {
    const double at = mel(i * width);
    int band = -1;
    while (band + 1 < f.filters && bottom + step * (band + 2) < at) ++band;
    const double left = bottom + step * (band + 1), right = bottom + step * (band + 2);
    bank->band[i] = band;
    bank->share[i] = (right - at) / (right - left);
  }
  return true;
}

}  // namespace

const char* Features::read(Json::Value from) {
  const char* wrong = "features: a number is out of reach";
  if (!from.is(Json::kObject) || !from["rate"].whole(1000, 192000, &rate) ||
      !from["samples"].whole(1, 1 << 24, &samples) || !from["window"].whole(2, 65536, &window) ||
      !from["stride"].whole(1, 65536, &stride) || !from["filters"].whole(1, 512, &filters) ||
      !from["coefficients"].whole(1, 512, &coefficients))
    return wrong;
  low = from["low"].number(20);
  high = from["high"].number(4000);
  if (!(low >= 0 && low < high && high <= 96000) || coefficients > filters || frames() < 1 ||
      frames() > (1 << 20) / coefficients)
    return wrong;
  return nullptr;
}

const char* Features::apply(const Sound& sound, Array<uint8_t>* out) const {
  if (sound.rate != rate) return "wants sound at another sample rate; convert the file";
  int n = 1;
  while (n < window) n *= 2;
  const int bins = n / 2 + 1;
  Bank bank;
  Array<Complex> x;
  Array<double> energy, hann, cosines;
  const double turn = M_PI / static_cast<double>(filters);
  if (!make_bank(*this, bins, &bank) || !x.resize(n) || !energy.resize(filters) || !hann.resize(window) ||
      !cosines.resize(filters * coefficients) || !out->resize(frames() * coefficients * 4))
    return "does not fit in memory";
  for (int64_t i = 0; i < window; ++i)
    hann[i] = 0.5 - 0.5 * cos(2 * M_PI * static_cast<double>(i) / static_cast<double>(window));
  for (int64_t c = 0; c < coefficients; ++c)
    for (int64_t j = 0; j < filters; ++j)
      cosines[c * filters + j] = sqrt(2.0 / static_cast<double>(filters)) *
                                 cos(turn * static_cast<double>(c) * (static_cast<double>(j) + 0.5));
  for (int64_t frame = 0; frame < frames(); ++frame) {
    for (int i = 0; i < n; ++i) {
      const size_t at = static_cast<size_t>(frame * stride + i);
      const bool there = i < window && at < sound.samples.size() && at < static_cast<size_t>(samples);
      x[i] = {there ? static_cast<double>(sound.samples[at]) * hann[i] : 0, 0};
    }
    fft(x.data(), n);
    for (double& e : energy) e = 0;
    for (int i = bank.first; i <= bank.last; ++i) {
      // Models were trained on squares that lay in 32 bits.
      const float power = static_cast<float>(x[i].re * x[i].re + x[i].im * x[i].im);
      const double magnitude = sqrt(static_cast<double>(power));
      const int band = bank.band[i];
      if (band >= 0) energy[band] += magnitude * bank.share[i];
      if (band + 1 < filters) energy[band + 1] += magnitude * (1 - bank.share[i]);
    }
    for (double& e : energy) e = log(e > 1e-12 ? e : 1e-12);
    for (int64_t c = 0; c < coefficients; ++c) {
      double sum = 0;
      for (int64_t j = 0; j < filters; ++j) sum += energy[j] * cosines[c * filters + j];
      const float value = static_cast<float>(sum);
      memcpy(out->data() + 4 * (frame * coefficients + c), &value, 4);
    }
  }
  return nullptr;
}

}  // namespace lite::app
