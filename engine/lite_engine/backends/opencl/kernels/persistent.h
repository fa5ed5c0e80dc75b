// Beginning of a program that does many launches with one kernel (persistent_text.py). A kernel's text is here a
// function that does one work-group of a launch: which one and which item are arguments, and its arrays in
// local memory lie in `arena_`, from `at_` on. Groups of fewer items than the kernel has lie side by side, `beside_` is their place.
#define GROUP_PLACE                                                                                   \
  const int gx_, const int gy_, const int gz_, const int lx_, const int ly_, const int sx_, const int sy_, \
      const int items_, const int beside_, local uchar *arena_, int at_
// Of a function that does all groups of a launch that fall to one place on the device.
#define LAUNCH_PLACE \
  local const long *row, const int id, const int place, const int places, local uchar *arena
#define GROUP_0 gx_
#define GROUP_1 gy_
#define GROUP_2 gz_
#define LOCAL_0 lx_
#define LOCAL_1 ly_
#define LOCAL_2 0
#define GLOBAL_0 (gx_ * sx_ + lx_)
#define GLOBAL_1 (gy_ * sy_ + ly_)
#define GLOBAL_2 gz_

static inline void everyone(void) { barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE); }

static inline void one_group(const int items, const int beside) {
#ifdef ALONE
  everyone();
#else
  if (items == ALL_ITEMS) {
    everyone();
  } else if (items <= 32) {
    const uint lanes = items == 32 ? ~0u : (1u << (items & 31)) - 1;
    asm volatile("bar.warp.sync %0;" ::"r"(lanes << beside * items % 32) : "memory");
  } else {
    asm volatile("barrier.sync %0, %1;" ::"r"(beside + 1), "r"(items) : "memory");
  }
#endif
}

// Whether all groups of the device have come here for the `count`th time, with what they wrote; 0 if one
// did not come for so long that it never will. By one item of a group, between barriers of all. A poll takes
// at least 0.1 us.
#ifdef ALONE
static inline int whole_device(global uint *state, uint count) { return 1; }
#else
static inline int whole_device(global uint *state, uint count) {
  uint come;
  asm volatile("fence.acq_rel.gpu;" ::: "memory");
  asm volatile("red.relaxed.gpu.global.add.u32 [%0], 1;" ::"l"(state) : "memory");
  for (int polls = 0; polls < POLLS; ++polls) {
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(come) : "l"(state) : "memory");
    if (come >= count) return 1;
  }
  state[2] = 1;
  return 0;
}
#endif

#define get_group_id(axis) GROUP_##axis
#define get_local_id(axis) LOCAL_##axis
#define get_global_id(axis) GLOBAL_##axis
#define barrier(flags) one_group(items_, beside_)
