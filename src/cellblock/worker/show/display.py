"""From a value to the MIME bundle a notebook shows: tables, figures, images, what `_repr_*_` methods give.

Runs inside the wall, where the values are. Looks for libraries in `sys.modules` and imports none.
"""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from sys import modules
from types import CoroutineType, MethodType
from typing import Any

from cellblock.outputs import DATAFRAME_MIME
from cellblock.text import exact
from cellblock.worker.interrupts import Interrupted
from cellblock.worker.show import figures
from cellblock.worker.show.mime import Bundle, Parts, data_of
from cellblock.worker.show.tables import table_of

__all__ = ["Bundle", "bundle"]

_METHODS = (
    ("_repr_html_", "text/html"),
    ("_repr_svg_", "image/svg+xml"),
    ("_repr_png_", "image/png"),
    ("_repr_jpeg_", "image/jpeg"),
    ("_repr_pdf_", "application/pdf"),
    ("_repr_markdown_", "text/markdown"),
    ("_repr_latex_", "text/latex"),
    ("_repr_json_", "application/json"),
)
_CANARY = "_ipython_canary_method_should_not_exist_"


def bundle(value: object, max_text: int) -> Bundle:
    """MIME bundle of `value`. Always holds text/plain: its repr, the middle cut to `max_text` characters.

    Runs the value's own code. Whatever it raises costs the one part it was to give; the host's interrupt passes.
    """
    parts = Parts(max_text)
    if type(value) is CoroutineType:
        parts.note("not run: write `await` before it")
    for attempt in (_table, _figure, _image):
        try:
            known = attempt(value, parts)
        except Interrupted:
            raise
        except BaseException as error:  # a subclass's own code, a table that cannot be read
            parts.note(f"not shown as it could be: {type(error).__name__}")
            known = False
        if known:
            return parts.finish(value)
    _methods(value, parts)
    return parts.finish(value)


def _table(value: object, parts: Parts) -> bool:
    table = table_of(value)
    if table is None:
        return False
    parts.add(DATAFRAME_MIME, table)
    _method(value, "_repr_html_", "text/html", parts)
    return True


def _figure(value: object, parts: Parts) -> bool:
    if not figures.is_figure(value):
        return False
    parts.add("image/png", figures.png(value))
    return True


def _image(value: Any, parts: Parts) -> bool:
    image = getattr(modules.get("PIL.Image"), "Image", None)
    if not isinstance(image, type) or not issubclass(type(value), image):
        return False
    buffer = BytesIO()
    try:
        value.save(buffer, format="PNG")
    except OSError:  # a mode that PNG lacks, such as CMYK
        buffer = BytesIO()
        value.convert("RGB").save(buffer, format="PNG")
    parts.add("image/png", buffer.getvalue())
    return True


def _methods(value: object, parts: Parts) -> None:
    if _has(value, _CANARY):  # it has every attribute, so having these means nothing
        return
    given = data_of(_call(value, "_repr_mimebundle_", include=None, exclude=None))
    if isinstance(given, Mapping):
        try:
            for mime, part in given.items():
                if isinstance(mime, str):
                    _add(parts, exact(mime, None), part)
        except Interrupted:
            raise
        except BaseException:  # a mapping of the cell's own
            parts.note("not shown as it could be")
    for name, mime in _METHODS:
        if mime not in parts:
            _method(value, name, mime, parts)


def _method(value: object, name: str, mime: str, parts: Parts) -> None:
    _add(parts, mime, data_of(_call(value, name)))


def _add(parts: Parts, mime: str, part: object) -> None:
    try:
        parts.add(mime, part)
    except Interrupted:
        raise
    except BaseException:  # JSON that is none, or a part with methods of its own
        return


def _call(value: object, name: str, **options: object) -> object:
    """Result of a `_repr_*_` method; None where there is none or it raises. A class shows as a class."""
    try:
        method = getattr(value, name, None)
        if not callable(method) or (isinstance(value, type) and not isinstance(method, MethodType)):
            return None
        return method(**options)
    except Interrupted:
        raise
    except BaseException:
        return None


def _has(value: object, name: str) -> bool:
    try:
        return getattr(value, name, None) is not None
    except Interrupted:
        raise
    except BaseException:
        return False
