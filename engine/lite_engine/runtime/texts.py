"""A text → the integers that a language model reads: WordPiece, as BERT has it.

M. Schuster, K. Nakajima: Japanese and Korean voice search. ICASSP 2012.
J. Devlin, M. Chang, K. Lee, K. Toutanova: BERT. NAACL 2019.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from lite_messages import tr

from ..documents import parse
from ..errors import UsageError, reason_of
from ..ir import DType, Graph, Value
from ..lines import lines_of

_UNKNOWN, _FIRST, _LAST, _FILL = "[UNK]", "[CLS]", "[SEP]", "[PAD]"
_SPECIAL = (_UNKNOWN, _FIRST, _LAST, _FILL)
_GOES_ON = "##"  # before a piece inside a word
_MOST_LETTERS = 100  # of a word that is looked up
_INTEGERS = (DType.I32, DType.I64)
#: Ideographs, which are words of one letter each.
_IDEOGRAPHS = ((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F),
               (0x2B740, 0x2B81F), (0x2B820, 0x2CEAF), (0xF900, 0xFAFF),
               (0x2F800, 0x2FA1F))  # fmt: skip


@dataclass(frozen=True)
class Tokenizer:
    """Pieces of words by number; `lower`: letters become small and lose their accents first."""

    vocabulary: Mapping[str, int]
    lower: bool

    @classmethod
    def open(cls, path: str | Path) -> Tokenizer:
        """BERT's `vocab.txt`, a piece per line, or a `tokenizer.json` of that kind. Raises
        UsageError, ModelFormatError."""
        try:
            content = Path(path).read_bytes()
            if Path(path).suffix == ".json":
                made = cls._of_json(content.decode("utf-8-sig"), path)
            else:
                made = cls._of_pieces(lines_of(content))
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(
                tr("the tokenizer cannot be read ({reason})", reason=reason_of(error)), where=path
            ) from None
        lacks = [name for name in _SPECIAL if name not in made.vocabulary]
        if lacks:
            raise UsageError(
                tr("the vocabulary lacks {names}", names=", ".join(lacks)), where=path,
                fix=tr("give the vocab.txt or tokenizer.json of a BERT model"),
            )  # fmt: skip
        return made

    @classmethod
    def _of_pieces(cls, lines: list[str]) -> Tokenizer:
        pieces = {line: i for i, line in enumerate(lines) if line}
        return cls(pieces, not any(p != p.lower() for p in pieces if p not in _SPECIAL))

    @classmethod
    def _of_json(cls, content: str, path: str | Path) -> Tokenizer:
        document = parse(content, "tokenizer")
        named = document["model"].get("type")
        kind = named.text() if named is not None else "BPE"
        if kind != "WordPiece":
            raise UsageError(
                tr("a {kind} tokenizer is not supported", kind=kind), where=path,
                fix=tr("tokenize the text elsewhere and give the numbers as a .npz file"),
            )  # fmt: skip
        vocabulary = {name: n.integer() for name, n in document["model"]["vocab"].fields().items()}
        normalizer = document.get("normalizer")
        lower = normalizer.get("lowercase") if normalizer is not None else None
        return cls(vocabulary, lower is None or lower.truth())

    def encode(self, text: str, length: int | None = None) -> tuple[list[int], list[int]]:
        """(numbers, 1 where they stand for text and 0 where they fill up to `length`). A text that
        is too long is cut; the end mark stays."""
        known = self.vocabulary
        pieces = [known[p] for word in self._words(text) for p in self._pieces(word)]
        if length is not None:
            pieces = pieces[: max(0, length - 2)]
        numbers = [known[_FIRST], *pieces, known[_LAST]]
        empty = 0 if length is None else max(0, length - len(numbers))
        return numbers + [known[_FILL]] * empty, [1] * len(numbers) + [0] * empty

    def _words(self, text: str) -> Iterator[str]:
        if self.lower:
            letters = unicodedata.normalize("NFD", text.lower())
            text = "".join(c for c in letters if unicodedata.category(c) != "Mn")
        word = ""
        for letter in text:
            kind = unicodedata.category(letter)
            if kind[0] == "C" and letter not in "\t\n\r":
                continue
            alone = _is_mark(letter, kind) or _is_ideograph(letter)
            if alone or letter.isspace():
                if word:
                    yield word
                word = ""
                if alone:
                    yield letter
            else:
                word += letter
        if word:
            yield word

    def _pieces(self, word: str) -> list[str]:
        """The longest pieces from the left; unknown as a whole where one is missing."""
        found, at = [], 0
        while at < len(word) and len(word) <= _MOST_LETTERS:
            before = _GOES_ON if at else ""
            ends = range(len(word), at, -1)
            end = next((e for e in ends if before + word[at:e] in self.vocabulary), None)
            if end is None:
                return [_UNKNOWN]
            found.append(before + word[at:end])
            at = end
        return found if at == len(word) else [_UNKNOWN]


def _is_mark(letter: str, kind: str) -> bool:
    """Punctuation, and every other ASCII character that is neither letter nor digit."""
    return kind[0] == "P" or ("!" <= letter <= "~" and not letter.isalnum())


def _is_ideograph(letter: str) -> bool:
    return any(first <= ord(letter) <= last for first, last in _IDEOGRAPHS)


def takes_text(graph: Graph) -> bool:
    """Has it an input for the numbers of a text?"""
    return len(_by_role(graph).get("numbers", [])) == 1


def text_feeds(graph: Graph, text: str, tokenizer: Tokenizer) -> dict[str, np.ndarray]:
    """The integer inputs of a graph: numbers of the text, its mask, its segment. Raises UsageError
    where more than one input could be the numbers, or none."""
    roles = _by_role(graph)
    numbers = roles.get("numbers", [])
    if len(numbers) != 1:
        raise UsageError(
            tr("the model takes no text: it needs one integer input of shape 1×length"),
            fix=tr("give its inputs as a .npz file"),
        )
    last = (numbers[0].shape or (None,))[-1]
    made, mask = tokenizer.encode(text, last if isinstance(last, int) else None)
    values = {"numbers": made, "mask": mask, "segment": [0] * len(made)}
    return {
        value.name: np.array(values[role], value.type.dtype.np).reshape(
            (1,) * (len(value.shape or ()) - 1) + (-1,)
        )
        for role, found in roles.items()
        for value in found
    }


def _by_role(graph: Graph) -> dict[str, list[Value]]:
    """Integer inputs of one text, by what their names say they are."""
    roles: dict[str, list[Value]] = {}
    for value in graph.inputs:
        dims = value.shape or ()
        if value.dtype not in _INTEGERS or len(dims) not in (1, 2) or dims[:-1] not in ((), (1,)):
            continue
        name = value.name.lower()
        segment = "type" in name or "segment" in name
        role = "mask" if "mask" in name else "segment" if segment else "numbers"
        roles.setdefault(role, []).append(value)
    return roles
