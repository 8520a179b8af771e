"""Files of many small programs: those of the tests, and those of the attacks."""

from __future__ import annotations

import re
from pathlib import Path

from cellblock_attacks.language.programs import ESCAPES as SHIPPED
from cellblock_attacks.language.programs import GIVEN, Program, files, policy_for, programs

__all__ = ["ESCAPES", "GIVEN", "PARITY", "Program", "files", "last_line", "outcome", "policy_for", "programs"]

HERE = Path(__file__).parent
PARITY = HERE / "parity"
ESCAPES = sorted([*files(SHIPPED), *files(HERE / "escapes")], key=lambda path: path.stem)
"""Those of the attacks, and those that take their time limit or their memory."""

_PLACE = re.compile(r'File "<cell 1>", line (\d+)')


def last_line(traceback: str) -> int | None:
    """The innermost line of the program that a traceback names."""
    lines = _PLACE.findall(traceback)
    return int(lines[-1]) if lines else None


def outcome(cell):
    """What a program printed as a cell, and what it raised: type, message and line."""
    printed = "".join(output.text for output in cell.outputs if output.stream == "stdout")
    if cell.error is None:
        return {"stdout": printed, "error": None}
    assert cell.error.kind == "raised", f"{cell.error.kind}: {cell.error.message} ({cell.error.hint})"
    error = [cell.error.type.rpartition(".")[2], cell.error.message, last_line(cell.error.traceback)]
    return {"stdout": printed, "error": error}
