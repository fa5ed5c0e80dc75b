"""Well-known public models of the Hugging Face hub: what there is, and fetching one.

What a name stands for is fixed by the first fetch: the commit and the SHA-256 of each file are kept
in `starters.json` in the cache folder, and a later fetch must give the same bytes.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lite_engine import settings
from lite_engine.documents import parse
from lite_engine.errors import (
    BackendUnavailableError,
    LiteError,
    UsageError,
    WriteError,
    reason_of,
)
from lite_engine.files import filling, inside, is_file, locked, sha256, write_file
from lite_messages import tr


@dataclass(frozen=True)
class Starter:
    """`repo` of the hub and its `files`, the model first. `license` as the repository stated it
    when the list was written; a fetch shows what it states then."""

    name: str
    repo: str
    files: tuple[str, ...]
    task: str
    license: str


@dataclass
class Fetched:
    """Files on this machine with their SHA-256, and what the hub said of them."""

    name: str
    repo: str
    commit: str
    license: str
    files: list[str]
    sha256: dict[str, str]


@dataclass
class Starters:
    """What can be fetched, or what was."""

    models: list[Starter]
    fetched: Fetched | None = None


_PADDLE = ("inference.json", "inference.pdiparams")
_ONNX = ("onnx/model.onnx",)
STARTERS = {
    s.name: s
    for s in (
        Starter("resnet-50", "Xenova/resnet-50", _ONNX, tr("image classification"), "apache-2.0"),
        Starter("vit-base", "Xenova/vit-base-patch16-224", _ONNX, tr("image classification"),
                "apache-2.0"),
        Starter("detr", "Xenova/detr-resnet-50", _ONNX, tr("object detection"), "apache-2.0"),
        Starter("yolos-tiny", "Xenova/yolos-tiny", _ONNX, tr("object detection"), "apache-2.0"),
        Starter("ppocr-det", "PaddlePaddle/PP-OCRv5_mobile_det", _PADDLE, tr("text detection"),
                "apache-2.0"),
        Starter("ppocr-rec", "PaddlePaddle/PP-OCRv5_mobile_rec", _PADDLE, tr("text recognition"),
                "apache-2.0"),
        Starter("minilm", "sentence-transformers/all-MiniLM-L6-v2", _ONNX, tr("text embedding"),
                "apache-2.0"),
    )
}  # fmt: skip


def find(name: str) -> Starter:
    """A listed model, or `OWNER/REPO:FILE[,FILE]` of the hub. Raises UsageError."""
    if name in STARTERS:
        return STARTERS[name]
    repo, colon, files = name.partition(":")
    if repo.count("/") != 1 or not colon or not all(files.split(",")):
        raise UsageError(
            tr("there is no model {name!r}", name=name),
            fix=tr("`lite get` lists the models; any other is written as OWNER/REPO:FILE"),
        )
    return Starter(repo.partition("/")[2], repo, tuple(files.split(",")), "", "")


def fetch(starter: Starter, folder: Path, *, update: bool = False) -> Fetched:
    """Downloads the model and checks it against the first fetch; then its files become those of the
    folder. `update` takes what the hub has now. What an interrupted download has got is kept in the
    cache folder for the next one.

    Raises BackendUnavailableError without the hub's package or a network, and LiteError where the
    files are others or cannot be written.
    """
    try:
        import huggingface_hub
    except ImportError:
        raise BackendUnavailableError(
            tr("fetching models needs huggingface_hub"),
            command="pip install 'lite-workbench[hub]'",
        ) from None
    # the library reads the variable only when it is imported
    endpoint = os.environ.get("HF_ENDPOINT", "https://huggingface.co")
    pins = {} if update else _pins().get(starter.repo, {})
    pinned: dict[str, str] = pins.get("sha256", {})
    places = {file: inside(folder, file) for file in starter.files}
    so_far = settings.cache_dir() / "downloads" / starter.repo.replace("/", "--")
    with locked(so_far):
        try:
            api = huggingface_hub.HfApi(endpoint=endpoint)
            info = api.model_info(starter.repo, revision=pins.get("commit"), files_metadata=True)
            got = {
                file: Path(
                    huggingface_hub.hf_hub_download(
                        starter.repo, file, revision=info.sha, local_dir=so_far, endpoint=endpoint
                    )
                )
                for file, place in places.items()
                if not is_file(place) or sha256(place) != pinned.get(file)
            }
        except Exception as error:  # noqa: BLE001 - of whatever HTTP library it uses
            raise _failure(starter, endpoint, so_far, error) from None
        try:
            sums = {file: sha256(got.get(file, place)) for file, place in places.items()}
            _check(starter, sums, {s.rfilename: s for s in info.siblings or ()}, pinned)
            _move(got, folder)
        finally:
            shutil.rmtree(so_far, ignore_errors=True)
    commit = str(info.sha)
    _pin(starter.repo, commit, {**pinned, **sums})
    words = [tag.partition(":")[2] for tag in info.tags or () if tag.startswith("license:")]
    license_ = words[0] if words else tr("not stated")
    files = [str(folder / file) for file in starter.files]
    return Fetched(starter.name, starter.repo, commit, license_, files, sums)


def _move(files: Mapping[str, Path], folder: Path) -> None:
    """All of them or none. Raises LiteError."""
    if files:
        with filling(folder) as part:
            for name, path in files.items():
                (part / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.move(path, part / name)


#: Errors of the system that tell of the network, beside those of the HTTP library.
_NETWORK = (ConnectionError, TimeoutError, socket.gaierror, ssl.SSLError)


def _failure(starter: Starter, endpoint: str, place: Path, error: Exception) -> LiteError:
    """One line for whatever the library raises while it downloads to this place."""
    if isinstance(error, OSError) and error.errno and not isinstance(error, _NETWORK):
        return WriteError(
            tr("cannot be written ({reason})", reason=reason_of(error)),
            where=error.filename or place,
        )
    status = getattr(getattr(error, "response", None), "status_code", None)
    if status is None:
        return BackendUnavailableError(
            tr("cannot reach {endpoint}: {kind}", endpoint=endpoint, kind=type(error).__name__),
            fix=tr("check the network, or set HF_ENDPOINT to a mirror"),
        )
    if status in (401, 403, 404):
        return UsageError(
            tr("{endpoint} has no public {repo} with {files}", endpoint=endpoint,
               repo=starter.repo, files=", ".join(starter.files)),
            fix=tr("look at {url}", url=f"{endpoint}/{starter.repo}"),
        )  # fmt: skip
    return LiteError(tr("{endpoint} answered {status}", endpoint=endpoint, status=status))


def _check(
    starter: Starter, sums: Mapping[str, str], stated: Mapping[str, Any], pinned: Mapping[str, str]
) -> None:
    """Against the first fetch, and against what the hub states of large files."""
    for file, found in sums.items():
        lfs = getattr(stated.get(file), "lfs", None)
        expected = pinned.get(file) or (lfs.sha256 if lfs else found)
        if found != expected:
            raise LiteError(
                tr("{file} has SHA-256 {found}, expected {expected}", file=file, found=found[:16],
                   expected=expected[:16]),
                where=starter.repo,
                fix=tr("fetch it again, or accept the new file with --update"),
            )  # fmt: skip


def _place() -> Path:
    return settings.cache_dir() / "starters.json"


def _pins() -> dict[str, Any]:
    try:
        text = _place().read_text()
    except OSError:
        return {}
    known = parse(text, str(_place())).value
    return known if isinstance(known, dict) else {}


def _pin(repo: str, commit: str, sums: Mapping[str, str]) -> None:
    _place().parent.mkdir(parents=True, exist_ok=True)
    with locked(_place().with_suffix(".lock")):
        known = {**_pins(), repo: {"commit": commit, "sha256": dict(sums)}}
        write_file(_place(), json.dumps(known, indent=1, sort_keys=True))
