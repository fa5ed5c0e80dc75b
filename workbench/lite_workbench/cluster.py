"""Work in shards on `dask.distributed` (extra `cluster`): a local cluster, a scheduler, a Client.

A shard's result depends on nothing but the shard, and results are joined in the order of the
shards: they are those of one process, bit for bit. A worker that is lost costs its shards, which
run again on others; a scheduler that is lost costs the shards that were not finished, once it is
back.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeVar

from lite_engine.errors import LiteError, UsageError
from lite_messages import tr

if TYPE_CHECKING:
    from distributed import Client

T = TypeVar("T")
Progress = Callable[[int, int], None]
#: Shards for each worker: enough to keep all of them busy until the end.
SHARDS = 4
#: How often a scheduler that is gone is looked for, and how long between.
ATTEMPTS, PAUSE_S = 5, 2.0


@dataclass(frozen=True)
class Cluster:
    """Where shards run: `workers` processes here, with one thread each; the scheduler at an
    address; or a Client that is there already. None of them: in this process."""

    workers: int | None = None
    scheduler: str | None = None
    client: Client | None = None
    dashboard: bool = False

    def __post_init__(self) -> None:
        if sum(v is not None for v in (self.workers, self.scheduler, self.client)) > 1:
            raise UsageError(
                tr("--workers starts a cluster of its own"), fix=tr("leave out --scheduler")
            )

    @property
    def used(self) -> bool:
        return not (self.workers is None and self.scheduler is None and self.client is None)

    @contextmanager
    def open(self) -> Iterator[Client]:
        """A Client. What was started here ends with the block. Raises LiteError."""
        if find_spec("distributed") is None:
            raise LiteError(
                tr("running on a cluster needs the package distributed, which is not installed"),
                command="pip install 'lite-workbench[cluster]'",
            )
        if self.client is not None:
            yield self.client
            return
        from distributed import Client, LocalCluster, Security

        if self.scheduler is not None:
            with _connected(self.scheduler) as client:
                yield client
            return
        with (
            LocalCluster(
                n_workers=self.workers, threads_per_worker=1, processes=True, host="127.0.0.1",
                protocol="tls://", security=Security.temporary(), silence_logs=50,
                dashboard_address="127.0.0.1:0" if self.dashboard else None,
            ) as cluster,
            Client(cluster) as client,
        ):  # fmt: skip
            yield client


def _connected(address: str) -> Client:
    """Raises LiteError when nobody answers; certificates are those of Dask's configuration."""
    from distributed import Client

    try:
        return Client(address, timeout=10)
    except (OSError, ValueError, RuntimeError) as error:
        raise LiteError(
            tr("the scheduler does not answer ({reason})", reason=error or type(error).__name__),
            where=address,
            fix=tr(
                "start it with `dask scheduler`; tls:// needs the certificates in Dask's settings"
            ),
        ) from None


def cut(items: Sequence[T], workers: int) -> list[Sequence[T]]:
    """Items in shards, in their order."""
    size = max(math.ceil(len(items) / max(workers * SHARDS, 1)), 1)
    return [items[start : start + size] for start in range(0, len(items), size)]


def run_shards(
    cluster: Cluster,
    work: Callable[..., T],
    shared: Any,
    items: Sequence[Any],
    progress: Progress,
) -> list[T]:
    """`work(shared, shard)` for each shard of the items; `shared` is sent once to each worker. The
    results are in the order of the shards. Raises LiteError, and what `work` raises."""
    done: dict[int, T] = {}
    shards: list[Sequence[Any]] = []
    for attempt in range(ATTEMPTS):
        try:
            with cluster.open() as client:
                if not shards:
                    shards = cut(items, max(len(client.scheduler_info()["workers"]), 1))
                _finish(client, work, shared, shards, done, progress)
            return [done[i] for i in range(len(shards))]
        except _lost() as error:
            if attempt == ATTEMPTS - 1 or cluster.client is not None:
                raise LiteError(
                    tr(
                        "the cluster was lost ({reason}) after {done} of {count} shards",
                        reason=type(error).__name__,
                        done=len(done),
                        count=len(shards),
                    ),
                    fix=tr("run the command again when its scheduler and workers are back"),
                ) from None
            time.sleep(PAUSE_S)
    raise AssertionError("the last attempt returns or raises")


def _lost() -> tuple[type[BaseException], ...]:
    """What Dask raises when a scheduler, or every worker that had something, is gone."""
    from concurrent.futures import CancelledError

    try:
        from distributed import KilledWorker
        from distributed.comm import CommClosedError
    except ImportError:
        return (CancelledError,)
    return (CancelledError, CommClosedError, KilledWorker, TimeoutError)


def _finish(
    client: Client,
    work: Callable[..., T],
    shared: Any,
    shards: Sequence[Sequence[Any]],
    done: dict[int, T],
    progress: Progress,
) -> None:
    """Adds the results of the shards that are not done."""
    from distributed import as_completed

    sent = client.scatter(shared, broadcast=True)
    waiting = {
        client.submit(work, sent, list(shard), pure=False, retries=2): number
        for number, shard in enumerate(shards)
        if number not in done
    }
    try:
        for future in as_completed(list(waiting)):
            done[waiting[future]] = future.result()
            progress(sum(len(shards[i]) for i in done), sum(map(len, shards)))
    finally:
        client.cancel(list(waiting))
