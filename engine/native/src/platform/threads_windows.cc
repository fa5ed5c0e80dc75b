#include "threads.h"

#include <string.h>
#include <windows.h>

namespace lite {

void sleep_while(std::atomic<int>& value, int old) {
  WaitOnAddress(&value, &old, sizeof old, INFINITE);
}

void wake_all(std::atomic<int>& value) { WakeByAddressAll(&value); }

// Of the processor group that the process lies in: at most 64 processors.
Affinity pin_thread(int index) {
  Affinity before{};
  DWORD_PTR allowed, system;
  if (!GetProcessAffinityMask(GetCurrentProcess(), &allowed, &system) || !allowed) return before;
  DWORD_PTR left = allowed;
  for (int skip = index % __builtin_popcountll(allowed); skip > 0; --skip) left &= left - 1;
  const DWORD_PTR was = SetThreadAffinityMask(GetCurrentThread(), left & -left);
  before.known = was != 0;
  memcpy(before.bits, &was, sizeof was);
  return before;
}

void restore_thread(const Affinity& before) {
  DWORD_PTR was;
  memcpy(&was, before.bits, sizeof was);
  if (before.known) SetThreadAffinityMask(GetCurrentThread(), was);
}

int usable_processors() {
  DWORD_PTR allowed, system;
  if (!GetProcessAffinityMask(GetCurrentProcess(), &allowed, &system) || !allowed) return 1;
  return __builtin_popcountll(allowed);
}

long this_process() { return static_cast<long>(GetCurrentProcessId()); }

}  // namespace lite
