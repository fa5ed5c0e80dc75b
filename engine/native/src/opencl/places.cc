#include "places.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

namespace lite::opencl {

namespace {

struct Place {
  const char *kind, *name;
};
const Place kPlaces[] = {
#define LITE_PLACE(kind, name) {kind, name},
#include "opencl_places.inc"
#undef LITE_PLACE
};

struct List {
  Candidate* out;
  int count;

  void add(const char* library, Group group, const char* found_by, const char* file = nullptr) {
    if (!*library || strlen(library) >= sizeof out->library || count == kMaxCandidates) return;
    for (int i = 0; i < count; ++i)
      if (strcmp(out[i].library, library) == 0) return;
    Candidate* c = &out[count++];
    snprintf(c->library, sizeof c->library, "%s", library);
    snprintf(c->found_by, sizeof c->found_by, file ? "%.90s/%.60s" : "%.90s", found_by, file);
    c->group = group;
  }
};

bool ends_with(const char* text, const char* end) {
  const size_t a = strlen(text), b = strlen(end);
  return a >= b && strcmp(text + a - b, end) == 0;
}

// An .icd file's first line; the file itself when it has none, so that it is told.
void add_icd(List* list, const char* path, const char* found_by) {
  char line[600] = "";
  if (FILE* file = fopen(path, "r")) {
    while (fgets(line, sizeof line, file)) {
      if (line[strspn(line, " \t\r\n")]) break;
      line[0] = 0;
    }
    fclose(file);
  }
  char* start = line + strspn(line, " \t\r\n");
  size_t length = strlen(start);
  while (length && isspace(static_cast<unsigned char>(start[length - 1]))) start[--length] = 0;
  const char* name = strrchr(path, '/');
  list->add(*start ? start : path, Group::kDriver, found_by, name ? name + 1 : path);
}

int by_name(const void* a, const void* b) {
  return strcmp(*static_cast<char* const*>(a), *static_cast<char* const*>(b));
}

// Libraries named by a folder of .icd files, by one such file, or a library itself.
void add_icds(List* list, const char* place, const char* found_by) {
  if (ends_with(place, ".icd")) return add_icd(list, place, found_by);
  DIR* folder = opendir(place);
  if (!folder) {
    if (errno == ENOTDIR) list->add(place, Group::kDriver, found_by);
    return;
  }
  char* paths[kMaxCandidates];
  int count = 0;
  while (const dirent* entry = readdir(folder)) {
    if (!ends_with(entry->d_name, ".icd") || count == kMaxCandidates) continue;
    char path[1024];
    snprintf(path, sizeof path, "%.700s/%.300s", place, entry->d_name);
    if ((paths[count] = strdup(path))) ++count;
  }
  closedir(folder);
  qsort(paths, count, sizeof *paths, by_name);
  for (int i = 0; i < count; ++i) {
    add_icd(list, paths[i], found_by);
    free(paths[i]);
  }
}

}  // namespace

int list_candidates(Candidate out[kMaxCandidates]) {
  List list{out, 0};
  const char* named = getenv("LITE_OPENCL_LIBRARY");
  const char* vendors = getenv("OCL_ICD_VENDORS");
  if (named) list.add(named, Group::kNamed, "LITE_OPENCL_LIBRARY");
  if (vendors && *vendors) add_icds(&list, vendors, "OCL_ICD_VENDORS");
  for (const Place& place : kPlaces) {
    if (strcmp(place.kind, "icd-folder") == 0) {
      if (!vendors || !*vendors) add_icds(&list, place.name, place.name);
    } else if (strcmp(place.kind, "loader") == 0) {
      list.add(place.name, Group::kLoader, "loader");
    } else if (strcmp(place.kind, "vendor-library") == 0) {
      list.add(place.name, Group::kVendor, "vendor library");
    } else if (access(place.name, F_OK) == 0) {
      list.add(place.name, Group::kVendor, "vendor path");
    }
  }
  return list.count;
}

}  // namespace lite::opencl
