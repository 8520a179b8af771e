"""A notebook as one page that a person reads: no script, nothing fetched, every string escaped (W8).

HTML from a cell is written anew from a list of elements and attributes, since no policy of a page governs all that
makes a browser connect; and it is shown only in a frame without rights: `sandbox` gives it an origin of its own and no
scripts, and the page's Content-Security-Policy, which frames inherit, lets it load nothing. SVG is shown as an image.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from html import escape
from math import isfinite

from cellblock.cell import Cell, CellError, CellState
from cellblock.outputs import DATAFRAME_MIME, Output, OutputType
from cellblock.session.page_style import FRAME_STYLE, STYLE
from cellblock.session.rich import apart, image, markdown, rich
from cellblock.session.shown import NO_ROOM, Blob, Prose, Room, Shown, absent
from cellblock.text import as_terminal, inert

_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_MAX_COLUMNS = 200
_MAX_ROWS = 100


def page(cells: Iterable[Shown | Prose], *, private: str = "") -> str:
    """The whole page. Sources and text take up to sixfold their size, HTML ninefold, as far as there is `Room`."""
    numbers, sections, room = list[int](), list[str](), Room()
    for one in cells:
        numbers += [one.cell.number] if isinstance(one, Shown) else []
        sections += _cell(one, room) if isinstance(one, Shown) else _prose(one, room)
    count = "1 cell" if len(numbers) == 1 else f"{len(numbers)} cells"
    if note := absent(numbers):
        count += f", {note}"
    return "".join(
        (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n',
            f'<meta http-equiv="Content-Security-Policy" content="{escape(_POLICY)}">\n',
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n',
            '<meta name="color-scheme" content="light dark">\n<meta name="referrer" content="no-referrer">\n',
            f"<title>Notebook</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n",
            f"<header><h1>Notebook</h1><p>{count}{_marked(private)}</p></header>\n",
            *sections,
            "</main>\n</body>\n</html>\n",
        )
    )


def _marked(private: str) -> str:
    """Note of the page on a session that holds private data."""
    return f", private data: {_text(private)}" if private else ""


def _prose(prose: Prose, room: Room) -> Iterator[str]:
    def view() -> str:
        return markdown(prose.text, prose.images, room) if prose.is_markdown else f"<pre>{_text(prose.text)}</pre>"

    yield f"<section class=text>\n{_fitting(room, view)}</section>\n"


def _cell(shown: Shown, room: Room) -> Iterator[str]:
    cell = shown.cell
    yield f'<section class="cell {_state(cell)}" id="{_text(cell.id)}">\n{_head(cell)}'
    yield f"<pre class=source><code>{_text(cell.source)}</code></pre>\n"
    for output, blobs in shown.outputs:
        if output.type is OutputType.ERROR and cell.error is not None:
            continue
        yield f"<div class=output>{_fitting(room, partial(_output, output, blobs, room))}</div>\n"
    if cell.error is not None:
        yield f"<div class=output>{_fitting(room, partial(_error, cell.error))}</div>\n"
    if cell.lost:
        rows = "".join(
            f"<li><code>{_text(loss.name)}</code> ({_text(loss.type)}): {_text(loss.reason)}. {_text(loss.remedy)}</li>"
            for loss in cell.lost
        )
        yield f"<div class=lost><p>Lost:</p><ul>{rows}</ul></div>\n"
    yield "</section>\n"


def _head(cell: Cell) -> str:
    facts = [f'<span class="state">{_state(cell)}</span>']
    if cell.kind != "python":
        facts.append(f"<span>{_text(cell.kind)}</span>")
    if cell.rolled_back:
        facts.append("<span>rolled back</span>")
    if cell.state not in (CellState.IDLE, CellState.RUNNING):
        facts.append(f"<span>{_duration(cell.usage.duration_ms)}</span>")
        if cell.usage.memory_peak_bytes >= 2**20:
            facts.append(f"<span>{cell.usage.memory_peak_bytes / 2**20:,.0f} MB</span>")
    number = f"[{cell.number}]" if cell.number else "[ ]"
    return f"<div class=head><span class=number>{number}</span>{''.join(facts)}</div>\n"


def _state(cell: Cell) -> str:
    """State of a cell for the page: one that was undone is that, however it had ended."""
    return "undone" if cell.undone else cell.state.value


def _duration(milliseconds: float) -> str:
    if not isfinite(milliseconds):
        return "?"
    return f"{milliseconds:,.0f} ms" if milliseconds < 1000 else f"{milliseconds / 1000:,.1f} s"


def _output(output: Output, blobs: tuple[Blob, ...], room: Room) -> str:
    """The richest view this page has for an output."""
    if output.stream is not None:
        name = "stderr" if output.stream == "stderr" else "stdout"
        return f'<pre class="{name}">{escape(as_terminal(output.text))}</pre>'
    views = rich(output.data, blobs, room)
    table = _table(views.json.get(DATAFRAME_MIME))
    if table is not None:
        return table
    images = [mime for mime in views.images if mime != "image/svg+xml"] or list(views.images)
    if images:
        return "".join(image(mime, views.images[mime], views.text) for mime in images)
    if views.markup:
        return _frame(views.markup)
    if views.prose:
        return f"<div class=text>{views.prose}</div>"
    return f"<pre>{_text(views.text or '')}</pre>"


def _frame(html: str) -> str:
    rows = min(18, 4 + html.count("<tr") + html.count("<p") + html.count("<li") + html.count("<br"))
    fixed = f'sandbox="" loading="lazy" title="HTML output" style="height:{2 * rows}rem"'
    return f'<iframe {fixed} srcdoc="{escape(FRAME_STYLE + apart(html))}"></iframe>'


def _table(table: object) -> str | None:
    """A data frame's first rows; None where the part is not what `DATAFRAME_MIME` promises."""
    if not isinstance(table, dict):
        return None
    columns, index, head, shape = (table.get(key) for key in ("columns", "index", "head", "shape"))
    if not (isinstance(columns, list) and isinstance(head, list) and all(isinstance(row, list) for row in head)):
        return None
    labels = index if isinstance(index, list) else []
    rows = [
        _row([labels[place] if place < len(labels) else "", *row[:_MAX_COLUMNS]])
        for place, row in enumerate(head[:_MAX_ROWS])
    ]
    top = "".join(f"<th>{_text(_written(name))}</th>" for name in ["", *columns[:_MAX_COLUMNS]])
    size = " &times; ".join(_text(_written(side)) for side in shape) if isinstance(shape, list) else "?"
    return (
        f"<div class=table><table><thead><tr>{top}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
        f"<p class=note>{len(rows)} rows shown of {size}</p>"
    )


def _row(row: list[object]) -> str:
    label, *cells = row
    return f"<tr><th>{_text(_written(label))}</th>{''.join(map(_field, cells))}</tr>"


def _field(value: object) -> str:
    kind = " class=n" if isinstance(value, int | float) and not isinstance(value, bool) else ""
    return f"<td{kind}>{_text(_written(value))}</td>"


def _written(value: object) -> str:
    if value is None or isinstance(value, bool | str):
        return "-" if value is None else str(value)
    if isinstance(value, int):
        return str(value) if abs(value) < 2**64 else hex(value)  # str() of a long one raises
    return repr(value) if isinstance(value, float) else "…"


def _error(error: CellError) -> str:
    whole = error.traceback or f"{error.type}: {error.message}"
    hint = f"<p class=note>{_text(error.hint)}</p>" if error.hint else ""
    return f"<pre class=error>{escape(as_terminal(whole))}</pre>{hint}"


def _fitting(room: Room, view: Callable[[], str]) -> str:
    made = room.take(view)
    return f"<pre class=stderr>{NO_ROOM}</pre>" if made is None else made


def _text(text: str) -> str:
    return escape(inert(text))
