"""Work in shards on `dask.distributed` (extra `cluster`): a local cluster, a scheduler, a Client.

A shard's result depends on nothing but the shard, and results are joined in the order of the
shards: they are those of one process, bit for bit. A worker that is lost costs its shards, which
run again on others; a scheduler that is lost costs the shards that were not finished, once it is
back.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

from lite_engine.errors import LiteError, UsageError
from lite_engine.progress import tell
from lite_messages import tr

from .cluster_resources import give

if TYPE_CHECKING:
    from distributed import Client, Future, LocalCluster

T = TypeVar("T")
Progress = Callable[[int, int], None]
#: A shard is this part of what is left for each worker: the first ones are large, the last ones
#: small, so that all workers end together ("guided self-scheduling": Polychronopoulos and Kuck,
#: IEEE Transactions on Computers 36(12), 1987).
SHARDS = 4
#: What Dask tells each worker's malloc: to give memory back after every array. The pages of an
#: image's arrays are then faulted in again for the next one, a sixth of the time.
TRIM = "MALLOC_TRIM_THRESHOLD_"
#: How often a scheduler that is gone is looked for, and how long between.
ATTEMPTS, PAUSE_S = 5, 2.0
#: How long a cluster may be without a worker.
WAIT_S = 60.0
#: How often workers are looked for, and whether somebody cancels, while nothing is finished.
POLL_S = 0.5


@dataclass(frozen=True)
class Cluster:
    """Where shards run: `workers` processes here, with one thread each, and with Dask's dashboard
    if it is asked for; the scheduler at an address; or a Client that is there already. None of
    them: in this process."""

    workers: int | None = None
    scheduler: str | None = None
    client: Client | None = None
    dashboard: bool = False

    def __post_init__(self) -> None:
        if sum(v is not None for v in (self.workers, self.scheduler, self.client)) > 1:
            raise UsageError(
                tr("--workers starts a cluster of its own"), fix=tr("leave out --scheduler")
            )
        if self.dashboard and self.workers is None:
            raise UsageError(
                tr("--dashboard needs --workers"),
                fix=tr("a scheduler that already runs has its own dashboard, or none"),
            )

    @property
    def used(self) -> bool:
        return not (self.workers is None and self.scheduler is None and self.client is None)

    @property
    def reachable(self) -> bool:
        """May it be opened again? A Client that was given may have lost its scheduler."""
        return self.client is None or self.client.status == "running"

    @property
    def linked(self) -> bool:
        """May it have a dashboard?"""
        return self.dashboard or self.workers is None

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
        if self.scheduler is not None:
            with _connected(self.scheduler) as client:
                yield client
            return
        from distributed import Client

        with _environment_kept(), self._started() as cluster, Client(cluster) as client:
            yield client

    def _started(self) -> LocalCluster:
        """Raises LiteError."""
        from distributed import LocalCluster, Security

        if self.dashboard and find_spec("bokeh") is None:
            raise LiteError(
                tr("the dashboard needs the package bokeh, which is not installed"),
                command="pip install bokeh",
            )
        try:
            with _settings(self.dashboard):
                return LocalCluster(
                    n_workers=self.workers, threads_per_worker=1, processes=True,
                    host="127.0.0.1", protocol="tls://", security=Security.temporary(),
                    silence_logs=50, dashboard_address="127.0.0.1:0" if self.dashboard else None,
                    scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},  # not its usual port
                )  # fmt: skip
        except RuntimeError as error:
            raise LiteError(
                tr("the worker processes do not start ({reason})", reason=error),
                fix=tr(
                    'a script starts them below `if __name__ == "__main__":`, as they import it'
                ),
            ) from None


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


def _settings(dashboard: bool) -> AbstractContextManager[Any]:
    """Workers that are started in the block keep the memory of arrays as this process does, and
    models that no task waits for: Dask would drop all copies but one every two seconds. Without a
    dashboard nothing is told over HTTP either: Dask serves pages about tasks and workers to
    whoever asks. Nor are the stacks of its threads looked at, a hundred times a second in each
    process, which only the dashboard shows."""
    import dask

    key = "distributed.nanny.pre-spawn-environ"
    chosen: dict[str, Any] = {key: {**dask.config.get(key), TRIM: None}}
    chosen["distributed.scheduler.active-memory-manager.start"] = False
    if not dashboard:
        chosen |= {f"distributed.{part}.http.routes": [] for part in ("scheduler", "worker")}
        chosen["distributed.worker.profile.enabled"] = False
    kept: AbstractContextManager[Any] = dask.config.set(chosen)
    return kept


@contextmanager
def _environment_kept() -> Iterator[None]:
    """What Dask sets for its workers (OMP_NUM_THREADS=1, a fixed PYTHONHASHSEED) it sets in this
    process and leaves there: whatever starts processes later would hand it on."""
    import dask

    names = (*dask.config.get("distributed.nanny.pre-spawn-environ"), TRIM, "PYTHONHASHSEED")
    before = {name: os.environ.get(name) for name in names}
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def cut(items: Sequence[T], workers: int) -> list[Sequence[T]]:
    """Items in shards, in their order."""
    shards: list[Sequence[T]] = []
    start = 0
    while start < len(items):
        size = math.ceil((len(items) - start) / max(workers * SHARDS, 1))
        shards.append(items[start : start + size])
        start += size
    return shards


def _parts(items: Sequence[T], size: int) -> list[Sequence[T]]:
    return [items[start : start + size] for start in range(0, len(items), size)]


@dataclass
class Work:
    """What is done with shards: `function(shared, models, shard)`.

    shared     plain data, sent with every call of `run_shards`
    models     digest → bytes, sent once to each worker as long as the Client lives
    size       items of a shard; None: by the number of workers
    resource   a Dask resource that a worker needs one of for each shard
    """

    function: Callable[[Any, Mapping[str, bytes], Any], Any]
    shared: Any
    models: Mapping[str, bytes]
    size: int | None = None
    resource: str = ""


def run_shards(
    cluster: Cluster,
    work: Work,
    items: Sequence[Any],
    progress: Progress,
    arrived: Callable[[int, Any], Any] = lambda number, result: result,
) -> list[Any]:
    """The results of the shards, in their order. `arrived(number of the shard, result)` is called
    when one is there and returns what is kept of it. `progress` counts items, and may end the work
    by what it raises. Raises LiteError, and what the function raises."""
    done: dict[int, Any] = {}
    shards: list[Sequence[Any]] = []
    for attempt in range(ATTEMPTS):
        try:
            with cluster.open() as client:
                _await_workers(client)
                told = _with_link(progress, client) if cluster.linked else progress
                if not shards:
                    count = len(client.nthreads())
                    shards = _parts(items, work.size) if work.size else cut(items, count)
                _finish(client, work, shards, done, told, arrived)
            return [done[i] for i in range(len(shards))]
        except _lost() as error:
            if attempt == ATTEMPTS - 1 or not cluster.reachable:
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
        except LiteError:
            if not done or attempt == ATTEMPTS - 1:  # a scheduler that was there may come back
                raise
            time.sleep(PAUSE_S)
    raise AssertionError("the last attempt returns or raises")


def _with_link(progress: Progress, client: Client) -> Progress:
    """Progress that also tells where Dask's dashboard is, if the scheduler has one."""
    if "dashboard" not in client.scheduler_info()["services"]:
        return progress
    what = tr("dashboard at {url}", url=client.dashboard_link)

    def told(done: int, total: int) -> None:
        progress(done, total)
        tell(what, done, total)

    return told


def _await_workers(client: Client) -> None:
    """Raises LiteError when there is no worker for WAIT_S."""
    try:
        client.wait_for_workers(1, timeout=WAIT_S)
    except TimeoutError:
        raise LiteError(
            tr("the cluster has no workers"),
            where=str(client),
            fix=tr("start one with `dask worker ADDRESS`"),
        ) from None


def _lost() -> tuple[type[BaseException], ...]:
    """What Dask raises when a scheduler, or every worker that had something, is gone."""
    from concurrent.futures import CancelledError

    try:
        from distributed import KilledWorker
        from distributed.comm import CommClosedError
    except ImportError:
        return (CancelledError,)
    return (CancelledError, CommClosedError, KilledWorker, TimeoutError)


#: Client → digest → the model's bytes on its workers.
_sent: WeakKeyDictionary[Client, dict[str, Future[Any]]] = WeakKeyDictionary()


def _models(client: Client, models: Mapping[str, bytes]) -> dict[str, Future[Any]]:
    """The models on every worker: each is sent once, whatever it is used for. Their keys are made
    of their content, so that another worker asks its neighbors for one that it lacks."""
    known = _sent.setdefault(client, {})
    for digest, data in models.items():
        if digest not in known or known[digest].status != "finished":
            made = client.scatter({f"lite-model-{digest}": data}, broadcast=True)
            known[digest] = next(iter(made.values()))
    return {digest: known[digest] for digest in models}


def _finish(
    client: Client,
    work: Work,
    shards: Sequence[Sequence[Any]],
    done: dict[int, Any],
    progress: Progress,
    arrived: Callable[[int, Any], Any],
) -> None:
    """Adds the results of the shards that are not done."""
    from distributed import wait

    models = _models(client, work.models)
    shared = client.scatter([work.shared], broadcast=True, hash=False)[0]
    if work.resource:
        give(client, work.resource)
    needs = {work.resource: 1} if work.resource else None
    waiting = {
        client.submit(work.function, shared, models, list(shard), pure=False, retries=2,
                      resources=needs): number
        for number, shard in enumerate(shards)
        if number not in done
    }  # fmt: skip
    total = sum(map(len, shards))
    pending = set(waiting)
    try:
        while pending:
            try:
                ended, pending = wait(list(pending), POLL_S, return_when="FIRST_COMPLETED")
            except TimeoutError:
                ended = set()
                _await_workers(client)
                if work.resource:
                    give(client, work.resource)  # a worker that took another's place
            for future in ended:
                done[waiting[future]] = arrived(waiting[future], future.result())
            progress(sum(len(shards[i]) for i in done), total)
    finally:
        client.cancel(list(waiting))
