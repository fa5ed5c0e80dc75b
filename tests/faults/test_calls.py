"""The campaign has a call for each verb and for each option that writes, as the parsers name them:
a new one without a call is found here."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from lite_workbench.commands import _own_files, available, get_command, parser_for

from .calls import CALLS

pytestmark = pytest.mark.cpu
#: What starts a server of another program.
WITHOUT = {"lab"}
_FILE = re.compile("FILE|DIR|OUT|URI|REPORT")
_PLACE = re.compile(r"\b(file|folder)\b")
_WRITES = re.compile(r"\b(write|save|store|embed|log|build|compile)\b")
#: What the campaign does not call: it reads, or changes only what is in a file that is written.
READ = {
    "opt": {"--model_dir", "--param_file", "--model_set_dir", "--model_filename",
            "--param_filename"},
}  # fmt: skip
SAME_FILES = {
    "convert": {"--ship-kernels", "--tunable"},
    "export": {"--ship-kernels"},
    "opt": {"--quant_model", "--sparse_model"},
    "quantize": {"--force", "--asymmetric"},
    "prune": {"--force"},
    "edit": {"--optimized"},
    "profile": {"--no-history"},
}  # fmt: skip
#: Files of other programs: a compiler's, MLflow's, those of a device that is tested or set up.
OF_OTHERS = {
    "export": {"--trim"},
    "evaluate": {"--mlflow"},
    "sweep": {"--mlflow"},
    "devices": {"test", "setup"},
}  # fmt: skip


def words_of(verb: str) -> set[str]:
    calls = [words.split() for call in CALLS.values() for words in (call.words, call.first)]
    return {word.partition("=")[0] for call in calls if call[:1] == [verb] for word in call}


def writing(verb: str) -> Iterator[str]:
    """The options, actions and targets of a verb that may write other files than the rest."""
    for action in parser_for(get_command(verb))._actions:
        if action.dest in _own_files.READ:
            continue
        if not action.option_strings or action.dest == "target":
            yield from map(str, action.choices or ())
            continue
        about = str(action.help)
        named = _FILE.search(str(action.metavar)) or _WRITES.search(about)
        plain = not action.metavar and not action.choices  # those of Paddle-Lite
        if named or (plain and _PLACE.search(about)):
            yield "/".join(action.option_strings)


def test_every_verb_has_a_call() -> None:
    called = {call.words.split()[0] for call in CALLS.values()}
    assert called == {*available(), "session"} - WITHOUT


@pytest.mark.parametrize("verb", sorted(set(available()) - WITHOUT))
def test_every_option_that_writes_has_a_call(verb: str) -> None:
    called = words_of(verb)
    known = [lists.get(verb, set()) for lists in (READ, SAME_FILES, OF_OTHERS)]
    options = {name: set(name.split("/")) for name in writing(verb)}
    without = {name for name, ways in options.items() if not ways & called.union(*known)}
    assert not without, f"lite {verb}: tests/faults/calls.py has no call with {without}"
    unused = set().union(*known) - {way for ways in options.values() for way in ways}
    assert not unused, f"lite {verb}: {unused} is listed and not there"
