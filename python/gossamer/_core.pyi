"""The extension: background runs, their requests, and views of rows (python/src/module.cpp)."""

from typing import Any, Unpack

from gossamer.runs import RunArguments

__version__: str

class Error(RuntimeError):
    """A run that cannot start, or ended early: what happened, to whom, and what to do."""

    exit_code: int
    """The exit code of the program `gossamer` for this kind of error."""

class Request:
    """One operation on the rows of a peer, valid until BackgroundRun.complete()."""

    @property
    def operation(self) -> str:
        """initialise, local_steps, gradient, update, reset, evaluate, save, restore or agree."""

    @property
    def peer(self) -> int: ...
    @property
    def shard_of(self) -> int:
        """The peer whose batch it is: `peer`, except with algorithm.kind = centralized."""

    @property
    def averaged(self) -> list[int]:
        """For evaluate, if x is a mean of rows: the peers that have them, `peer` first; or empty."""

    @property
    def step(self) -> int:
        """Number of the first local step."""

    @property
    def steps(self) -> int: ...
    @property
    def x(self) -> Any:
        """The parameters: float32, shape (d,), over DLPack and the buffer protocol."""

    @property
    def gradient(self) -> Any:
        """The gradient, as x: out of gradient, into update."""

    @property
    def state(self) -> bytes:
        """What save gave, for restore."""

    @property
    def scales(self) -> tuple[list[float], list[float]]:
        """For agree: means and deviations of the features of all peers' samples."""

    def set_state(self, state: bytes) -> None: ...
    def add_loss(self, loss: float) -> None: ...
    def set_rate(self, rate: float) -> None: ...
    def set_evaluation(self, loss: float, accuracy: float) -> None: ...

class BackgroundRun:
    """One run, on threads of its own. All methods are called by one thread."""

    def next(self) -> list[Request]:
        """Waits, without Python's lock, for requests; empty at the end. Raises Error.

        Messages for people are logged as they come.
        """

    def complete(self) -> None:
        """The requests of next() are served."""

    def check_process(self) -> None:
        """Raises Error in a process that was forked from the one that joined."""

    def stop(self) -> None:
        """Asks the run to end, a simulation after its round; next() then raises Error."""

    def leave(self) -> None:
        """The peer leaves an open run for good; requests follow until then."""

    def close(self) -> None:
        """Leaves the network; waits until the files are written."""

    def final_rows(self) -> list[Any]: ...
    def last_record(self) -> str:
        """The newest record of the log as JSON; "null" before the first."""

    def take_messages(self) -> list[str]: ...
    @property
    def folder(self) -> str: ...
    @property
    def hosted(self) -> list[int]: ...
    @property
    def peers(self) -> int: ...
    @property
    def is_open(self) -> bool: ...
    @property
    def rounds(self) -> int: ...

class CheckedRun:
    """A run that is not started."""

    def size(self) -> str:
        """The numbers of peers, servers and parameters, as JSON."""

    def predict(self, *, decay: float, json: bool) -> str:
        """What theory says of the run, as JSON or as text."""

class NetworkIds:
    """The peers that this process hosts, and where it listens, if it has claimed its id."""

    @property
    def ids(self) -> list[int]: ...

def find_ids(ids: str, *, config: str, overrides: list[str]) -> NetworkIds:
    """May wait for other processes, without Python's lock."""

def configuration(config: str, *, overrides: list[str]) -> str:
    """The checked configuration as JSON: section, key, value."""

def moments(rows: Any) -> tuple[list[float], list[float]]:
    """Means and variances of the columns of an array of doubles, of shape (rows, columns)."""

def summary_text(summary: str) -> str:
    """The text that the program prints of a summary.json."""

def check(config: str, **arguments: Unpack[RunArguments]) -> CheckedRun:
    """Checks a run without starting it."""

def start(config: str, **arguments: Unpack[RunArguments]) -> BackgroundRun: ...
