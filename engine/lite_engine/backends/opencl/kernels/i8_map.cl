// Rows of bytes through a table of 256, RUN an item. Rows of x lie XP and those of y YP elements apart, the first
// x_at and y_at from the start.
//@ options RUN=1..65536
// PICK(t, i): of sixteen bytes t, repeated over a register, those with the numbers i.
#if defined(CPU) && defined(__AVX512BW__)
#define WIDE 64
#define PICK(t, i) __builtin_ia32_pshufb512(t, i)
#elif defined(CPU) && defined(__AVX2__)
#define WIDE 32
#define PICK(t, i) __builtin_ia32_pshufb256(t, i)
#elif defined(CPU) && defined(__SSSE3__)
#define WIDE 16
#define PICK(t, i) __builtin_ia32_pshufb128(t, i)
#endif

#ifdef WIDE
typedef char bytes __attribute__((vector_size(WIDE)));
typedef char bytes_anywhere __attribute__((vector_size(WIDE), aligned(1)));
#define WITH(bit) ((x & (char)(bit)) != 0)
#define OF_16(k) PICK(t[k], low)
#define OF_32(k) (b16 ? OF_16(k + 1) : OF_16(k))
#define OF_64(k) (b32 ? OF_32(k + 2) : OF_32(k))
#define OF_128(k) (b64 ? OF_64(k + 4) : OF_64(k))
// Whole registers of `count` bytes: all sixteenths of the table by the lower half of a byte, one of them by each of
// its upper bits. Returns how many bytes those are.
static inline int in_registers(global const uchar *from, global const uchar *table, global uchar *to, int count) {
  bytes t[16];
  for (int i = 0; i < 16 * WIDE; ++i) ((uchar *)t)[i] = table[i / WIDE * 16 + i % 16];
  int i = 0;
  for (; i + WIDE <= count; i += WIDE) {
    const bytes x = *(global const bytes_anywhere *)(from + i), low = x & (char)15;
    const bytes b16 = WITH(16), b32 = WITH(32), b64 = WITH(64), b128 = WITH(128);
    *(global bytes_anywhere *)(to + i) = b128 ? OF_128(8) : OF_128(0);
  }
  return i;
}
#endif

//@ kernel map
//@ need min(width, rows) > 0, (g0 + 1) * RUN <= INT_MAX
//@ items up(width, RUN), rows
//@ reads x[x_at, rows, XP, width], table[256]
//@ writes y[y_at, rows, YP, width]
kernel void map(global const uchar *x, global const uchar *table, global uchar *y, int width, int rows, int XP,
                int x_at, int YP, int y_at) {
  const int first = get_global_id(0) * RUN, row = get_global_id(1), count = min(RUN, width - first);
  if (row >= rows) return;
  x += (size_t)row * XP + x_at + first;
  y += (size_t)row * YP + y_at + first;
  int i = 0;
#ifdef WIDE
  i = in_registers(x, table, y, count);
#endif
  for (; i < count; ++i) y[i] = table[x[i]];
}
