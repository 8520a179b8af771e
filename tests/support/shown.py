"""All that an error shows, in every way that programs show errors: for tests that look for secrets there."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from pathlib import Path

_TESTS = str(Path(__file__).parents[1])


def shown_by(error: BaseException) -> str:
    """Its words, those of every error that it came from or with, and what each frame's names hold.

    Frames of the tests are left out: they have to hold what is looked for.
    """
    return "\n".join(part for one in _chain(error) for part in _parts(one))


def _chain(error: BaseException) -> Iterator[BaseException]:
    waiting: list[BaseException | None] = [error]
    seen: set[int] = set()
    while waiting:
        one = waiting.pop()
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            yield one
            waiting += [one.__cause__, one.__context__, *getattr(one, "exceptions", ())]


def _parts(error: BaseException) -> Iterator[str]:
    yield from (str(error), repr(error), repr(error.args), repr(vars(error)), *getattr(error, "__notes__", ()))
    yield "".join(traceback.format_exception_only(error))
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if not frame.f_code.co_filename.startswith(_TESTS):
            for name, value in frame.f_locals.items():
                yield f"{frame.f_code.co_filename}:{frame.f_code.co_name}: {name} = {value!r}"
