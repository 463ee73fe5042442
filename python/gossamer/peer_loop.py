"""A loop of the program that is one peer of a network: what optimizers and averagers share."""

import json
import os
import weakref
from typing import Any, Self

from gossamer import _core
from gossamer.initial import with_remedy
from gossamer.messages import names_arguments
from gossamer.runs import Settings, find_ids, kept, log_messages, start
from gossamer.trainer import RequestHandler


class PeerLoop:
    """Joins a network as one of its peers. Requests that need the program wait for its next call.

    A class of loops says how it takes the values of such a request (_begin) and those of the end
    (_take_final); its handler serves all other requests. `finished`: the last round is done.
    """

    # In messages: what the loop is, what to do with several ids, and why it does nothing any more.
    _noun: str
    _several_ids: str
    _after_close: str

    _handler: RequestHandler
    finished = False
    _request: _core.Request | None = None
    _turns: tuple[str, ...]  # operations that need the program

    @names_arguments(ids="peer")
    def _join(
        self,
        handler: RequestHandler,
        config: str | os.PathLike[str],
        peer: int | None,
        settings: Settings,
        out: str | os.PathLike[str] | None,
        resume: str,
    ) -> None:
        """Returns with the first request that needs the program."""
        settings = kept(settings)
        found = find_ids(peer, handler, config, settings, out)
        if len(found.ids) != 1:
            raise _core.Error("peer: " + self._several_ids.format(ids=found.ids))
        self._handler = handler
        self._run = start(handler, config, settings, out, ids=found, resume=resume)
        self._end = weakref.finalize(self, self._run.close)
        self._turns = ("update",) if self.is_server else ("local_steps", "gradient")
        self._advance()

    @property
    def is_server(self) -> bool:
        """This process is a server: it has no data, and steps with what peers send."""
        return self._run.hosted[0] >= self._run.peers

    @property
    def has_left(self) -> bool:
        """The peer has left the network before the last round."""
        return self._request is None and not self.finished

    def metrics(self) -> dict[str, Any]:
        """The newest record of this peer in the log, by field (docs/LOG.md); empty before it."""
        return dict(json.loads(self._run.last_record()) or {})

    def leave(self) -> None:
        """Leaves an open run (run.open) for good, in order: the others go on without this peer.

        The loop goes on until the round from which on the others know, and `finished` is true then.
        """
        self._pending()
        if not self._run.is_open:
            raise _core.Error(
                "leave(): only a peer of an open run (run.open) leaves before the last round; "
                "close() leaves as if the process had ended"
            )
        self._run.leave()

    def close(self) -> None:
        """Leaves the network. The values stay, in the program's own memory."""
        self._request = None
        self._end()
        log_messages(self._run)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _begin(self, request: _core.Request) -> None:
        raise NotImplementedError

    def _take_final(self, row: Any) -> None:
        raise NotImplementedError

    def _explained(self, error: _core.Error) -> _core.Error:
        """The error that ends the run, with the details that only the program has."""
        return error

    def _pending(self) -> _core.Request:
        self._run.check_process()
        if self._request is not None:
            return self._request
        if self.finished:
            raise _core.Error(
                f"the run of {self._run.rounds} rounds is complete; end the loop when "
                f"{self._noun}.finished is true, or use more run.rounds"
            )
        raise _core.Error(
            f"the {self._noun} has left the network (close()), and {self._after_close}"
        )

    def _complete(self) -> None:
        """The pending request is served."""
        self._request = None
        self._run.complete()
        self._advance()

    @names_arguments(ids="peer")
    def _advance(self) -> None:
        """Serves requests up to the next one that needs the program, or to the end of the run."""
        try:
            while batch := self._run.next():
                (request,) = batch
                if request.operation in self._turns:
                    self._begin(request)
                    self._request = request
                    return
                self._handler.serve_batch(batch)
                self._run.complete()
            self.finished = True
            for row in self._run.final_rows():
                self._take_final(row)
        except _core.Error as error:
            self.close()
            remedied = with_remedy(error, self._handler, self._run.hosted)
            raise self._explained(remedied) from error.__cause__
        except BaseException:
            self.close()
            raise
        self.close()
