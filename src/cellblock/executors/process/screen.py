"""The first check of cells under a policy: on the host, before anything of them is sent. The worker checks again."""

from __future__ import annotations

import time
from collections.abc import Iterable
from functools import partial

from cellblock.errors import SourceRejected
from cellblock.executors.protocol import TurnEvent
from cellblock.guard.check import examine
from cellblock.guard.imports import grants
from cellblock.policy import Policy
from cellblock.wire.granted import as_data
from cellblock.wire.messages import Equip, Finished, Request, Run, ToolReply, ToolRoom
from cellblock.worker.failures import refused

_KNOWN = frozenset({"print", "display", "help"})


class Screen:
    """Refuses what the worker would refuse. What it does not understand is left to the worker."""

    def __init__(self, policy: Policy) -> None:
        """CellblockError for a policy that cannot be laid over a process."""
        self.data = as_data(policy)
        self._policy = policy
        self._known = _KNOWN | {grant.name for grant in policy.classes}

    def refusal(self, request: Request, names: Iterable[str]) -> Refused | None:
        """The turn of a cell that is not sent; None for a request that is. `names` are those that cells have bound."""
        if isinstance(request, Equip):
            self._known |= {str(spec["name"]) for spec in request.tools}
        if not isinstance(request, Run):
            return None
        began, cpu = time.perf_counter(), time.thread_time()
        try:
            examine(
                request.source,
                modules=partial(grants, self._policy),
                bound=self._known.union(names),
                without=self._policy.without,
            )
        except SourceRejected as error:
            return Refused(
                Finished(
                    number=0,
                    failure=refused(error),
                    duration_ms=(time.perf_counter() - began) * 1e3,
                    cpu_ms=(time.thread_time() - cpu) * 1e3,
                    memory_peak=0,
                )
            )
        except SyntaxError:  # the session's Python may be another, and is the one to say so
            return None
        return None


class Refused:
    """The turn of a cell that was not sent: it has ended."""

    sent = True

    def __init__(self, finished: Finished) -> None:
        self._finished = finished

    async def send_rest(self, seconds: float) -> None:
        return None

    def at_once(self) -> TurnEvent | None:
        return self._finished

    async def next(self) -> TurnEvent:
        return self._finished

    def reply(self, reply: ToolReply | ToolRoom) -> None:
        raise AssertionError("a cell that did not run has called nothing")
