"""Paddle 3's PIR programs: `inference.json` → Program, with operators renamed to the older ones.

Layout: {"base_code": {"magic": "pir", …}, "program": {"regions": [{"blocks": [{"ops": […]}]}]}}.
An operator is {"#": "1.conv2d", "I": [{"%": id}…], "O": [{"%": id, "TT": type}…], "A": [{"N": name,
"AT": {"#": kind, "D": data}}…]}; id 0 is an absent input, parameters are the operator "p".
Source: Paddle serialize_deserialize (PIR program, version 1 and up).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from lite_messages import tr

from ...documents import Part, parse
from ...errors import ModelFormatError, UnsupportedOperatorError
from ...ir import DType
from .pir_ops import IMPLIED, find_pir_op
from .program import DTYPE_NUMBERS, FEED_LIST, FETCH_LIST, MAX_RANK, Block, Op, Program, Var

_DIALECTS = {"0": "builtin", "1": "pd_op", "2": "cf", "3": "custom_op", "4": "pd_dist"}
_DTYPES = {
    "t_f32": DType.F32, "t_f16": DType.F16, "t_bf16": DType.BF16, "t_f64": DType.F64,
    "t_i8": DType.I8, "t_u8": DType.U8, "t_i16": DType.I16, "t_i32": DType.I32, "t_i64": DType.I64,
    "t_bool": DType.BOOL,
}  # fmt: skip
_DTYPE_NAMES = {
    "float32": DType.F32, "float16": DType.F16, "bfloat16": DType.BF16, "float64": DType.F64,
    "int8": DType.I8, "uint8": DType.U8, "int16": DType.I16, "int32": DType.I32,
    "int64": DType.I64, "bool": DType.BOOL,
}  # fmt: skip
_SPECIAL_NUMBERS = {"NaN": math.nan, "INF": math.inf, "-INF": -math.inf}
#: JSON becomes up to 80 times as large in Python; DenseNet-169 has 0.6 MB
_MAX_BYTES, _MAX_CONTAINERS = 1 << 25, 1 << 20
MAX_BLOCKS, MAX_DEPTH = 4096, 16

T = TypeVar("T")


def looks_like_pir(head: bytes) -> bool:
    """True when a file starts like a PIR program."""
    return head.lstrip()[:1] == b"{" and b'"base_code"' in head and b'"pir"' in head


def read_pir(data: memoryview) -> Program:
    """The program without its parameters. Raises ModelFormatError, UnsupportedOperatorError."""
    if len(data) > _MAX_BYTES:
        raise ModelFormatError(tr("the PIR program is too large: {bytes} bytes", bytes=len(data)))
    text = bytes(data)
    if text.count(b"{") + text.count(b"[") > _MAX_CONTAINERS:
        raise ModelFormatError(
            tr("the PIR program is too large: more than {most} parts", most=_MAX_CONTAINERS)
        )
    document = parse(text, tr("PIR program"))
    reader = _Reader()
    try:
        for op in document["program"]["regions"][0]["blocks"][0]["ops"].items():
            reader.read(op)
    except RecursionError:
        raise ModelFormatError(tr("PIR program: nested too deeply")) from None
    return Program(reader.blocks, producer="Paddle PIR")


@dataclass
class _Call:
    """One operator as it is read: numbers of its inputs, parts of its outputs, attributes."""

    where: str
    ins: list[int]
    outs: list[Part]
    attrs: dict[str, Any]

    def source(self) -> int:
        if not self.ins:
            raise ModelFormatError(tr("an operator without inputs"), where=self.where)
        return self.ins[0]

    def out(self) -> Part:
        if not self.outs:
            raise ModelFormatError(tr("an operator without outputs"), where=self.where)
        return self.outs[0]

    def attr(self, name: str, kind: type) -> Any:
        value = self.attrs.get(name)
        if type(value) is not kind:
            raise ModelFormatError(
                tr("its attribute {name!r} is missing or damaged", name=name), where=self.where
            )
        return value


class _Reader:
    """Turns PIR operators into ProgramDesc ones, in order."""

    def __init__(self) -> None:
        self.block = Block()
        self.blocks = [self.block]
        self.names: dict[int, str] = {}
        self.lists: dict[int, list[str]] = {}
        self.constants: dict[int, Any] = {}
        self.columns = 0
        self.depth = 0

    def read(self, item: Part) -> None:
        kind = item["#"].text()
        if kind == "p":
            self._parameter(item)
            return
        dialect, _, name = kind.partition(".")
        attrs = {a["N"].text(): _attr(a["AT"]) for a in _items(item, "A")}
        call = _Call(item.where, [_number(i) for i in _items(item, "I")], _items(item, "O"), attrs)
        regions = _items(item, "regions")
        if name in _BODIES and regions:
            _BODIES[name](self, call, regions)
            return
        if any(r.value for r in regions):
            raise UnsupportedOperatorError(
                tr("PIR operator {name!r} has a body", name=name),
                (name,),
                fix=tr(
                    "only `if` and `while` may have one: export the model with "
                    "FLAGS_enable_pir_api=0"
                ),
            )
        special = _SPECIAL.get(f"{_DIALECTS.get(dialect)}.{name}")
        if special is not None:
            special(self, call)
        else:
            self._operator(name, call)

    # ---- values
    def _define(self, out: Part, stem: str) -> list[str]:
        """Names for one output; a list type gets one name per element."""
        number = _number(out)
        kind = out.get("TT")
        if kind is not None and kind["#"].text().endswith("t_vec"):
            elements = enumerate(kind["D"].items())
            names = [self._describe(f"{stem}.{number}.{i}", e).name for i, e in elements]
            self.lists[number] = names
            return names
        name = f"{stem}.{number}"
        self._describe(name, kind)
        self.names[number] = name
        return [name]

    def _describe(self, name: str, kind: Part | None) -> Var:
        var = Var(name)
        if kind is not None and kind["#"].text().endswith("t_dtensor"):
            element, dims = kind["D"][0], kind["D"][1].items()
            if len(dims) > MAX_RANK:
                raise ModelFormatError(
                    tr("{dimensions} dimensions are more than are supported", dimensions=len(dims)),
                    where=name,
                )
            var.dtype = _DTYPES.get(element["#"].text().split(".")[-1])
            var.shape = tuple(d.integer() for d in dims)
        self.block.vars[name] = var
        return var

    def _named(self, number: int) -> list[str]:
        if number == 0:
            return []
        if number in self.lists:
            return self.lists[number]
        if number not in self.names:
            raise ModelFormatError(
                tr("PIR value {number} is read before it is computed", number=number)
            )
        return [self.names[number]]

    def _one(self, number: int) -> str:
        """The name of a value that has to be there and no list."""
        names = self._named(number)
        if len(names) != 1:
            raise ModelFormatError(
                tr("PIR value {id} is {count} tensors, expected one", id=number, count=len(names))
            )
        return names[0]

    # ---- operators with a meaning of their own
    def _parameter(self, item: Part) -> None:
        name, out = item["A"][3].text(), item["O"]
        var = self._describe(name, out["TT"])
        var.persistable = not (item.get("OA") and item["OA"].items()) or item["OA"][0].truth()
        self.names[_number(out)] = name

    def _data(self, call: _Call) -> None:
        name = call.attr("name", str)
        self._describe(name, call.out()["TT"])
        self.names[_number(call.out())] = name
        self.block.vars.setdefault("feed", Var("feed", FEED_LIST, persistable=True))
        self.block.ops.append(Op("feed", {"X": ["feed"]}, {"Out": [name]}, {"col": self.columns}))
        self.columns += 1

    def _fetch(self, call: _Call) -> None:
        source, name = self._one(call.source()), call.attr("name", str)
        column = call.attr("col", int) if "col" in call.attrs else 0
        self.block.vars.setdefault("fetch", Var("fetch", FETCH_LIST, persistable=True))
        self.block.ops.append(Op("assign", {"X": [source]}, {"Out": [name]}))
        self.block.ops.append(Op("fetch", {"X": [name]}, {"Out": ["fetch"]}, {"col": column}))

    def _combine(self, call: _Call) -> None:
        self.lists[_number(call.out())] = [n for i in call.ins for n in self._named(i)]

    def _split(self, call: _Call) -> None:
        for out, name in zip(call.outs, self._named(call.source())):
            self.names[_number(out)] = name

    def _slice(self, call: _Call) -> None:
        names, index = self._named(call.source()), call.attr("index", int)
        if not 0 <= index < len(names):
            raise ModelFormatError(
                tr(
                    "element {index} does not exist: there are {tensors} tensors",
                    index=index,
                    tensors=len(names),
                ),
                where=call.where,
            )
        self.names[_number(call.out())] = names[index]

    def _pass(self, call: _Call) -> None:
        """Names a value for the executor; the fetch says what is an output."""

    def _full(self, call: _Call) -> None:
        if type(call.attrs.get("value")) not in (bool, int, float):
            raise ModelFormatError(tr("its attribute 'value' is not a number"), where=call.where)
        self._constant(call, call.attrs["value"], Op("fill_constant", attrs=call.attrs))

    def _full_int_array(self, call: _Call) -> None:
        values = call.attr("value", list)
        if any(type(v) is not int or abs(v) >= 1 << 63 for v in values):
            raise ModelFormatError(
                tr("its attribute 'value' is not a list of integers"), where=call.where
            )
        attrs = {"values": values, "shape": [len(values)], "dtype": call.attrs.get("dtype", 3)}
        self._constant(call, values, Op("assign_value", attrs=attrs))

    def _constant(self, call: _Call, value: Any, op: Op) -> None:
        """Appends an operator whose one result is known here, for attributes given as values."""
        number = _number(call.out())
        self._define(call.out(), "constant")
        op.outputs["Out"] = [self._one(number)]
        self.constants[number] = value
        self.block.ops.append(op)

    # ---- bodies: written with the older form's blocks
    def _assign(self, source: str, target: str) -> None:
        self.block.ops.append(Op("assign", {"X": [source]}, {"Out": [target]}))

    def _body(self, region: Part, arguments: list[str], results: list[str]) -> int:
        """Reads a region as a block of its own: `results` hold what it yields. Its index."""
        if len(self.blocks) > MAX_BLOCKS or self.depth >= MAX_DEPTH:
            raise ModelFormatError(tr("PIR: too many nested bodies"))
        body = region["blocks"][0]
        around, kept = self.block, dict(self.names)
        self.block = Block(parent=0)
        self.blocks.append(self.block)
        index = len(self.blocks) - 1
        self.depth += 1
        for argument, name in _pairs(body["args"].items(), arguments, f"{body.where}.args"):
            self.names[_number(argument)] = name
        for item in body["ops"].items():
            if item["#"].text().endswith(".yield"):
                # first aside, then in place: a result may be another's old value
                for end, name in _pairs(item["I"].items(), results, f"{item.where}.I"):
                    self._assign(self._one(_number(end)), f"{name}/new")
                for name in results:
                    self._assign(f"{name}/new", name)
            else:
                self.read(item)
        self.depth -= 1
        self.block, self.names = around, kept
        return index

    def _while(self, call: _Call, regions: list[Part]) -> None:
        carried = [n for out in call.outs for n in self._define(out, "while")]
        condition = f"{carried[0] if carried else 'while'}/condition"
        for source, name in _pairs(call.ins, [condition, *carried], f"{call.where}.I"):
            self._assign(self._one(source), name)
        index = self._body(regions[0], carried, [condition, *carried])
        self.block.ops.append(
            Op("while", {"Condition": [condition]}, {"Out": carried}, {"sub_block": index})
        )

    def _if(self, call: _Call, regions: list[Part]) -> None:
        condition = self._one(call.source())
        results = [n for out in call.outs for n in self._define(out, "if")]
        sides = []
        for region, side in _pairs(regions, ["then", "else"], f"{call.where}.regions"):
            names = [f"{name}/{side}" for name in results]
            index = self._body(region, [], names)
            attrs = {"sub_block": index}
            self.block.ops.append(
                Op("conditional_block", {"Cond": [condition]}, {"Out": names}, attrs)
            )
            sides.append(names)
        for name, then, otherwise in zip(results, *sides):
            inputs = {"X": [otherwise, then], "Mask": [condition]}
            self.block.ops.append(Op("select_input", inputs, {"Out": [name]}))

    # ---- the rest, by the table
    def _operator(self, name: str, call: _Call) -> None:
        known = find_pir_op(name)
        if known is None:
            raise UnsupportedOperatorError(
                tr("PIR operator {name!r} is not supported", name=name),
                (name,),
                fix=tr("replace it in the model, or export the part before it"),
            )
        op = Op(known.legacy, attrs={**IMPLIED.get(name, {}), **call.attrs})
        for spec, number in zip(known.inputs, call.ins):
            self._argument(op, spec, number)
        for spec, out in zip(known.outputs, call.outs):
            names = self._define(out, known.legacy)
            if spec != "_":
                op.outputs[spec] = names
        op.attrs = {known.attrs.get(k, k): v for k, v in op.attrs.items()}
        self.block.ops.append(op)

    def _argument(self, op: Op, spec: str, number: int) -> None:
        attr, *slots = spec.split("@")
        if number == 0 or attr == "_":
            return
        if not attr[0].islower():
            op.inputs[attr] = self._named(number)
            return
        if number in self.constants:
            op.attrs[attr] = self.constants[number]
            return
        slot = slots[-1] if number in self.lists and slots else slots[0] if slots else ""
        if not slot:
            raise UnsupportedOperatorError(
                tr("its argument {attr!r} is computed at run time", attr=attr),
                (op.type,),
                where=op.type,
                fix=tr("make it a constant"),
            )
        op.inputs[slot] = self._named(number)


_SPECIAL: dict[str, Callable[[_Reader, _Call], None]] = {
    "pd_op.data": _Reader._data,
    "pd_op.feed": _Reader._data,
    "pd_op.fetch": _Reader._fetch,
    "pd_op.full": _Reader._full,
    "pd_op.full_int_array": _Reader._full_int_array,
    "builtin.combine": _Reader._combine,
    "builtin.split": _Reader._split,
    "builtin.slice": _Reader._slice,
    "builtin.shadow_output": _Reader._pass,
    "builtin.set_parameter": _Reader._pass,
}
_BODIES = {"while": _Reader._while, "if": _Reader._if}


def _items(item: Part, key: str) -> list[Part]:
    """A list that may be missing."""
    found = item.get(key)
    return [] if found is None else found.items()


def _number(value: Part) -> int:
    """The number of a value, 0 when it is absent."""
    number = value.get("%") or value.get("#")
    return 0 if number is None else number.integer()


def _pairs(found: Sequence[T], wanted: Sequence[str], where: str) -> zip[tuple[T, str]]:
    if len(found) != len(wanted):
        raise ModelFormatError(
            tr("expected {items} items, found {count}", items=len(wanted), count=len(found)),
            where=where,
        )
    return zip(found, wanted)


def _attr(attribute: Part) -> Any:
    """The Python value of an attribute."""
    kind = attribute["#"].text().split(".")[-1]
    if "D" not in attribute.fields():  # NaN and infinities have a key of their own
        texts = [v.value for k, v in attribute.fields().items() if k != "#"]
        return _SPECIAL_NUMBERS.get(str(texts[0]), math.nan) if texts else None
    data = attribute["D"]
    if kind == "a_array":
        return [_attr(element) for element in data.items()]
    if kind == "a_dtype":
        return _dtype_number(str(data.value))
    if kind == "a_place":
        return None
    return data.value


def _dtype_number(name: str) -> int:
    """-1 when the file leaves the type open."""
    dtype = _DTYPE_NAMES.get(name)
    return -1 if dtype is None else DTYPE_NUMBERS[dtype]
