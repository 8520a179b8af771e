"""Which steps from line to line of the readers a case takes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import cellblock

_PACKAGE = Path(cellblock.__file__).parent
_OF_A_TURN = tuple(f"executors/process/{name}.py" for name in ("text", "turn", "link"))
_READERS = tuple(
    str(_PACKAGE / part)
    for part in ("wire", "values", "session", "outputs.py", "cell.py", "cli/terminal.py", *_OF_A_TURN)
)

Step = tuple[CodeType, int, int]


@contextmanager
def followed(steps: set[Step]) -> Iterator[None]:
    """Add the steps that are taken meanwhile."""

    def enter(frame: FrameType, _event: str, _argument: object) -> Any:
        code = frame.f_code
        if not code.co_filename.startswith(_READERS):
            return None
        before = 0

        def follow(frame: FrameType, event: str, _argument: object) -> Any:
            nonlocal before
            if event == "line":
                steps.add((code, before, frame.f_lineno))
                before = frame.f_lineno
            elif event == "exception":
                steps.add((code, before, -1))
            return follow

        return follow

    sys.settrace(enter)
    try:
        yield
    finally:
        sys.settrace(None)
