"""One program out of the programs of many launches: its one kernel does all of them.

Each kernel becomes a function that does one work-group of a launch (kernels/persistent.h), and a
second function around it goes through the groups that fall to one place on the device. The
numbers of launches are no part of the text: they come from a table, so that networks of the same
layers share a program.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from math import prod

import numpy as np

from . import reach
from .launch import Image, Launch, grouped
from .programs import KERNELS, custom_files, program_text

#: Numbers of a row of the table, and those before the arguments.
ROW, HEAD = 64, 8
#: Polls of a group that waits for the others. One takes 0.1 µs at least and 0.6 µs usually.
POLLS, LEAST_POLLED_S = 4_000_000, 0.4
_KERNEL = re.compile(
    r"^kernel\s+(?:__attribute__\(\(reqd_work_group_size\([^)]*\)\)\)\s+)?void (\w+)\(", re.M
)
_INLINE = re.compile(r"^static inline (?:\w+\([^)]*\) |\w+ )+?(\w+)\(", re.M)
_MACRO = re.compile(r"^ *#define (\w+)", re.M)
_LOCAL = re.compile(r"^ *local (\w+) (\w[^;=]*?)(?: __attribute__\(\(aligned\((\d+)\)\)\))?;", re.M)
_ARRAY = re.compile(r"(\w+)((?:\[[^\]]*\])+)")
_ASYNC = "cp.async"
_DRAINED = 'asm volatile("cp.async.wait_all;" ::: "memory");'


def items_of(launch: Launch) -> int:
    """Work-items of a group."""
    return prod(launch.local_size or grouped(launch.global_size)[1])


def fits(launch: Launch, items: int, local_memory: int, *, side_by_side: bool) -> bool:
    """Whether a kernel of `items` work-items a group can do a launch. Groups that have barriers lie
    `side_by_side` where a barrier may be a part's."""
    own, local = items_of(launch), reach.local_bytes(launch)
    parameters, _ = reach.statement(launch.file, launch.kernel)
    floats = [isinstance(a, (float, np.floating)) for a in launch.args]
    if floats != [p.type == "float" and p.kind == "value" for p in parameters]:
        return False
    if launch.file in custom_files or any(isinstance(a, Image) for a in launch.args):
        return False
    if len(launch.args) > ROW - HEAD or prod((launch.local_size or ())[2:]) > 1:
        return False
    if local and not side_by_side and own != items:
        return False
    even = own % 32 == 0 or 32 % own == 0
    return even and items % own == 0 and local <= local_memory


@dataclass
class Text:
    """A program in the making: functions for the launches that were asked for. A group of the
    kernel has `items` work-items and `local_memory` bytes; `places` of them are on the device, or
    one is `alone`."""

    items: int
    places: int
    local_memory: int
    alone: bool = False
    numbers: dict[tuple[str, str, str, int], int] = field(default_factory=dict)
    _local: dict[int, int] = field(default_factory=dict)

    def number(self, launch: Launch) -> int:
        """Of the function that does it."""
        launch = self._shallow(launch)
        key = launch.file, launch.options, launch.kernel, items_of(launch)
        number = self.numbers.setdefault(key, len(self.numbers))
        local = -(-reach.local_bytes(launch) // 128) * 128
        self._local[number] = max(local, self._local.get(number, 0))
        return number

    def _shallow(self, launch: Launch) -> Launch:
        """On matrix units with only so many steps on their way (variants.stages_of) that groups
        find room side by side, if there are more than places for them. No number depends on it."""
        found = re.search(r"#define STAGES (\d+)", launch.options)
        if not found:
            return launch
        groups = prod(launch.global_size) // items_of(launch)
        beside = min(self.items // items_of(launch), -(-groups // self.places))
        step = reach.local_bytes(launch) // int(found[1])
        stages = min(int(found[1]), max(3, self.local_memory // beside // step))
        options = launch.options.replace(found[0], f"#define STAGES {stages}")
        return replace(launch, options=options)

    def _beside(self, number: int, own: int) -> int:
        """Groups of a launch that lie side by side in one of the kernel's."""
        room = self.local_memory // self._local[number] if self._local[number] else self.items
        return min(self.items // own, room)

    def whole(self) -> str:
        """What a compiler gets."""
        head = [f"#define ALL_ITEMS {self.items}", f"#define POLLS {POLLS}"]
        head += [f"#define ROW_NUMBERS {ROW}", *(["#define ALONE"] if self.alone else [])]
        parts = ["\n".join(head), (KERNELS / "persistent.h").read_text()]
        for place, program in enumerate(dict.fromkeys(key[:2] for key in self.numbers)):
            own = [key for key in self.numbers if key[:2] == program]
            text, macros = _functions(program_text(*program), place)
            parts += [text, *map(self._around, own), "\n".join(f"#undef {m}" for m in macros)]
        needs = [self._local[n] * self._beside(n, key[3]) for key, n in self.numbers.items()]
        cases = "".join(
            f" case {n}: do_{n}(row, id, place, places, arena); break;"
            for n in self.numbers.values()
        )
        parts += [f"#define ARENA {max([ROW * 8 + 128, *needs])}", f"#define DO_LAUNCH{cases}"]
        return "\n".join([*parts, (KERNELS / "persistent_end.h").read_text()])

    def _around(self, key: tuple[str, str, str, int]) -> str:
        """The function that does all groups of a launch that fall to one place."""
        file, options, kernel, own = key
        number = self.numbers[key]
        local, beside = self._local[number], self._beside(number, own)
        parameters, _ = reach.statement(file, kernel)
        given = "\n".join(_given(p, f"a{i}", HEAD + i) for i, p in enumerate(parameters))
        names = "".join(f", a{i}" for i in range(len(parameters)))
        drained = _DRAINED if _ASYNC in program_text(file, options) else ""
        return f"""
static inline void do_{number}(LAUNCH_PLACE) {{
  const int nx = (int)row[2], ny = (int)row[3], groups = (int)row[4];
  const int sx = (int)row[5], sy = (int)row[6], behind = place - (int)row[7];
  const int beside = id / {own}, item = id % {own};
{given}
  {"everyone();" if local else ""}
  if (beside >= {beside}) return;
  const int first = behind < 0 ? behind + places : behind;
  for (int g = first + beside * places; g < groups; g += places * {beside}) {{
    {kernel}(g % nx, g / nx % ny, g / nx / ny, item % sx, item / sx, sx, sy, {own}, beside,
        arena + beside * {local}, 0{names});
    {drained}
    {f"one_group({own}, beside);" if local else ""}
  }}
}}"""


def _given(parameter: reach.Parameter, name: str, at: int) -> str:
    """An argument, from the row of the table."""
    kind = parameter.type
    if parameter.kind == "buffer":
        return f"  global {kind} *const {name} = (global {kind} *)row[{at}];"
    value = f"as_float((int)row[{at}])" if kind == "float" else f"({kind})row[{at}]"
    return f"  const {kind} {name} = {value};"


def _functions(text: str, number: int) -> tuple[str, list[str]]:
    """A program's text with functions instead of kernels, all under names of its own; and the
    macros that are to be undefined after it."""
    names = sorted({*_KERNEL.findall(text), *_INLINE.findall(text)})
    text = _KERNEL.sub(r"static inline void \1(GROUP_PLACE, ", _LOCAL.sub(_in_arena, text))
    text = "\n".join([*(f"#define {n} {n}_{number}" for n in names), text])
    return text, sorted(set(_MACRO.findall(text)))


def _in_arena(found: re.Match[str]) -> str:
    """Arrays of a declaration, one after the other in the arena: compilers take `local` in kernels
    only."""
    kind, arrays, aligned = found.groups()
    unit = aligned or f"min((int)sizeof({kind}), 16)"
    out = []
    for name, sizes in _ARRAY.findall(arrays):
        inner = sizes.partition("]")[2]
        form = f"local {kind} (*{{}}){inner}" if inner else f"local {kind} *{{}}"
        out.append(f"at_ = (at_ + {unit} - 1) / {unit} * {unit};")
        out.append(f"{form.format(f'const {name}')} = ({form.format('')})(arena_ + at_);")
        out.append(f"at_ += sizeof({kind}{sizes});")
    return " ".join(out)
