"""Dask resources: what only some workers have. `timing` is one worker on each machine, `board:NAME`
the workers that reach that board."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lite_engine.errors import UsageError
from lite_messages import tr

if TYPE_CHECKING:
    from distributed import Client

#: Two measurements must not share a CPU.
TIMING = "timing"
BOARD = "board:"


def give(client: Client, resource: str) -> None:
    """Makes sure that workers have the resource. TIMING is given to the first worker of each
    machine that has no worker with it. Raises UsageError where nobody has a board."""
    ask: Any = client.run_on_scheduler  # Dask's has no types
    owners: dict[str, dict[str, float]] = ask(_resources)
    having = {address for address, own in owners.items() if own.get(resource)}
    if resource != TIMING:
        if not having:
            raise UsageError(
                tr("no worker has the resource {resource}", resource=resource),
                fix=tr("start the one that reaches it with `dask worker --resources`"),
                command=f"dask worker ADDRESS --resources {resource}=1",
            )
        return
    machines = {_machine(address) for address in having}
    firsts: dict[str, str] = {}
    for address in sorted(owners):
        if _machine(address) not in machines:
            firsts.setdefault(_machine(address), address)
    if firsts:
        client.run(_take, TIMING, workers=list(firsts.values()))


def _machine(address: str) -> str:
    """tls://10.0.0.5:40123 → 10.0.0.5"""
    return address.rpartition("://")[2].rpartition(":")[0]


def _resources(dask_scheduler: Any) -> dict[str, dict[str, float]]:
    return {address: dict(w.resources) for address, w in dask_scheduler.workers.items()}


async def _take(resource: str, dask_worker: Any) -> None:
    await dask_worker.set_resources(**{resource: 1})
