// Every library that may be OpenCL's, in the order of preference. The places are those of
// backends/opencl/places.txt, which the doctor reads too.
#pragma once

namespace lite::opencl {

constexpr int kMaxCandidates = 64;

// Candidates of one group stand in for each other: the first group with a platform is used.
enum class Group { kNamed, kDriver, kLoader, kVendor };

struct Candidate {
  char library[512];
  char found_by[160];
  Group group;
};

// LITE_OPENCL_LIBRARY, what OCL_ICD_VENDORS or the .icd folders name, the loaders, the vendors' own
// libraries; each once. Returns their number.
int list_candidates(Candidate out[kMaxCandidates]);

}  // namespace lite::opencl
