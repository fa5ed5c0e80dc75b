"""ssh://user@host:port by the system's OpenSSH: its keys, its known_hosts, its configuration."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import tempfile
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lite_messages import tr

from ..errors import DeviceError, UsageError
from .remote import Answer

_ADDRESS = re.compile(
    r"ssh://(?:(?P<user>[A-Za-z0-9_][A-Za-z0-9._-]*)@)?"
    r"(?P<host>[A-Za-z0-9][A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+\])(?::(?P<port>[0-9]{1,5}))?/?"
)
#: What OpenSSH says → what to do, and the tool that does it.
_FIXES = (
    (
        "Host key verification failed",
        tr("check whether its key has changed, then log in once"),
        "ssh",
    ),
    ("Permission denied", tr("set up a key"), "ssh-copy-id"),
    ("Could not resolve", tr("check the name, or use the address"), ""),
    ("Connection refused", tr("no ssh server listens there: check the port"), ""),
    ("No route to host", tr("check that it is switched on and in the same network"), ""),
    ("timed out", tr("check that it is switched on and in the same network"), ""),
)
_LOST = 255


class SshTransport:
    """One connection, kept open between commands. Never asks for a password or a host key."""

    def __init__(self, address: str, config: str = "") -> None:
        """`config` is an OpenSSH configuration instead of the user's own. Raises UsageError."""
        match = _ADDRESS.fullmatch(address)
        if not match or not 0 < int(match["port"] or 22) < 65536:
            raise UsageError(
                tr(
                    "{address!r} is not of the form ssh://user@host or ssh://user@host:2222",
                    address=address,
                )
            )
        self.name = address
        self.home = ".cache/lite-workbench"
        self._host = match["host"].strip("[]")
        folder = tempfile.mkdtemp(prefix="lite-ssh-")
        # What must not differ between people comes first: OpenSSH keeps the first value it sees.
        self._options = ["-o", "BatchMode=yes", "-o", "ConnectTimeout=10",
                         "-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3",
                         "-o", "ControlMaster=auto", "-o", f"ControlPath={folder}/%C",
                         "-o", "ControlPersist=60", "-o", "ClearAllForwardings=yes",
                         "-T"]  # fmt: skip
        self._options += ["-F", config] if config else []
        self._user, self._port = match["user"], match["port"]
        self._options += ["-l", self._user] if self._user else []
        self._options += ["-p", self._port] if self._port else []
        self._close = weakref.finalize(self, _close, self._options, self._host, folder)

    def call(self, command: Sequence[str], timeout_s: float) -> Answer:
        # A shell waits for the command: ssh reports one that a signal killed as a lost connection.
        return self._ssh(shlex.join(["sh", "-c", '"$@"; exit $?', "sh", *command]), timeout_s)

    def push(self, local: Path, remote: str, timeout_s: float) -> Answer:
        with local.open("rb") as file:
            return self._ssh(f"cat > {shlex.quote(remote)}", timeout_s, stdin=file)

    def pull(self, remote: str, local: Path, timeout_s: float) -> Answer:
        with local.open("wb") as file:
            return self._ssh(f"cat {shlex.quote(remote)}", timeout_s, stdout=file)

    def _ssh(
        self,
        script: str,
        timeout_s: float,
        *,
        stdin: Any = subprocess.DEVNULL,
        stdout: Any = subprocess.PIPE,
    ) -> Answer:
        tool = shutil.which("ssh")
        if tool is None:
            raise DeviceError(
                tr("ssh is not installed"),
                where=self.name,
                command="sudo apt-get install openssh-client",
            )
        # A file, not a pipe: the connection that stays open would hold the pipe.
        with tempfile.TemporaryFile() as errors:
            try:
                done = subprocess.run(
                    [tool, *self._options, "--", self._host, script],
                    stdin=stdin, stdout=stdout, stderr=errors, timeout=timeout_s,
                )  # fmt: skip
            except subprocess.TimeoutExpired:
                raise DeviceError(
                    tr("no answer within {timeout_s:.0f} s", timeout_s=timeout_s), where=self.name
                ) from None
            errors.seek(0)
            stderr = errors.read().decode("utf-8", "replace")
        text = done.stdout.decode("utf-8", "replace") if done.stdout else ""
        if done.returncode == _LOST:
            raise self._lost(stderr)
        return Answer(done.returncode, text, stderr)

    def _lost(self, stderr: str) -> DeviceError:
        lines = [x.strip() for x in stderr.splitlines() if x.strip()]
        last = lines[-1] if lines else tr("connection lost")
        found = ((x, *to_do) for said, *to_do in _FIXES for x in lines if said in x)
        what, fix, tool = next(
            found, (last, tr("try the connection yourself, then try again"), "ssh")
        )
        return DeviceError(what, where=self.name, fix=fix, command=self._by_hand(tool))

    def _by_hand(self, tool: str) -> str:
        """The command with which a person sees what is wrong; empty for no tool."""
        at = f"{self._user}@" if self._user else ""
        port = ["-p", self._port] if self._port else []
        return shlex.join([tool, *port, f"{at}{self._host}"]) if tool else ""


def _close(options: list[str], host: str, folder: str) -> None:
    """Ends the kept connection."""
    tool = shutil.which("ssh")
    if tool is not None and any(Path(folder).iterdir()):
        try:
            subprocess.run(
                [tool, *options, "-O", "exit", "--", host], capture_output=True, timeout=10
            )
        except subprocess.TimeoutExpired:
            pass  # it ends by itself, ControlPersist later
    shutil.rmtree(folder, ignore_errors=True)
