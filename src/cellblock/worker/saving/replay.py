"""The parts that can be had of a record that another version of Python wrote: its imports and definitions, run again.
"""

from __future__ import annotations

from _pickle import loads
from typing import Any

from cellblock.declarations import declared
from cellblock.worker.saving import ambient
from cellblock.worker.saving.streams import SIMPLE, Get

_SOURCES = "@sources:"
_OTHER = "it was saved by another version of Python, which alone can read it"
_AGAIN = "run the cells again that made it"


def sources(record: dict[str, Any], get: Get) -> dict[str, str]:
    """The sources of the session's cells by their file names, in the order they ran. Any Python reads them."""
    streams = {group["key"]: group["stream"] for group in record["groups"]}
    blocks = sorted((int(label.removeprefix(_SOURCES)), key) for label, key in record["ambient"] if _is_block(label))
    found: dict[str, str] = {}
    for _, key in blocks:
        data = b"".join(map(get, streams[key]))
        if not data.startswith(SIMPLE):
            raise ValueError("the sources of cells are not plain text")
        found.update(loads(data.removeprefix(SIMPLE)))
    return found


def replay(namespace: dict[str, Any], record: dict[str, Any], *, get: Get) -> list[list[str]]:
    """Run the imports and definitions of a record's cells. Rows of the names that are not there afterwards.

    A definition that fails, since it needs a value that is not there, costs the names that it would have bound.
    """
    said = sources(record, get)
    ambient.apply("sources", said, namespace)  # the next record has them too
    reasons: dict[str, str] = {}
    for text, names in declared(said.values()):
        try:
            exec(compile(text, "<declarations>", "exec", dont_inherit=True), namespace)
        except BaseException as error:  # a cell's own code, which may leave with SystemExit too
            reasons.update(dict.fromkeys(names, f"its definition failed: {type(error).__name__}: {error}"[:300]))
    rows = []
    for name, _, kind, *_ in record["names"]:
        if name not in namespace:
            rows.append([name, kind, reasons.get(name, _OTHER), _AGAIN])
    return rows


def _is_block(label: str) -> bool:
    return label.startswith(_SOURCES)
