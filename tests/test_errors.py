"""Errors quote cells, models and files: their messages drive no terminal, and are bounded."""

from __future__ import annotations

import copy
import importlib
import inspect
import pickle
import pkgutil
from collections.abc import Callable, Iterator

import pytest

import cellblock
from cellblock import CellblockError, CodeAgent, ScriptedModel, TaskFailed
from cellblock.integrations.e2b import CommandExitException, CommandResult

pytestmark = pytest.mark.threat("W8")

HOSTILE = "a\x1b]0;title\x07\x1b[2J\x9b31m\u202e\x08\ud800\r\nb"
PRINTABLE = "a[U+202E]\ufffd\nb"


def _kinds() -> Iterator[type[CellblockError]]:
    for module in pkgutil.walk_packages(cellblock.__path__, "cellblock."):
        if any(part in module.name for part in (".worker", ".guard", ".testing", "__main__")):
            continue
        try:
            found = vars(importlib.import_module(module.name))
        except CellblockError:  # an extra that is not installed
            continue
        for kind in found.values():
            if inspect.isclass(kind) and issubclass(kind, CellblockError) and kind.__module__ == module.name:
                yield kind


def _quoting(kind: type[CellblockError], text: str) -> CellblockError:
    """An error of a kind whose message, and hint where it takes one, are a text."""
    if kind is CommandExitException:
        return CommandExitException(CommandResult(stderr=text, stdout="", exit_code=1))
    given = {
        name: text
        for name, one in inspect.signature(kind).parameters.items()
        if name == "hint" or one.default is inspect.Parameter.empty
    }
    return kind(**given)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", sorted(_kinds(), key=lambda kind: kind.__qualname__))
def test_an_error_says_printable_text_of_bounded_length(kind: type[CellblockError]) -> None:
    said = str(_quoting(kind, HOSTILE))
    assert PRINTABLE in said
    assert not set(said) & set(map(chr, [*range(9), *range(11, 32), *range(127, 160), 0x202E, 0xD800]))
    assert len(str(_quoting(kind, "x" * 40_000_000))) < 20_200


@pytest.mark.parametrize("kind", sorted(_kinds(), key=lambda kind: kind.__qualname__))
@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda error: pickle.loads(pickle.dumps(error))])
def test_an_error_can_be_copied_and_sent_to_another_process(
    kind: type[CellblockError], again: Callable[[CellblockError], CellblockError]
) -> None:
    """A pool of processes waits for ever for an error that it cannot read."""
    error = _quoting(kind, "a text")
    error.add_note("a note")
    told = again(error)
    assert (type(told), str(told), told.args) == (kind, str(error), error.args)
    assert repr(vars(told)) == repr(vars(error))


def test_what_an_error_is_told_by_inside_stays_as_it_was_in_its_fields() -> None:
    agent = CodeAgent(ScriptedModel([f"```python\ntask_fail({HOSTILE!r})\n```"]))
    with pytest.raises(TaskFailed) as failed:
        agent.run("go")
    assert str(failed.value) == f"the agent says that the task cannot be done: {PRINTABLE}"
    assert failed.value.reason == HOSTILE.replace("\ud800", "\ufffd")
    ended = _quoting(CommandExitException, HOSTILE)
    assert isinstance(ended, CommandExitException)
    assert ended.stderr == HOSTILE
