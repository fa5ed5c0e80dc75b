"""A call of each verb that reads and writes files, for the campaign of faults."""

from __future__ import annotations

from dataclasses import dataclass

SAMPLES = "digits_held_back.npz"
PROFILE = "profile digits.onnx --backend reference --runs 1 --warmup 0"


@dataclass(frozen=True)
class Call:
    """The words after `lite` ("session" stands for a notebook's session), and a call before it.
    With `warm` the cache is there; `over` says that it is also run over its earlier files. `parts`
    is in how many tests the whole campaign is cut."""

    words: str
    first: str = ""
    warm: bool = False
    over: bool = True
    parts: int = 1


#: Short names: what a person gives is looked for in messages.
CALLS = {
    "convert": Call("convert digits.onnx -o out/m.lite --targets x86 --json out/c.json"),
    "warm": Call(
        "convert digits.onnx -o out/m.lite --targets opencl --tune rapid --warm", parts=16
    ),
    "opt": Call("opt --model_file digits.onnx --optimize_out out/b --record_tailoring_info true"),
    "opt_pictures": Call(
        "opt --optimized_nb_model_path out/b.nb --visualization_file_output_path out/v",
        "opt --model_file digits.onnx --optimize_out out/b",
        parts=2,
    ),
    "quantize": Call(
        f"quantize digits.onnx -o out/q.lite --calibration {SAMPLES} --samples 2 "
        "--method minmax --targets x86 --resume out/q.npz --analyze out/a.json --json out/j.json",
        parts=32,
    ),
    "trade_off": Call(
        f"quantize digits.onnx -o out/q.lite --calibration {SAMPLES} --samples 2 "
        "--method minmax --targets x86 --trade-off out/t.json",
        parts=16,
    ),
    "repeat": Call(
        f"quantize digits.onnx -o out/r.lite --calibration {SAMPLES} --samples 2 "
        "--method minmax --targets x86 --repeat out/t.json:0",
        f"quantize digits.onnx -o out/q.lite --calibration {SAMPLES} --samples 2 "
        "--method minmax --targets x86 --trade-off out/t.json",
        parts=16,
    ),
    "prune": Call(
        f"prune digits.onnx -o out/p.lite --calibration {SAMPLES} --samples 2 --sparsity 0.5 "
        "--no-measure --force --targets x86 --json out/p.json",
        parts=8,
    ),
    "run": Call(
        "run digits.onnx --input digits.png --backend reference --output out/r.npz "
        "--json out/r.json"
    ),
    "draw": Call(
        "run digits.onnx --input digits.png --backend reference --draw out/w.png", parts=2
    ),
    "profile": Call(
        "profile digits.onnx --backend x86 --runs 1 --warmup 0 --csv out/p.csv "
        "--trace out/t.json --netron out/n.json --json out/p.json",
        warm=True,
        parts=8,
    ),
    "compare": Call(
        "compare digits.onnx --backends reference,x86 --no-isolated --json out/c.json", parts=4
    ),
    "diff": Call("diff digits.onnx digits.onnx --json out/d.json"),
    "diff_report": Call("diff digits.onnx digits.onnx --report out/d.html", parts=4),
    "info": Call("info digits.onnx --json out/i.json"),
    "get_list": Call("get --json out/g.json"),
    "get": Call("get ppocr-det -o out/m --json out/g.json", over=False, parts=4),
    "edit": Call("edit digits.onnx -o out/d.onnx --batch 2 --json out/d.json"),
    "edit_lite": Call("edit digits.onnx -o out/d.lite --batch 2"),
    "export_x86": Call(
        "export digits.onnx -o out/e --target x86 --no-report --json out/e.json", parts=8
    ),
    "export_arm": Call("export digits.onnx -o out/e --target arm --no-report", parts=8),
    "export_web": Call("export digits.onnx -o out/e --target web --no-report", parts=8),
    "export_app": Call("export digits.onnx -o out/e --target x86 --app --no-report", parts=8),
    "export_report": Call("export digits.onnx -o out/e --target x86 --report", parts=32),
    "export_android": Call("export digits.onnx -o out/e --android", parts=64),
    "export_swift": Call("export digits.onnx -o out/e --swift", parts=64),
    "evaluate": Call(
        f"evaluate digits.onnx --data {SAMPLES} --limit 2 --backend reference "
        "--predictions out/v.json --json out/e.json",
        parts=8,
    ),
    "sweep": Call(
        "sweep digits.onnx --backends x86 --batch 1,2 --rounds 1 --resume out/s.json "
        "--json out/j.json"
    ),
    "recommend": Call(
        f"recommend digits.onnx --data {SAMPLES} --limit 2 -o out/m.lite --max-drop 100% "
        "--backends x86 --try weights,int8 --json out/r.json",
        parts=16,
    ),
    "recommend_report": Call(
        f"recommend digits.onnx --data {SAMPLES} --limit 2 -o out/m.lite --max-drop 100% "
        "--backends x86 --try weights --resume out/w --report out/r.html",
        parts=32,
    ),
    "tune": Call(
        "tune digits.onnx --effort rapid --json out/t.json", warm=True, over=False, parts=4
    ),
    "tune_cpu": Call("tune digits.onnx --backend cpu -o out/t.lite --json out/t.json", warm=True),
    "adopt": Call(
        "tune --import out/f.json --json out/t.json", "doctor --field-report out/f.json", parts=2
    ),
    "pipeline": Call(
        "pipeline ocr.onnx --image ocr_total.png --draw out/d.png -o out/p.lite --targets x86 "
        "--backend x86 --json out/p.json",
        parts=8,
    ),
    "report": Call("report digits.onnx -o out/r.html --backends reference --runs 1", parts=8),
    "report_live": Call(
        "report digits.onnx -o out/r.html --backends reference --runs 1 --live", parts=8
    ),
    "doctor": Call("doctor --json out/d.json"),
    "field_report": Call("doctor --field-report out/f.json", parts=4),
    "devices": Call("devices add board ssh://me@board", over=False),
    "devices_list": Call("devices list --json out/l.json", "devices add board ssh://me@board"),
    "remove": Call("devices remove board", "devices add board ssh://me@board", over=False),
    "tag": Call("runs tag 1 mine", PROFILE, over=False, parts=8),
    "runs_list": Call("runs list --json out/l.json", PROFILE),
    "runs_show": Call("runs show 1 --json out/s.json", PROFILE),
    "runs_diff": Call("runs diff 1 1 --json out/d.json", PROFILE),
    "project": Call("session save digits.onnx out/p.liteproject digits.png", parts=8),
    "project_open": Call(
        "session open out/p.liteproject",
        "session save digits.onnx out/p.liteproject digits.png",
        over=False,
    ),
    "keep": Call("session keep digits.onnx", over=False),
    "notebook": Call("session notebook digits.onnx out/n.ipynb"),
}
