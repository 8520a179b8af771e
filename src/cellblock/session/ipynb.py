"""A notebook as the document that Jupyter opens: nbformat 4.5."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import partial
from math import isfinite

from cellblock.cell import Cell, CellError
from cellblock.outputs import Output, OutputType
from cellblock.session.rich import rich
from cellblock.session.shown import NO_ROOM, Blob, Room, Shown, absent
from cellblock.text import line, valid, write_json

_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_PYTHON = "text/x-python"
MAY_FAIL = "raises-exception"
"""The tag of a cell whose failure does not stop a run of the document."""
_NO_ROOM: dict[str, object] = {"output_type": "stream", "name": "stderr", "text": NO_ROOM}


def ipynb(cells: Iterable[Shown], *, private: str = "") -> dict[str, object]:
    """The document as JSON. Text is kept as it is, terminal colours too: Jupyter shows those itself.

    Cells that left no effects are raw, and those that failed with some are tagged "raises-exception": a run of the
    document passes over the ones, and goes on after the others. `private` is why the session holds private data, where
    it does.
    """
    written, numbers, room = list[dict[str, object]](), list[int](), Room()
    for place, shown in enumerate(cells):
        written.append(_cell(shown, place, room))
        numbers.append(shown.cell.number)
    if note := absent(numbers):
        written.insert(0, _raw("executions-not-here", f"# {note}", {}))
    return {
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": {
            "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
            "language_info": {
                "name": "python",
                "file_extension": ".py",
                "mimetype": _PYTHON,
                "pygments_lexer": "ipython3",
            },
            **({"cellblock": {"private": valid(private)}} if private else {}),
        },
        "cells": written,
    }


def _cell(shown: Shown, place: int, room: Room) -> dict[str, object]:
    cell = shown.cell
    id, source = cell.id if _ID.fullmatch(cell.id) else f"cell-{place}", valid(_source(cell))
    metadata: dict[str, object] = {"cellblock": _facts(cell)}
    if why := _without_effects(cell):
        return _raw(id, f"# {why}, and not run again\n{source}", metadata)
    if cell.error is not None:
        metadata["tags"] = [MAY_FAIL]
    return {"cell_type": "code", "id": id, "metadata": metadata, "source": source, **outcome(shown, room)}


def _raw(id: str, source: str, metadata: dict[str, object]) -> dict[str, object]:
    # of no type, it would be HTML of a page that is made of it
    metadata = {**metadata, "format": _PYTHON, "raw_mimetype": _PYTHON}
    return {"cell_type": "raw", "id": id, "metadata": metadata, "source": source}


def _without_effects(cell: Cell) -> str:
    """The reason for which a session's state has nothing of a cell; "" where it has."""
    if cell.undone or cell.error is None:
        return "undone" if cell.undone else ""
    told = line(f"{cell.error.type}: {cell.error.message}")
    if cell.rolled_back or cell.error.kind == "crashed":
        return f"{'rolled back' if cell.rolled_back else 'lost with its process'} ({told})"
    trace = cell.error.traceback  # of a source that was refused, or is no Python, it is the place in the source
    return f"not begun ({told})" if cell.kind == "python" and trace and not _BEGUN.match(trace) else ""


_BEGUN = re.compile(r"\s*+(?:\+ Exception Group )?Traceback\b")
"""The first line about a cell that ran; what follows may quote its source."""

def outcome(shown: Shown, room: Room) -> dict[str, object]:
    """Execution of a code cell for a document: its number and its outputs."""
    cell = shown.cell
    views = [partial(_output, output, blobs, cell, room) for output, blobs in shown.outputs if _has_place(output, cell)]
    views += [] if cell.error is None else [partial(_error, cell.error)]
    outputs = [_NO_ROOM if (made := room.take(view, _size)) is None else made for view in views]
    return {"execution_count": cell.number or None, "outputs": [output for output in outputs if output]}


def _size(output: dict[str, object]) -> int:
    return len(write_json(output))


def _has_place(output: Output, cell: Cell) -> bool:
    """The error is written from `cell.error`, so the output that shows it is not written as well."""
    return output.type is not OutputType.ERROR or cell.error is None


def _source(cell: Cell) -> str:
    if cell.kind == "host":
        return "\n".join(f"# {line}".rstrip() for line in (cell.source or "done by the host").splitlines())
    if cell.kind == "python":
        return cell.source
    return "%%sh\n" + (cell.source or "\n")  # IPython refuses a cell magic with no body


def _facts(cell: Cell) -> dict[str, object]:
    usage = {
        "duration_ms": cell.usage.duration_ms,
        "cpu_ms": cell.usage.cpu_ms,
        "memory_peak_bytes": cell.usage.memory_peak_bytes,
    }
    return {
        "state": cell.state.value,
        "kind": cell.kind,
        "rolled_back": cell.rolled_back,
        "undone": cell.undone,
        "usage": {name: value if isfinite(value) else None for name, value in usage.items()},
    }


def _output(output: Output, blobs: tuple[Blob, ...], cell: Cell, room: Room) -> dict[str, object]:
    """An output as the document has it; nothing where there is nothing to show."""
    if output.stream is not None:
        name = "stderr" if output.stream == "stderr" else "stdout"
        return {"output_type": "stream", "name": name, "text": valid(output.text)}
    data = rich(output.data, blobs, room).bundle()
    if not data:
        return {}
    if output.is_result:
        number = cell.number or None
        return {"output_type": "execute_result", "execution_count": number, "data": data, "metadata": {}}
    return {"output_type": "display_data", "data": data, "metadata": {}}


def _error(error: CellError) -> dict[str, object]:
    lines = (error.traceback or f"{error.type}: {error.message}").splitlines()
    if error.hint:
        lines.append(f"hint: {error.hint}")
    return {
        "output_type": "error",
        "ename": valid(error.type),
        "evalue": valid(error.message),
        "traceback": [valid(line) for line in lines],
    }
