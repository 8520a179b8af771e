"""Outputs of a cell: Jupyter MIME bundles, and the five kinds they are viewed as."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from enum import Enum

from cellblock.text import inert

DATAFRAME_MIME = "application/vnd.cellblock.dataframe+json"
"""Columns, dtypes, shape and the first rows of a table, as JSON."""


class OutputType(Enum):
    """The view of an output's bundle that decides how to show it."""

    TEXT = "text"
    ERROR = "error"
    HTML = "html"
    IMAGE = "image"
    DATAFRAME = "dataframe"


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """One thing a cell showed.

    `data` is a Jupyter MIME bundle. Its binary parts are kept apart: in their place stands the URI
    (`notebook://cell/ID/image/N`) that `session.read_output` gives their bytes for, and `uri` is the first of these.
    `stream` is "stdout" or "stderr" for printed text. `is_result` marks the last expression's value.
    """

    type: OutputType
    data: Mapping[str, object] = field(default_factory=dict)
    uri: str | None = None
    is_result: bool = False
    stream: str | None = None

    @property
    def text(self) -> str:
        """The view as text: Markdown, where a value shows itself in it, or else its `repr`; an image's URI."""
        if self.type is OutputType.IMAGE and self.uri is not None:
            return f"[image {self.uri}]"
        plain = self.data.get("text/markdown", self.data.get("text/plain"))
        return plain if isinstance(plain, str) else ""

    def to_json(self) -> dict[str, object]:
        """The output as plain data; its binary parts stay behind their URIs."""
        plain = {one.name: getattr(self, one.name) for one in fields(self)}
        return {**plain, "type": self.type.value, "data": dict(self.data)}


def preformatted(text: str) -> str:
    """Text for Jupyter's page, which takes nothing of it for markup or a formula."""
    from html import escape  # costs the start of each process 1 ms

    return f"<pre>{escape(inert(text))}</pre>"


def type_of(mimes: Iterable[str]) -> OutputType:
    """The richest view a bundle with these MIME types allows."""
    mimes = frozenset(mimes)
    if DATAFRAME_MIME in mimes:
        return OutputType.DATAFRAME
    if any(mime.startswith("image/") for mime in mimes):
        return OutputType.IMAGE
    if "text/html" in mimes:
        return OutputType.HTML
    return OutputType.TEXT
