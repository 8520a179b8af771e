"""F9, bare: the round trip of a message from a cell to the host and back, before there are tools.

Cells have no tools yet, but the wire has their messages, and the host answers each call with an error. A cell that
speaks them by hand through its worker's own channel measures what lies under every tool call to come: both codecs,
the table of states, the kernel's stamp on each packet, and the host's wait. Not in it: values, and the tool itself.
"""

from __future__ import annotations

import asyncio

import cellblock
from bench.bare import BareWorker
from bench.sampling import Measure, Plan, Ratio, Samples, require

_AT_ONCE = 50
"""Calls in one cell: a round, which is as many samples."""

_CALLS = f"""
import gc, time

(channel,) = [one for one in gc.get_objects() if type(one).__name__ == "Channel"]  # no import leads to the runner's
words = type(channel).receive.__globals__["decode_request"].__globals__
ToolCalled, ToolReply = words["ToolCalled"], words["ToolReply"]
def calls():
    for number in range({_AT_ONCE}):
        began = time.perf_counter()
        channel.send(ToolCalled(call=number, name="nothing", mark=0))
        _, reply = channel.receive()
        yield time.perf_counter() - began
        assert type(reply) is ToolReply and reply.call == number and reply.error[0] == "NameError"
"""


def _calls(plan: Plan) -> Samples:
    require("msgpack")
    with BareWorker() as bare, asyncio.Runner() as runner:
        session = runner.run(cellblock.AsyncSession().open())
        try:
            assert runner.run(session.run(_CALLS)).ok
            ours: list[float] = []
            theirs: list[float] = []
            for number in range(plan.rounds + 1):
                seconds = runner.run(session.run("list(calls())")).value
                assert isinstance(seconds, list)
                reference = bare.calls(_AT_ONCE)
                if number:  # the first round warms both
                    ours += seconds
                    theirs += reference
            return Samples(subject=tuple(ours), reference=tuple(theirs))
        finally:
            runner.run(session.close())


MEASURES = (
    Measure(
        id="F9/bare", what="a call of no tool from a cell, until its answer", reference="msgpack over a socketpair",
        goal=Ratio(1.5), rounds=20, take=_calls,
    ),
)  # fmt: skip
