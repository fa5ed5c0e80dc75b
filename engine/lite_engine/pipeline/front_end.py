"""Models that begin with TensorFlow's audio front end (DecodeWav, AudioSpectrogram, Mfcc): the
pipeline does that part natively, and the model begins after it."""

from __future__ import annotations

from typing import Any

from lite_messages import tr

from ..errors import UsageError
from ..ir import Graph, Node, Value
from ..model_file import Model

#: What `features` may say: samples a second, samples that the model hears, a window and its stride
#: in samples, filters on the mel scale between two frequencies, and coefficients.
FEATURES = ("rate", "samples", "window", "stride", "filters", "low", "high", "coefficients")
_RATE = 16000


def split_front_end(model: Model, rate: int = _RATE) -> tuple[Model, dict[str, Any]] | None:
    """(the model that begins with the coefficients, the `features` that it wants), or None for a
    model without this front end. The file does not say which `rate` it was trained at. Raises
    UsageError for a front end of another kind."""
    graph = model.graph.copy()
    last = next((node for node in graph.nodes if node.op == "Mfcc"), None)
    spectrum = last.inputs[0].producer if last and last.inputs[0] else None
    wav = spectrum.inputs[0].producer if spectrum and spectrum.inputs[0] else None
    if last is None or spectrum is None or wav is None or wav.op != "DecodeWav":
        return None
    if not spectrum.attrs.get("magnitude_squared") or spectrum.op != "AudioSpectrogram":
        raise UsageError(tr("its audio front end is not squared magnitudes, then MFCC"))
    features = {
        "rate": rate,
        "samples": wav.attrs["desired_samples"],
        "window": spectrum.attrs["window_size"],
        "stride": spectrum.attrs["stride"],
        "filters": last.attrs["filterbank_channel_count"],
        "low": last.attrs["lower_frequency_limit"],
        "high": last.attrs["upper_frequency_limit"],
        "coefficients": last.attrs["dct_coefficient_count"],
    }
    return model.but(source=_after(graph, last), path=None), features


def _after(graph: Graph, node: Node) -> Graph:
    """The graph with the node's output as its only input."""
    start = node.outputs[0]
    entry = Value("features", start.dtype, start.shape)
    graph.inputs = [entry]
    graph.replace_uses(start, entry)
    graph.remove_unread()
    return graph
