"""A call of each verb that reads and writes files, for the campaign of faults."""

from __future__ import annotations

from dataclasses import dataclass

SAMPLES = "digits_held_back.npz"
PROFILE = "profile digits.onnx --backend reference --runs 1 --warmup 0"


@dataclass(frozen=True)
class Call:
    """The words after `lite` ("session" stands for a notebook's session), and a call before it.
    With `warm` the cache is there; `over` says that it is also run over its earlier files."""

    words: str
    first: str = ""
    warm: bool = False
    over: bool = True


#: Short names: what a person gives is looked for in messages.
CALLS = {
    "convert": Call("convert digits.onnx -o out/m.lite --targets x86"),
    "opt": Call("opt --model_file digits.onnx --optimize_out out/b"),
    "quantize": Call(
        f"quantize digits.onnx -o out/q.lite --calibration {SAMPLES} --samples 2 "
        "--method minmax --targets x86 --resume out/q.npz --analyze out/a.json"
    ),
    "prune": Call(
        f"prune digits.onnx -o out/p.lite --calibration {SAMPLES} --samples 2 --sparsity 0.5 "
        "--no-measure --force --targets x86 --json out/p.json"
    ),
    "run": Call(
        "run digits.onnx --input digits.png --backend reference --output out/r.npz "
        "--json out/r.json"
    ),
    "draw": Call("run digits.onnx --input digits.png --backend reference --draw out/w.png"),
    "profile": Call(
        "profile digits.onnx --backend x86 --runs 1 --warmup 0 --csv out/p.csv "
        "--trace out/t.json --netron out/n.json --json out/p.json",
        warm=True,
    ),
    "compare": Call("compare digits.onnx --backends reference,x86 --no-isolated --json out/c.json"),
    "diff": Call("diff digits.onnx digits.onnx --json out/d.json"),
    "diff_report": Call("diff digits.onnx digits.onnx --report out/d.html"),
    "info": Call("info digits.onnx --json out/i.json"),
    "get": Call("get --json out/g.json"),
    "edit": Call("edit digits.onnx -o out/d.onnx --batch 2 --json out/d.json"),
    "edit_lite": Call("edit digits.onnx -o out/d.lite --batch 2"),
    "export_x86": Call("export digits.onnx -o out/e --target x86 --no-report"),
    "export_arm": Call("export digits.onnx -o out/e --target arm --no-report"),
    "export_web": Call("export digits.onnx -o out/e --target web --no-report"),
    "export_app": Call("export digits.onnx -o out/e --target x86 --app --no-report"),
    "evaluate": Call(
        f"evaluate digits.onnx --data {SAMPLES} --limit 2 --backend reference "
        "--predictions out/v.json --json out/e.json"
    ),
    "sweep": Call(
        "sweep digits.onnx --backends x86 --batch 1,2 --rounds 1 --resume out/s.json "
        "--json out/j.json"
    ),
    "recommend": Call(
        f"recommend digits.onnx --data {SAMPLES} --limit 2 -o out/m.lite --max-drop 100% "
        "--backends x86 --try weights,int8 --json out/r.json"
    ),
    "tune": Call("tune digits.onnx --effort rapid --json out/t.json", warm=True, over=False),
    "tune_cpu": Call("tune digits.onnx --backend cpu -o out/t.lite --json out/t.json", warm=True),
    "pipeline": Call(
        "pipeline ocr.onnx --image ocr_total.png --draw out/d.png -o out/p.lite --targets x86 "
        "--backend x86 --json out/p.json"
    ),
    "report": Call("report digits.onnx -o out/r.html --backends reference --runs 1"),
    "doctor": Call("doctor --json out/d.json"),
    "devices": Call("devices add board ssh://me@board", over=False),
    "devices_list": Call("devices list --json out/l.json", "devices add board ssh://me@board"),
    "remove": Call("devices remove board", "devices add board ssh://me@board", over=False),
    "tag": Call("runs tag 1 mine", PROFILE, over=False),
    "runs_list": Call("runs list --json out/l.json", PROFILE),
    "runs_show": Call("runs show 1 --json out/s.json", PROFILE),
    "runs_diff": Call("runs diff 1 1 --json out/d.json", PROFILE),
    "project": Call("session save digits.onnx out/p.liteproject"),
    "project_open": Call(
        "session open out/p.liteproject", "session save digits.onnx out/p.liteproject", over=False
    ),
    "keep": Call("session keep digits.onnx", over=False),
    "notebook": Call("session notebook digits.onnx out/n.ipynb"),
}
