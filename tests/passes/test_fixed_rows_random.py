"""Programs of random graphs in which found rows are indexed, reduced and joined; against
onnxruntime. A graph for which there is no bound stays open, which is no error."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from lite_engine import Predictor, optimize
from lite_engine.model_file import Model
from lite_engine.passes.fixed_rows import fixed_rows
from lite_engine.runtime.choice import host_target

from .test_fixed_rows import inputs, model, oracle, same

onnx = pytest.importorskip("onnx", reason="pip install onnx")
pytest.importorskip("onnxruntime", reason="pip install onnxruntime")

#: A dim "n" is the number of found rows.
Dims = tuple[object, ...]


class Body:
    """Lines of a model's text, and what they have made."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.lines: list[str] = []
        self.floats: dict[str, Dims] = {"xs": ("n", 4), "ss": ("n",), "x": (9, 4), "s": (9,)}
        self.places: dict[str, Dims] = {}  # each in [−n, n) while n > 0

    def name(self) -> str:
        return f"v{len(self.lines)}"

    def ints(self, *values: int, scalar: bool = False) -> str:
        given = f"value_int = {values[0]}" if scalar else f"value_ints = {list(values)}"
        return self.add(f"Constant<{given}>()")

    def add(self, call: str) -> str:
        name = self.name()
        self.lines.append(f"{name} = {call}")
        return name

    def pick(self, among: dict[str, Dims], fits: Callable[[Dims], bool] = bool) -> str | None:
        names = [k for k, d in among.items() if fits(d)]
        return names[self.rng.integers(len(names))] if names else None

    def coin(self, *choices: object) -> object:
        return choices[self.rng.integers(len(choices))]

    # ---- one step each

    def chosen(self) -> None:
        """The index of the largest in each column, from the front or the back."""
        name = self.pick(self.floats, lambda d: d[:1] == ("n",))
        assert name is not None
        keep, op = self.coin(0, 1), self.coin("ArgMax", "ArgMin")
        how = f"axis = 0, keepdims = {keep}, select_last_index = {self.coin(0, 1)}"
        at = self.add(f"{op}<{how}>({name})")
        if self.coin(0, 1):
            at = self.add(f"Sub({at}, {self.add('Squeeze(count1, zeros)')})")
        if self.coin(0, 1):
            at = self.add(f"Cast<to = 6>({at})")
        behind = self.floats[name][1:]
        self.places[at] = (1, *behind) if keep else behind

    def gather(self) -> None:
        data = self.pick(self.floats, lambda d: "n" in d)
        at = self.pick(self.places, lambda d: "n" not in d)
        if data is None or at is None:
            return
        dims = self.floats[data]
        axis = dims.index("n")
        made = self.add(f"Gather<axis = {axis}>({data}, {at})")
        self.floats[made] = (*dims[:axis], *self.places[at], *dims[axis + 1 :])

    def unary(self) -> None:
        name = self.pick(self.floats, lambda d: True)
        assert name is not None
        self.floats[self.add(f"{self.coin('Tanh', 'Neg', 'Abs')}({name})")] = self.floats[name]

    def binary(self) -> None:
        one = self.pick(self.floats, lambda d: True)
        assert one is not None
        dims = self.floats[one]
        other = self.pick(self.floats, lambda d: dims[max(len(dims) - len(d), 0) :] == d)
        made = self.add(f"{self.coin('Add', 'Mul')}({one}, {other})")
        self.floats[made] = dims

    def reduced(self) -> None:
        name = self.pick(self.floats)
        assert name is not None
        dims, keep = self.floats[name], self.coin(0, 1)
        axis = int(self.rng.integers(len(dims)))
        op = self.coin("ReduceSum", "ReduceMax", "ReduceL1")
        made = self.add(f"{op}<keepdims = {keep}>({name}, {self.ints(axis)})")
        self.floats[made] = (*dims[:axis], *[1][: int(bool(keep))], *dims[axis + 1 :])

    def turned(self) -> None:
        name = self.pick(self.floats, lambda d: len(d) > 1)
        assert name is not None
        perm = self.rng.permutation(len(self.floats[name])).tolist()
        made = self.add(f"Transpose<perm = {perm}>({name})")
        self.floats[made] = tuple(self.floats[name][i] for i in perm)

    def along(self) -> None:
        name = self.pick(self.floats)
        assert name is not None
        axis = int(self.rng.integers(len(self.floats[name])))
        call = f"CumSum({name}, {self.ints(axis, scalar=True)})"
        if self.coin(0, 1):
            call = f"Softmax<axis = {axis}>({name})"
        self.floats[self.add(call)] = self.floats[name]

    def wider(self) -> None:
        name = self.pick(self.floats, lambda d: len(d) < 4)
        assert name is not None
        dims = self.floats[name]
        axis = int(self.rng.integers(len(dims) + 1))
        made = self.add(f"Unsqueeze({name}, {self.ints(axis)})")
        self.floats[made] = (*dims[:axis], 1, *dims[axis:])

    def joined(self) -> None:
        name = self.pick(self.floats, lambda d: "n" in d)
        assert name is not None
        dims = self.floats[name]
        other = self.pick(self.floats, lambda d: d == dims)
        axis, size = next(((i, d) for i, d in enumerate(dims) if isinstance(d, int)), (0, 0))
        if size:
            made = self.add(f"Concat<axis = {axis}>({name}, {other})")
            self.floats[made] = (*dims[:axis], 2 * size, *dims[axis + 1 :])

    def compared(self) -> None:
        """Sizes that are equal or not, as a value."""
        same = self.add(f"Equal(count1, {self.ints(int(self.rng.integers(-1, 12)))})")
        self.floats[self.add(f"Cast<to = 1>({same})")] = (1,)

    def branched(self) -> None:
        names = [self.pick(self.floats, lambda d: d == ()) for _ in range(2)]
        if None in names:
            return
        one, other = names
        test = self.add(f"Greater(count1, {self.ints(int(self.rng.integers(9)))})")
        n = len(self.lines)
        made = self.add(
            f"If({test}) <then_branch = t{n} () => (float a{n}) {{ a{n} = Neg({one}) }}, "
            f"else_branch = e{n} () => (float b{n}) {{ b{n} = Abs({other}) }}>"
        )
        self.floats[made] = ()

    STEPS = (
        chosen, chosen, gather, gather, unary, binary, reduced, turned, along, wider, joined,
        compared, branched,
    )  # fmt: skip

    def text(self) -> str:
        self.chosen()
        for _ in range(9):
            self.STEPS[self.rng.integers(len(self.STEPS))](self)
        made = {k: d for k, d in self.floats.items() if k[0] == "v"}
        ends = list(made)[-2:]
        for name in ends:
            self.lines.append(f"{name}y = Identity({name})")
        types = [f"float[{','.join(map(str, made[k]))}]".replace("[]", "") for k in ends]
        outputs = ", ".join(f"{t} {k}y" for t, k in zip(types, ends))
        return f"({outputs}) {{ " + "\n".join(self.lines) + " }"


def bounded_program(seed: int, folder: Path) -> bool:
    """Whether the graph of this seed has a program; its results are then onnxruntime's."""
    path = model(Body(seed).text(), folder / "m.onnx")
    fixed = fixed_rows(optimize(path).graph)
    if not all(v.type.is_static for n in fixed.nodes for v in n.outputs):
        return False
    predictor = Predictor(Model(fixed), host_target())
    for share in (0.6, 1, 0.2):
        feeds = inputs(seed, share)
        same(predictor.run(feeds), oracle(path, feeds))
    return True


@pytest.mark.cpu
def test_random_graphs(tmp_path: Path) -> None:
    found = [bounded_program(seed, tmp_path) for seed in range(80)]
    assert sum(found) > len(found) // 2
