"""Figures of matplotlib: drawn to PNG at the end of a cell, or at once where it calls `show()`.

matplotlib is never imported here: `install` changes `pyplot` when the cell imports it, or at once where a
package that was preloaded already did.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from io import BytesIO
from os import environ
from sys import modules
from typing import Any

from cellblock.text import type_name
from cellblock.worker.import_hooks import on_import, replace
from cellblock.worker.show.mime import Bundle, Parts

_PYPLOT = "matplotlib.pyplot"
_FIGURE_TEXT = 1000
_MOST_PIXELS = 40_000_000


def install(show: Callable[[Bundle], None]) -> None:
    """Make `plt.show()` and `figure.show()` hand what they draw to `show`, whenever pyplot is imported."""
    environ.setdefault("MPLBACKEND", "agg")
    on_import(_PYPLOT, partial(_take_over, show))


def flush() -> list[Bundle]:
    """Draw and close every open figure, in the order they were opened."""
    pyplot: Any = modules.get(_PYPLOT)
    if pyplot is None or not hasattr(pyplot, "get_fignums"):  # it is being imported
        return []
    numbers = pyplot.get_fignums()
    if not numbers:
        return []
    try:
        return [_drawn(pyplot.figure(number)) for number in numbers]
    finally:
        pyplot.close("all")


def close_shown(value: object) -> None:
    """Close a figure that was shown as a value, so that the end of the cell does not show it again."""
    pyplot: Any = modules.get(_PYPLOT)
    if pyplot is not None and is_figure(value):
        pyplot.close(value)


def is_figure(value: object) -> bool:
    """True if a value is a matplotlib figure, by its type and not by what it says of itself."""
    figure = getattr(modules.get("matplotlib.figure"), "Figure", None)
    return isinstance(figure, type) and issubclass(type(value), figure)


def png(figure: Any) -> bytes:
    """A figure as it would be saved: its own resolution and background, white margins cut off."""
    width, height = figure.bbox.size
    if width * height > _MOST_PIXELS:
        raise MemoryError(f"{width:.0f} by {height:.0f} pixels; the most are {_MOST_PIXELS:,}")
    buffer = BytesIO()
    figure.savefig(buffer, format="png", dpi="figure", facecolor="auto", edgecolor="auto", bbox_inches="tight")
    return buffer.getvalue()


def _drawn(figure: Any) -> Bundle:
    parts = Parts(_FIGURE_TEXT)
    try:
        parts.add("image/png", png(figure))
    except Exception as error:  # drawing runs the cell's formatters, artists and mathtext
        parts.note(f"could not be drawn: {type_name(error)}: {str(error)[:500]}")
    return parts.finish(figure)


def _take_over(show: Callable[[Bundle], None], pyplot: Any) -> None:
    if environ.get("MPLBACKEND", "agg").lower() == "agg":
        modules["matplotlib"].rcParams["backend"] = "agg"
    for holder, name, function in shown_by(show, pyplot):
        replace(holder, name, function)


def shown_by(show: Callable[[Bundle], None], pyplot: Any) -> list[tuple[Any, str, Callable[..., None]]]:
    """Holders and names of pyplot's functions that show figures, each with one that hands what it draws to `show`."""

    def show_open(*_args: object, **_options: object) -> None:
        """Show every open figure now, and close it."""
        for bundle in flush():
            show(bundle)

    def show_one(figure: Any, *_args: object, **_options: object) -> None:
        """Show this figure now, and close it."""
        bundle = _drawn(figure)
        pyplot.close(figure)
        show(bundle)

    return [(pyplot, "show", show_open), (pyplot.Figure, "show", show_one)]
