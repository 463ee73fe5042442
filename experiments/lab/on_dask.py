"""Runs cells on workers of Dask: on this machine, of a batch system, or of a given scheduler.

Dask is imported only here and in lab.on_worker, when a sweep asks for it.
"""

import importlib
import pickle
import queue
import shutil
import sys
import time
import uuid
from contextlib import ExitStack, suppress
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import lab
from lab import on_worker
from lab.cells import Cell
from lab.errors import LabError
from lab.launch import JobResult
from lab.progress import progress_reporter
from lab.runner import RunnerOptions, fractions, result_line

_PROGRESS_SECONDS = 0.5
_MOST_SUBMISSIONS = 10  # of a cell whose workers are lost before it starts
_SILENT_SECONDS = 5.0  # without a worker, the time until a message says so


class DaskWorkers:
    """The workers that --on names. They start, or are sought, when there is a cell to run."""

    def __init__(self, on: str, jobs: int) -> None:
        """Throws LabError if a package is missing or `on` names no workers."""
        self._on, self._jobs = on, jobs
        self._kind, colon, self._scheduler = on.partition(":")
        self._open = ExitStack()
        self._client: Any = None
        # What happens to the runs: their futures, messages of workers, errors of refused jobs.
        self._events: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._distributed = package("distributed", on)
        if self._kind != "dask":
            self._batch_cluster = batch_cluster(on, self._events)
        elif colon and not self._scheduler:
            raise LabError(f"--on {on}: name the scheduler, as in dask:tcp://host:8786")

    def __enter__(self) -> "DaskWorkers":
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._open.close()
        except Exception as error:  # of Dask, and no reason to lose the sweep's own
            print(f"sweep: note: Dask did not end in order: {error!r}", file=sys.stderr)

    def run_all(
        self, options: RunnerOptions, pending: list[Cell], finished: dict[str, JobResult]
    ) -> None:
        """What lab.runner.run_all does, on the workers."""
        if not pending:
            return
        if not self._client:
            self._client = self._connect()
        _Runs(self._client, self._events, options, pending, finished).run()

    def _connect(self) -> Any:
        try:
            if self._scheduler.endswith(".json"):
                if not Path(self._scheduler).is_file():  # the client would wait for it for ever
                    raise LabError(f"--on {self._on}: there is no file {self._scheduler}")
                where = {"scheduler_file": self._scheduler}
            else:
                where = {"address": self._scheduler or self._start_cluster()}
            client = self._distributed.Client(**where, set_as_default=False)
        except (OSError, ValueError, RuntimeError) as error:
            raise LabError(f"--on {self._on}: {error or 'no scheduler answers'}") from error
        self._open.enter_context(client)
        return client

    def _start_cluster(self) -> Any:
        if self._kind != "dask":
            cluster = self._open.enter_context(self._batch_cluster())
            cluster.adapt(minimum=self._jobs, maximum=self._jobs)  # replaces jobs that end
            return cluster
        # Every run is a process already: processes for the workers would only start late.
        cluster = self._distributed.LocalCluster(
            n_workers=self._jobs, threads_per_worker=1, processes=False, dashboard_address=":0"
        )
        return self._open.enter_context(cluster)


def package(name: str, on: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        needed = "dask distributed" if name == "distributed" else "dask-jobqueue"
        raise LabError(
            f"--on {on} needs a package that is missing ({error}): pip install {needed}"
        ) from error


def batch_cluster(on: str, errors: queue.SimpleQueue[Any]) -> Any:
    """The class of dask-jobqueue for a batch system, such as SLURMCluster for slurm.

    Dask only logs the error of a job that the system refuses; here it also goes to `errors`.
    """
    found = {
        name.removesuffix("Cluster").lower(): value
        for name, value in vars(package("dask_jobqueue", on)).items()
        if name.endswith("Cluster") and name != "JobQueueCluster"
    }
    if on not in found:
        raise LabError(
            f"--on {on}: write dask, dask:ADDRESS, dask:FILE.json, or a batch system: "
            f"{', '.join(sorted(found))}"
        )
    submit = found[on].job_cls.submit_command.split()[0]
    if not shutil.which(submit):
        raise LabError(f"--on {on}: this machine has no {submit}: sweep where you submit jobs")

    class ReportedJob(found[on].job_cls):  # type: ignore[misc]
        async def start(self) -> None:
            try:
                await super().start()
            except Exception as error:
                errors.put(error)
                raise

    return type("ReportedCluster", (found[on],), {"job_cls": ReportedJob})


class _Runs:
    """The runs of some cells. `run` adds the result of each to `finished` by the cell's name."""

    def __init__(
        self,
        client: Any,
        events: queue.SimpleQueue[Any],
        options: RunnerOptions,
        pending: list[Cell],
        finished: dict[str, JobResult],
    ) -> None:
        self._client, self._events = client, events
        self._options, self._finished = options, finished
        self._cells = {cell.name: cell for cell in pending}
        self._running: dict[str, Cell] = {}
        self._futures: dict[Any, str] = {}  # of the cells without a result
        self._given_up: dict[str, int] = {}  # how often Dask gave a cell up
        self._topic = f"gossamer-{uuid.uuid4().hex}"  # of the messages of the workers
        self._progress = progress_reporter(len(pending))

    def run(self) -> None:
        self._client.subscribe_topic(self._topic, lambda event: self._events.put(event[1]))
        began, waiting = time.monotonic(), True
        try:
            for cell in self._cells.values():
                on_worker.lock_of(cell).parent.mkdir(exist_ok=True)
                on_worker.lock_of(cell).write_text("", encoding="utf-8")
            self._submit(list(self._cells))
            while self._futures:
                try:
                    self._on_event(self._events.get(timeout=_PROGRESS_SECONDS))
                    waiting = False
                except queue.Empty:
                    if waiting and time.monotonic() - began > _SILENT_SECONDS:
                        self._progress.message("waiting for a worker")
                        waiting = False
                running = fractions(self._options, list(self._running.values()))
                self._progress.update(len(self._finished), running)
        finally:
            self._progress.close()
            self._stop()
            self._client.unsubscribe_topic(self._topic)
            with suppress(OSError):  # locks of runs without a result are left
                on_worker.lock_of(next(iter(self._cells.values()))).parent.rmdir()

    def _submit(self, names: list[str]) -> None:
        code = self._code()
        cells = [self._cells[name] for name in names]
        group = uuid.uuid4().hex
        futures = self._client.map(
            lambda cell, config_hash: pickle.loads(code)(cell, config_hash),
            [asdict(replace(cell, folder=cell.folder.resolve())) for cell in cells],
            [self._options.hashes[name] for name in names],
            # Tasks of one group wait at the scheduler in this order, and not at the workers.
            key=[(f"gossamer-{group}", name) for name in names],
        )
        self._futures.update(zip(futures, names, strict=True))
        for future in futures:
            future.add_done_callback(self._events.put)

    def _code(self) -> bytes:
        """run_cell with all that it calls: workers may not have these sources."""
        import cloudpickle

        cloudpickle.register_pickle_by_value(lab)
        launch_config = replace(self._options.launch_config, working_folder=Path.cwd())
        options = replace(self._options, launch_config=launch_config, hashes={})
        code: bytes = cloudpickle.dumps(partial(on_worker.run_cell, options, self._topic))
        return code

    def _on_event(self, event: Any) -> None:
        if isinstance(event, Exception):
            raise LabError(f"a job for a worker was refused: {event}")
        if isinstance(event, dict):
            self._on_start(event["cell"], event["host"], event["attempt"])
            return
        name = self._futures.pop(event)
        cell = self._cells[name]
        self._running.pop(name, None)
        if self._was_only_queued(event, cell):
            self._submit([name])
            return
        result = result_of(event)
        if event.status == "finished":
            on_worker.lock_of(cell).unlink(missing_ok=True)
        self._finished[name] = result
        self._progress.update(len(self._finished), {})
        self._progress.message(result_line(cell, result), routine=result.status == "finished")

    def _was_only_queued(self, future: Any, cell: Cell) -> bool:
        """If Dask gave a cell up for lost workers, some of which it waited at and did not run."""
        from distributed.scheduler import KilledWorker

        error = future.exception() if future.status == "error" else None
        if not isinstance(error, KilledWorker):
            return False
        self._given_up[cell.name] = self._given_up.get(cell.name, 0) + 1
        attempts = on_worker.lock_of(cell).read_text(encoding="utf-8").count("\n")
        again = self._given_up[cell.name] <= _MOST_SUBMISSIONS
        return again and attempts <= error.allowed_failures

    def _on_start(self, cell: str, host: str, attempt: int) -> None:
        if cell not in self._cells or cell in self._finished:
            return  # a late message
        if attempt > 1:
            self._progress.message(f"{cell} started again on {host}: its worker was lost")
        self._running[cell] = self._cells[cell]

    def _stop(self) -> None:
        """Ends the runs whose results are missing, and waits until they have ended."""
        if not self._futures:
            return
        print(f"sweep: stopping {len(self._running)} run(s)", file=sys.stderr)
        keys = {future.key for future in self._futures}
        self._client.cancel(list(self._futures))
        self._client.run(on_worker.ended, keys, on_error="ignore")


def result_of(future: Any) -> JobResult:
    """Throws LabError if the sweep cannot go on."""
    from distributed.scheduler import KilledWorker

    if future.status == "finished":
        status, error, seconds = future.result()
        if status == on_worker.REFUSED:
            raise LabError(error)
        return JobResult(status, error, seconds)
    if future.status != "error":
        raise LabError("the scheduler of Dask was lost; run the same command to continue")
    error = future.exception()
    if isinstance(error, KilledWorker):
        return JobResult(
            "failed",
            f"every worker that ran it was lost, the last one {error.last_worker.address}; "
            "workers may be killed for want of memory",
        )
    return JobResult("failed", f"{type(error).__name__}: {error}")
