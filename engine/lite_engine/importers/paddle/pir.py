"""Paddle 3's PIR programs: `inference.json` → Program, with operators renamed to the older ones.

Layout: {"base_code": {"magic": "pir", …}, "program": {"regions": [{"blocks": [{"ops": […]}]}]}}.
An operator is {"#": "1.conv2d", "I": [{"%": id}…], "O": [{"%": id, "TT": type}…], "A": [{"N": name,
"AT": {"#": kind, "D": data}}…]}; id 0 is an absent input, parameters are the operator "p".
Source: Paddle serialize_deserialize (PIR program, version 1 and up).
"""

from __future__ import annotations

import json
import math
from typing import Any

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
_SPECIAL = {"NaN": math.nan, "INF": math.inf, "-INF": -math.inf}
#: JSON becomes up to 80 times as large in Python; DenseNet-169 has 0.6 MB
_MAX_BYTES, _MAX_CONTAINERS = 1 << 25, 1 << 20
MAX_BLOCKS, MAX_DEPTH = 4096, 16


def looks_like_pir(head: bytes) -> bool:
    """True when a file starts like a PIR program."""
    return head.lstrip()[:1] == b"{" and b'"base_code"' in head and b'"pir"' in head


def read_pir(data: memoryview) -> Program:
    """The program without its parameters. Raises ModelFormatError, UnsupportedOperatorError."""
    if len(data) > _MAX_BYTES:
        raise ModelFormatError(f"a PIR program of {len(data)} bytes is too large")
    text = bytes(data)
    if text.count(b"{") + text.count(b"[") > _MAX_CONTAINERS:
        raise ModelFormatError(f"a PIR program of more than {_MAX_CONTAINERS} parts is too large")
    try:
        tree = json.loads(text)
        ops = tree["program"]["regions"][0]["blocks"][0]["ops"]
        reader = _Reader()
        for op in ops:
            reader.read(op)
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ModelFormatError(f"not a PIR program: {error}") from None
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise ModelFormatError(f"damaged PIR program ({type(error).__name__}: {error})") from None
    return Program(reader.blocks, producer="Paddle PIR")


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

    def read(self, item: dict[str, Any]) -> None:
        if item["#"] == "p":
            self._parameter(item)
            return
        dialect, _, name = str(item["#"]).partition(".")
        attrs = {a["N"]: _attr(a["AT"]) for a in item.get("A", [])}
        ins = [int(i.get("%", i.get("#", 0))) for i in item.get("I", [])]
        outs = item.get("O", [])
        regions = item.get("regions") or []
        if name in ("while", "if") and regions:
            getattr(self, f"_{name}")(item, ins, outs, regions)
            return
        if any(regions):
            raise UnsupportedOperatorError(
                f"PIR operator {name!r} has a body; only `if` and `while` may have one: export the "
                "model with FLAGS_enable_pir_api=0",
                (name,),
            )
        special = getattr(self, f"_{_DIALECTS.get(dialect, '')}_{name}", None)
        if special is not None:
            special(ins, outs, attrs)
        else:
            self._operator(name, ins, outs, attrs)

    # ---- values
    def _define(self, out: dict[str, Any], stem: str) -> list[str]:
        """Names for one output; a list type gets one name per element."""
        number = int(out.get("%", out.get("#", 0)))
        kind = out.get("TT") or {}
        if str(kind.get("#", "")).endswith("t_vec"):
            names = [f"{stem}.{number}.{i}" for i in range(len(kind["D"]))]
            for name, element in zip(names, kind["D"]):
                self._describe(name, element)
            self.lists[number] = names
            return names
        name = f"{stem}.{number}"
        self._describe(name, kind)
        self.names[number] = name
        return [name]

    def _describe(self, name: str, kind: dict[str, Any]) -> Var:
        var = Var(name)
        if str(kind.get("#", "")).endswith("t_dtensor"):
            element, dims = kind["D"][0], kind["D"][1]
            if len(dims) > MAX_RANK:
                raise ModelFormatError(f"{name}: {len(dims)} dimensions")
            var.dtype = _DTYPES.get(str(element["#"]).split(".")[-1])
            var.shape = tuple(int(d) for d in dims)
        self.block.vars[name] = var
        return var

    def _named(self, number: int) -> list[str]:
        if number == 0:
            return []
        if number in self.lists:
            return self.lists[number]
        if number not in self.names:
            raise ModelFormatError(f"PIR value {number} is read before it is made")
        return [self.names[number]]

    # ---- operators with a meaning of their own
    def _parameter(self, item: dict[str, Any]) -> None:
        name = str(item["A"][3])
        var = self._describe(name, item["O"]["TT"])
        var.persistable = bool((item.get("OA") or [1])[0])
        self.names[int(item["O"].get("%", item["O"].get("#", 0)))] = name

    def _pd_op_data(self, ins: list[int], outs: list[Any], attrs: dict[str, Any]) -> None:
        name = str(attrs["name"])
        self._describe(name, outs[0]["TT"])
        self.names[int(outs[0].get("%", outs[0].get("#", 0)))] = name
        self.block.vars.setdefault("feed", Var("feed", FEED_LIST, persistable=True))
        self.block.ops.append(Op("feed", {"X": ["feed"]}, {"Out": [name]}, {"col": self.columns}))
        self.columns += 1

    _pd_op_feed = _pd_op_data

    def _pd_op_fetch(self, ins: list[int], outs: list[Any], attrs: dict[str, Any]) -> None:
        source, name = self._named(ins[0])[0], str(attrs["name"])
        self.block.vars.setdefault("fetch", Var("fetch", FETCH_LIST, persistable=True))
        self.block.ops.append(Op("assign", {"X": [source]}, {"Out": [name]}))
        self.block.ops.append(
            Op("fetch", {"X": [name]}, {"Out": ["fetch"]}, {"col": int(attrs.get("col", 0))})
        )

    def _builtin_combine(self, ins: list[int], outs: list[Any], attrs: dict[str, Any]) -> None:
        self.lists[int(outs[0]["%"])] = [n for i in ins for n in self._named(i)]

    def _builtin_split(self, ins: list[int], outs: list[Any], attrs: dict[str, Any]) -> None:
        for out, name in zip(outs, self._named(ins[0])):
            self.names[int(out["%"])] = name

    def _builtin_slice(self, ins: list[int], outs: list[Any], attrs: dict[str, Any]) -> None:
        self.names[int(outs[0]["%"])] = self._named(ins[0])[int(attrs["index"])]

    def _builtin_shadow_output(self, *_: Any) -> None:
        """Names a value for the executor; the fetch says what is an output."""

    _builtin_set_parameter = _builtin_shadow_output

    def _pd_op_full(self, ins: list[int], outs: list[Any], attrs: dict[str, Any]) -> None:
        (name,) = self._define(outs[0], "full")
        self.constants[int(outs[0]["%"])] = attrs["value"]
        self.block.ops.append(Op("fill_constant", {}, {"Out": [name]}, attrs))

    def _pd_op_full_int_array(self, ins: list[int], outs: list[Any], attrs: dict[str, Any]) -> None:
        (name,) = self._define(outs[0], "full_int_array")
        values = [int(v) for v in attrs["value"]]
        self.constants[int(outs[0]["%"])] = values
        attrs = {"values": values, "shape": [len(values)], "dtype": attrs.get("dtype", 3)}
        self.block.ops.append(Op("assign_value", {}, {"Out": [name]}, attrs))

    # ---- bodies: written with the older form's blocks
    def _assign(self, source: str, target: str) -> None:
        self.block.ops.append(Op("assign", {"X": [source]}, {"Out": [target]}))

    def _body(self, region: dict[str, Any], arguments: list[str], results: list[str]) -> int:
        """Reads a region as a block of its own: `results` hold what it yields. Its index."""
        if len(self.blocks) > MAX_BLOCKS or self.depth >= MAX_DEPTH:
            raise ModelFormatError("PIR: too many nested bodies")
        (body,) = region["blocks"]
        around, kept = self.block, dict(self.names)
        self.block = Block(parent=0)
        self.blocks.append(self.block)
        index = len(self.blocks) - 1
        self.depth += 1
        for argument, name in zip(body["args"], arguments, strict=True):
            self.names[int(argument.get("%", argument.get("#", 0)))] = name
        for item in body["ops"]:
            if str(item["#"]).endswith(".yield"):
                ends = [self._named(int(i["%"]))[0] for i in item["I"]]
                # first aside, then in place: a result may be another's old value
                for end, name in zip(ends, results, strict=True):
                    self._assign(end, f"{name}/new")
                for name in results:
                    self._assign(f"{name}/new", name)
            else:
                self.read(item)
        self.depth -= 1
        self.block, self.names = around, kept
        return index

    def _while(
        self, item: dict[str, Any], ins: list[int], outs: list[Any], regions: list[Any]
    ) -> None:
        carried = [n for out in outs for n in self._define(out, "while")]
        condition = f"{carried[0] if carried else 'while'}/condition"
        for source, name in zip(ins, [condition, *carried], strict=True):
            self._assign(self._named(source)[0], name)
        index = self._body(regions[0], carried, [condition, *carried])
        self.block.ops.append(
            Op("while", {"Condition": [condition]}, {"Out": carried}, {"sub_block": index})
        )

    def _if(
        self, item: dict[str, Any], ins: list[int], outs: list[Any], regions: list[Any]
    ) -> None:
        condition = self._named(ins[0])[0]
        results = [n for out in outs for n in self._define(out, "if")]
        sides = []
        for region, side in zip(regions, ("then", "else"), strict=True):
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
    def _operator(self, name: str, ins: list[int], outs: list[Any], attrs: dict[str, Any]) -> None:
        known = find_pir_op(name)
        if known is None:
            raise UnsupportedOperatorError(
                f"PIR operator {name!r} is not supported; replace it in the model, or export the "
                "part before it",
                (name,),
            )
        op = Op(known.legacy, attrs={**IMPLIED.get(name, {}), **attrs})
        for spec, number in zip(known.inputs, ins):
            self._argument(op, spec, number)
        for spec, out in zip(known.outputs, outs):
            names = self._define(out, known.legacy)
            if spec != "_":
                op.outputs[spec] = names
        op.attrs = {known.attrs.get(k, k): v for k, v in op.attrs.items()}
        self.block.ops.append(op)

    def _argument(self, op: Op, spec: str, number: int) -> None:
        attr, *slots = spec.split("@")
        if number == 0 or attr == "_":
            return
        is_attribute = attr[0].islower()
        if is_attribute and number in self.constants:
            op.attrs[attr] = self.constants[number]
            return
        if not is_attribute:
            op.inputs[attr] = self._named(number)
            return
        slot = slots[-1] if number in self.lists and slots else slots[0] if slots else ""
        if not slot:
            raise UnsupportedOperatorError(
                f"{op.type}: its argument {attr!r} is computed while running; make it a constant",
                (op.type,),
            )
        op.inputs[slot] = self._named(number)


def _attr(attribute: dict[str, Any]) -> Any:
    """The Python value of an attribute."""
    kind = str(attribute["#"]).split(".")[-1]
    if "D" not in attribute:  # NaN and infinities have a key of their own
        texts = [v for k, v in attribute.items() if k != "#"]
        return _SPECIAL.get(str(texts[0]), math.nan) if texts else None
    data = attribute["D"]
    if kind == "a_array":
        return [_attr(element) for element in data]
    if kind == "a_dtype":
        return _dtype_number(str(data))
    if kind == "a_place":
        return None
    return data


def _dtype_number(name: str) -> int:
    """-1 when the file leaves the type open."""
    dtype = _DTYPE_NAMES.get(name)
    return -1 if dtype is None else DTYPE_NUMBERS[dtype]
