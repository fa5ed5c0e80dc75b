"""The versions of a session's model: converted, chosen, dropped, and how images are prepared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lite_engine._deprecated import warn_renamed
from lite_engine.errors import UsageError
from lite_engine.model_file import Model, optimize
from lite_engine.model_file.precision import DEFAULT_TARGETS
from lite_engine.preprocess import Preprocess
from lite_messages import tr

from ..names import GIVEN
from ._state import SessionState


def convert(
    state: SessionState, targets: Sequence[str], precision: str | Mapping[str, str] = "fp32"
) -> Model:
    """Makes the version `state.base` for these targets and chooses it. Raises LiteError."""
    names = list(targets)
    with state.busy:
        known, state.optimized = state.optimized, None
        model = optimize(state.graph, targets=names, precision=precision, known=known)
        model.path = state.path
        before = state.targets
        state.targets, state.precision = list(model.targets), dict(model.precisions)
        keep(state, state.base, model)
        if state.targets != before:
            state.notify("targets", state.targets)
    suffix = "" if precision == "fp32" else f", precision={precision!r}"
    state.remember(f"session.convert(targets={names!r}{suffix})")
    return model


def model_of(state: SessionState, version: str | None = None) -> Model:
    """A version's Model (None: the chosen one). Where nothing was converted yet, the base version
    is made for every target. Raises UsageError for a version that is not there."""
    return _named(state, state.version if version is None else version)


def _named(state: SessionState, name: str) -> Model:
    """Raises UsageError for what is no version's name, whatever it is."""
    if name == state.base and name not in state.versions:
        convert(state, DEFAULT_TARGETS)
    if not isinstance(name, str) or name not in state.versions:
        raise UsageError(
            tr("there is no version {version!r}", version=name),
            fix=tr("choose from {versions}", versions=", ".join(state.versions or [state.base])),
        )
    return state.versions[name]


def base_model(state: SessionState) -> Model:
    """The version that others are made from; converts for every target when there is none."""
    return model_of(state, state.base)


def keep(state: SessionState, name: str, model: Model) -> None:
    """Keeps a version under its name and chooses it."""
    state.versions[name] = model
    state.version = name
    state.notify("versions", name)


def drop(state: SessionState, name: str, instead: str) -> None:
    """Forgets a version and chooses another."""
    del state.versions[name]
    keep(state, instead, state.versions[instead])


def use(state: SessionState, version: str) -> None:
    """Chooses the version that runs, is profiled and exported. Raises UsageError."""
    if version == "as given":
        warn_renamed(tr('the version "as given"'), f'"{GIVEN}"', calls=2)  # through Session.use
        version = GIVEN
    _named(state, version)
    state.version = version
    state.remember(f"session.use({version!r})")
    state.notify("versions", version)


def prepare(state: SessionState, how: str) -> None:
    """See `Session.prepare`. Raises UsageError."""
    made = Preprocess.parse(how, state.metadata.get("preprocess")).to_dict()
    for metadata in (state.graph.metadata, *(m.metadata for m in state.versions.values())):
        metadata["preprocess"] = made
    state.feeds, state.image = None, b""
    state.remember(f"session.prepare({how!r})")
    state.notify("prepared", made)
