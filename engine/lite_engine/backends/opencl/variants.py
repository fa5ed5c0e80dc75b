"""Ways to compute one convolution on a GPU, and which to take before anything was measured."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from .winograd import WINOGRAD_POINTS


@dataclass(frozen=True)
class Tile:
    """BM pixels x BN channels a work-group, TM x TN a work-item, BK deep in local memory."""

    bm: int
    bn: int
    tm: int
    tn: int
    bk: int = 16

    def defines(self) -> str:
        values = {"BM": self.bm, "BN": self.bn, "TM": self.tm, "TN": self.tn, "BK": self.bk}
        return "\n".join(f"#define {k} {v}" for k, v in values.items())

    @property
    def items(self) -> int:
        return self.bm // self.tm * (self.bn // self.tn)


TILES = (
    Tile(128, 128, 8, 8), Tile(128, 64, 8, 8), Tile(64, 128, 8, 8), Tile(64, 64, 8, 8),
    Tile(128, 64, 8, 4), Tile(128, 32, 8, 4), Tile(64, 64, 4, 4), Tile(64, 32, 4, 4),
    Tile(32, 64, 4, 4, 32),
)  # fmt: skip
SMALLEST = TILES[-1]
#: Pixels and channels of a work-group on matrix units, and pixels of an item; 4 channels.
_MATRIX_SHAPES = (
    (128, 128, 16), (128, 64, 16), (64, 64, 16), (128, 64, 8), (64, 64, 8), (64, 32, 8),
    (32, 64, 8), (32, 64, 4),
)  # fmt: skip
#: Most bytes of a row of a tile in one step on matrix units, a group's local memory, and steps that
#: it holds at least. Whole cache lines arrive sooner: a product of 197 x 3072 x 768 in halves takes
#: 7 µs of an H200 instead of 10, if neighbours share their weights.
LINE, _MATRIX_LOCAL, _LEAST = 128, 48 << 10, 3
#: Local memory of a unit for all of its groups.
_UNIT_LOCAL = 160 << 10
_PARTS = (1, 2, 3, 4, 6, 8, 12, 16)


@lru_cache(maxsize=4)
def matrix_tiles(itemsize: int, line: int = LINE) -> tuple[Tile, ...]:
    """For numbers of so many bytes: a whole line of a row in each step, or half of it where local
    memory would not hold enough steps."""

    def deep(bm: int, bn: int) -> int:
        room = _MATRIX_LOCAL // _LEAST // (bm + bn)
        return (line if line <= room else line // 2) // itemsize

    return tuple(Tile(bm, bn, tm, 4, deep(bm, bn)) for bm, bn, tm in _MATRIX_SHAPES)


def stages_of(tile: Tile, itemsize: int, groups: int, units: int) -> int:
    """Steps that a group on matrix units keeps in local memory. Where few groups share a unit,
    nothing but further steps on their way hides the memory's latency: as many as there is room
    for."""
    step = (tile.bm + tile.bn) * tile.bk * itemsize
    most = _MATRIX_LOCAL // step
    resident = -(-groups // units)
    fewer = max(_LEAST, 2 * LINE // (tile.bk * itemsize))
    return most if resident * most * step <= _UNIT_LOCAL else min(most, fewer)


@dataclass(frozen=True)
class Variant:
    """`parts` of K summed by a second kernel; or Winograd's 36 products; or on `matrix` units,
    whose numbers have so many bytes; or through images, or `direct`: as CPUs compute it, whose
    tiles are their kernels' own; or few rows with weights `in_bytes` (byte_products.py)."""

    tile: Tile
    parts: int = 1
    winograd: bool = False
    matrix: int = 0
    image: bool = False
    direct: bool = False
    in_bytes: bool = False

    @property
    def kernel(self) -> str:
        return "conv_mma" if self.matrix else "conv_tile"

    @property
    def family(self) -> str:
        """What fails where it fails, whatever its tile: another family takes its place."""
        if self.image or self.direct or self.in_bytes:
            return str(self)
        how = "matrix units" if self.matrix else ""
        if self.winograd:
            return f"Winograd on {how}" if how else "Winograd"
        return how or ("smallest tile" if self.tile is SMALLEST else "tile")

    def __str__(self) -> str:
        if self.image or self.direct or self.in_bytes:
            return "image" if self.image else "direct" if self.direct else "bytes"
        t = self.tile
        kind = ("winograd43_" if self.winograd else "") + ("mma_" if self.matrix else "")
        return f"{kind}{t.bm}x{t.bn}_{t.tm}x{t.tn}_k{t.bk}_p{self.parts}"


#: What is left when nothing else works.
DIRECT = Variant(SMALLEST, direct=True)
IN_BYTES = Variant(SMALLEST, in_bytes=True)


@dataclass(frozen=True)
class Product:
    """The size of a convolution as a matrix product: (m, k) · (k, n), `planes` of them in one
    launch. `tiles` is the number of 6x6 Winograd tiles, 0 where that does not apply; `channels` the
    depth of one of them."""

    m: int
    n: int
    k: int
    channels: int = 0
    tiles: int = 0
    planes: int = 1

    def __str__(self) -> str:
        return f"m{self.m}_n{self.n}_k{self.k}_c{self.channels}_t{self.tiles}"


@dataclass(frozen=True)
class Rates:
    """Shares of _MACS_PER_S that variants reach: tiles by the results that a work-item holds in
    registers, matrix units by the bytes of a step's number and the pixels of an item. `line` are
    the most bytes of a row in a step."""

    tiles: dict[int, float]
    matrix: dict[tuple[int, int], float]
    line: int = LINE

    def tiles_of(self, itemsize: int) -> list[Tile]:
        """That there are kernels for on matrix units, for numbers of so many bytes."""
        return [t for t in matrix_tiles(itemsize, self.line) if (itemsize, t.tm) in self.matrix]

    def of(self, variant: Variant) -> float:
        tile = variant.tile
        if variant.matrix:
            return self.matrix[variant.matrix, tile.tm]
        return self.tiles[tile.tm * tile.tn]


#: What a compute unit does in a second when its pipelines are full, bytes of memory in a second,
#: and the cost of one more launch: an NVIDIA H200's, which keep their proportions elsewhere.
_MACS_PER_S = 2.2e11
_BYTES_PER_S = 2.5e12
_LAUNCH_S = 5e-6
FLOATS = Rates(
    {64: 0.6, 32: 0.42, 16: 0.36},
    {(4, 8): 0.8, (4, 16): 0.8, (2, 4): 2.8, (2, 8): 3.6, (2, 16): 4.5},
)
#: Words of four bytes, whose dot products come at half the rate of a float's product.
INTEGERS = Rates({64: 0.3, 32: 0.21, 16: 0.18}, {(4, 8): 1.8, (4, 16): 2.2}, line=64)
#: The share of _MACS_PER_S reached where a work-item computes one output.
_SIMPLE = 0.09
#: Work-items a unit needs to hide its latencies.
_FULL_ITEMS = 512


def estimate_s(size: Product, variant: Variant, units: int, rates: Rates = FLOATS) -> float:
    """Expected seconds. Only the order of variants matters."""
    tile = variant.tile
    if variant.winograd:
        m, depth, batch = size.tiles, size.channels, WINOGRAD_POINTS
    else:
        m, depth, batch = size.m, -(-size.k // variant.parts), variant.parts
    groups = -(-m // tile.bm) * -(-size.n // tile.bn) * batch * size.planes
    waves = -(-groups // units)
    resident = min(waves, max(1, 2048 // tile.items)) * tile.items
    rate = _MACS_PER_S * rates.of(variant) * min(1.0, resident / _FULL_ITEMS) ** 0.5
    seconds = _LAUNCH_S + waves * tile.bm * tile.bn * (depth + tile.bk) / rate
    if variant.winograd:
        # The larger transforms are read and written once more, and weights are four times as many.
        moved = 4 * (WINOGRAD_POINTS * size.tiles * (size.channels + size.n) * 2)
        moved += 4 * WINOGRAD_POINTS * size.channels * size.n
        return seconds + 2 * _LAUNCH_S + moved / _BYTES_PER_S
    if variant.parts > 1:
        seconds += _LAUNCH_S + 8 * variant.parts * size.m * size.n / _BYTES_PER_S
    return seconds


def simple_s(size: Product, units: int) -> float:
    """Expected seconds where a work-item computes one output (conv_grouped.cl)."""
    return _LAUNCH_S + size.planes * size.m * size.n * size.k / (_SIMPLE * _MACS_PER_S * units)


def variants(
    size: Product,
    units: int,
    matrix: int = 0,
    tiles: tuple[Tile, ...] = TILES,
    rates: Rates = FLOATS,
) -> list[Variant]:
    """All that make sense for a size, the most promising first. `matrix` units multiply numbers of
    so many bytes, 0 without them. Of equal ones that with fewer pixels, whose groups fetch each of
    them less often: on an H100 a product of 197 x 3072 x 768 in halves takes 14.5 µs in tiles of
    32 x 64 and 27 µs in those of 64 x 32."""
    found = []
    fitting = matrix and size.channels % 4 == 0 and size.n % 2 == 0
    ways = [(tile, 0) for tile in tiles]
    if fitting:
        ways += [(tile, matrix) for tile in rates.tiles_of(matrix)]
    for tile, on in ways:
        if tile is not tiles[-1] and not _fills(tile, size.m, size.n):
            continue
        groups = -(-size.m // tile.bm) * -(-size.n // tile.bn)
        for parts in _PARTS:
            if parts > 1 and (size.planes > 1 or parts * 4 * tile.bk > size.k):
                break
            found.append(Variant(tile, parts, matrix=on))
            if groups * parts >= 4 * units:
                break
    if size.tiles:
        found += [Variant(t, winograd=True) for t in TILES if _fills(t, size.tiles, size.n)]
        if fitting:
            wide = [t for t in rates.tiles_of(4) if _fills(t, size.tiles, size.n)]
            found += [Variant(t, winograd=True, matrix=4) for t in wide]
    return sorted(found, key=lambda v: (estimate_s(size, v, units, rates), v.tile.bm))


def _fills(tile: Tile, m: int, n: int) -> bool:
    return tile is SMALLEST or (tile.bm < 2 * m and tile.bn < 2 * n)
