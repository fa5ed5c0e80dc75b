"""What a session measures with one backend: runs, profiles with their advice, tuned variants."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lite_engine.errors import check_choice

from ..answers import Run, answer_of
from ..inputs import GUESSED, as_code, is_guessed, size_of
from ._state import SessionState
from .feeds import input_of
from .predictors import predictor
from .versions import model_of

if TYPE_CHECKING:
    from lite_engine.backends import Measured
    from lite_engine.doctor.field_report import Adopted
    from lite_engine.plan import Plan
    from lite_engine.profile import Profile
    from lite_engine.profile.advice import Advice


def run(state: SessionState, image: Any, backend: str, version: str | None) -> Run:
    """See `Session.run`. Raises LiteError."""
    with state.busy:
        feeds = input_of(state, image)
        used = predictor(state, backend, version)
        name = version or state.version  # another may be chosen while this one runs
        used.run(feeds)  # the first run plans and packs
        began = time.perf_counter()
        outputs = used.run(feeds)
        ms = (time.perf_counter() - began) * 1e3
        said = answer_of(used.model, feeds, outputs, picture=size_of(state.image))
        shapes = {n: x.shape for n, x in feeds.items()}
        shares, idle = used.shares(shapes), used.idle_layers(shapes)
        note = GUESSED if state.image and is_guessed(used.model) else ""
        of = used.display_precision
        made = Run(
            used.backend, of, name, outputs, said, ms, shares, note, idle, feeds, state.image
        )
        state.runs.pop(used.backend, None)  # the newest is last
        state.runs[used.backend] = made
        state.measured("run", used.backend)
    given = f"{as_code(image)}, " if image is not None else ""
    of = f", version={version!r}" if version is not None else ""
    state.remember(f"session.run({given}backend={used.backend!r}{of})")
    state.notify("run", made)
    return made


def profile(state: SessionState, backend: str, runs: int | None, image: Any) -> Profile:
    """See `Session.profile`. Raises LiteError."""
    from lite_engine.history import History
    from lite_engine.profile import profile as profile_layers

    with state.busy:
        used, version = predictor(state, backend), state.version
        feeds = input_of(state, image)
        made = profile_layers(used, feeds, runs=runs, progress=state.progress)
        plan = used.plan({n: x.shape for n, x in feeds.items()})
        state.advice[used.backend] = advise(state, made, plan)
        History().add(made, str(state.path))
        state.profiles.pop(used.backend, None)  # the newest is last
        state.profiles[used.backend] = made
        state.profiled[used.backend] = version, used
        state.history.append(made)
        state.measured("profile", used.backend)
    state.remember(f"profile = session.profile(backend={used.backend!r}, runs={made.runs})")
    state.notify("profile", made)
    return made


def advise(state: SessionState, profile: Profile, plan: Plan) -> list[Advice]:
    """See `Session.advise`."""
    from lite_engine.profile.advice import advise as advise_on
    from lite_engine.profile.advice import shape_options

    model = model_of(state)
    made = model.metadata.get("quantized_by", "")
    given = shape_options(state.shapes)
    return advise_on(profile, plan, model.journal, state.path, reading=given, made=made)


def tune(state: SessionState, effort: str, backend: str) -> list[Measured]:
    """See `Session.tune`. Raises UsageError, BackendUnavailableError."""
    from lite_engine.profile.forms import tune_forms
    from lite_engine.runtime import host_target
    from lite_engine.runtime.tune import tune as tune_layers

    check_choice("backend", backend, ("opencl", "cpu"))
    with state.busy:
        if backend == "cpu":
            made = tune_forms(predictor(state, host_target()))
        else:
            made = tune_layers(predictor(state, "opencl"), effort).measured
    options = repr(effort) if backend == "opencl" else f"backend={backend!r}"
    state.remember(f"session.tune({options})")
    state.notify("tuned", made)
    return made


def import_tuning(state: SessionState, report: Path) -> Adopted:
    """See `Session.import_tuning`. Raises LiteError."""
    from lite_engine import doctor

    with state.busy:
        made = doctor.adopt(doctor.read(report))
        state.predictors.clear()
    state.remember(f"session.import_tuning({str(report)!r})")
    state.notify("tuned", made)
    return made
