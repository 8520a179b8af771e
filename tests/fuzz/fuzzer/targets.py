"""The readers that stand at the wall, each with what must hold of what it read."""

from __future__ import annotations

import datetime as dt
import io
import json
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from decimal import Decimal
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import PosixPath, PurePosixPath, PureWindowsPath
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints
from uuid import UUID
from zoneinfo import ZoneInfo

import cellblock.session.ipynb
import cellblock.session.page  # noqa: F401 - what readers import when they are first used
from cellblock.cell import Cell, CellState
from cellblock.cli.terminal import Printer
from cellblock.executors.process.text import TextBudget
from cellblock.executors.protocol import Written
from cellblock.session.inert import inert
from cellblock.session.notebook import Notebook
from cellblock.session.record import Recorder, losses
from cellblock.values.portable import EnumName, MalformedValue, NotPortable, Opaque, Record, encode, pack, unpack
from cellblock.wire import messages as m
from cellblock.wire.codec import decode_event, encode_event
from cellblock.wire.connection import Connection, State
from cellblock.wire.frames import Assembler, Frame, ProtocolError, packets
from cellblock.wire.packed import pack_event, unpack_event
from cellblock.wire.text import Demultiplexer, Place, Text
from fuzzer import seeds
from fuzzer.cases import Case


@dataclass(frozen=True, slots=True)
class Target:
    """A reader. `read` is what is measured; `check` raises AssertionError for what it must not have given."""

    name: str
    seeds: Callable[[], Iterator[Case]]
    read: Callable[[Case], Any]
    check: Callable[[Case, Any], None]
    spare: int = 2 * 2**20
    each: int = 320
    """Bytes of memory that reading takes: so many, and so many for each byte."""


# --- frames ------------------------------------------------------------------------------------------------------


def _read_frames(case: Case) -> list[Frame] | None:
    assembler, frames = Assembler(), []
    try:
        for packet in case:
            if (frame := assembler.feed(packet)) is not None:
                frames.append(frame)
    except ProtocolError:
        return None
    return frames


def _check_frames(case: Case, frames: list[Frame] | None) -> None:
    if frames is not None:
        again = [bytes(packet) for frame in frames for packet in packets(frame)]
        assert again == list(case[: len(again)]), "a frame that is written otherwise than it was read"


def _frames() -> Iterator[Case]:
    for event in seeds.EVENTS:
        yield tuple(map(bytes, packets(encode_event(event))))


# --- events ------------------------------------------------------------------------------------------------------


def _read_event(case: Case) -> m.Event | None:
    try:
        return decode_event(Frame(case[0], case[1:])) if case else None
    except ProtocolError:
        return None


def _check_event(case: Case, event: m.Event | None) -> None:
    if event is None:
        return
    _check_types(event)
    again = decode_event(encode_event(event))
    assert again == event, "an event that reads otherwise when it is written again"
    packed = pack_event(event)
    assert packed is None or unpack_event(packed) == event, "an event that its packed form tells otherwise"


def _read_packed(case: Case) -> list[m.Event | None]:
    found: list[m.Event | None] = []
    for packet in case:
        try:
            found.append(unpack_event(packet))
        except ProtocolError:
            found.append(None)
    return found


def _check_packed(case: Case, found: list[m.Event | None]) -> None:
    for event in found:
        _check_event(case, event)


def _packed() -> Iterator[Case]:
    yield from (spoken for event in seeds.EVENTS if len(spoken := seeds.spoken(event)) == 1 and spoken[0][:1] == b"F")


def _check_types(message: object) -> None:
    """Each field holds what it declares."""
    hints = get_type_hints(type(message))
    for field in fields(message):  # type: ignore[arg-type]
        value = getattr(message, field.name)
        assert _is(value, hints[field.name]), f"{type(message).__name__}.{field.name} is {value!r:.100}"
        if isinstance(value, m.Failure):
            _check_types(value)


def _is(value: object, hint: Any) -> bool:
    origin, inner = get_origin(hint), get_args(hint)
    if hint is object:
        return True
    if origin is UnionType:
        return any(_is(value, one) for one in inner)
    if origin is tuple:
        return type(value) is tuple and all(_is(one, inner[0]) for one in value)
    if origin is not None:  # Mapping
        return type(value) is dict and all(_is(key, inner[0]) and _is(one, inner[1]) for key, one in value.items())
    return type(value) is hint


# --- conversations -----------------------------------------------------------------------------------------------

_REQUESTS: tuple[m.Request, ...] = (
    m.Run(source="1", filename="<cell 1>", max_text=100),
    m.Shell(command="true"),
    m.Bind(name="x", buffers=(b"pickle",)),
    m.Fetch(name="x"),
    m.Survey(max_names=10, max_preview=10),
    m.Clear(),
    m.ToolReply(call=1, error=("NameError", "no")),
)
_HEARD = {
    (State.OPENING, m.Hello): State.IDLE,
    (State.IDLE, m.Display): State.IDLE,
    (State.IDLE, m.ToolCalled): State.IDLE,
    (State.BUSY, m.Display): State.BUSY,
    (State.BUSY, m.ToolCalled): State.BUSY,
    (State.BUSY, m.Finished): State.IDLE,
}


@dataclass(frozen=True, slots=True)
class Heard:
    """A packet: the state before it, what it completed, the state after it, and how many requests there had been."""

    before: State
    event: m.Event | None
    after: State
    requests: int


def _converse(case: Case) -> list[Heard]:
    connection, heard, requests = Connection(), [], 0
    for step in case:
        before = connection.state
        try:
            if step[:1] == b"h":
                request = _REQUESTS[(step[1] if len(step) > 1 else 0) % len(_REQUESTS)]
                for packet in connection.send(request):
                    bytes(packet)
                requests += type(request) is not m.ToolReply
            elif step[:1] == b"w":
                event = connection.receive(step[1:])
                heard.append(Heard(before, event, connection.state, requests))
        except ProtocolError:
            if step[:1] == b"w":  # the end of a worker
                break
    return heard


def _check_conversation(case: Case, conversation: list[Heard]) -> None:
    for heard in conversation:
        event = heard.event
        if event is None:
            assert heard.after is heard.before, "a part of a message that changes the state"
            continue
        assert heard.after is _HEARD[heard.before, type(event)], f"{type(event).__name__} while {heard.before.value}"
        _check_types(event)
        if isinstance(event, m.Finished):
            assert event.number == heard.requests, "a reply to another request"


# --- values ------------------------------------------------------------------------------------------------------


def _read_value(case: Case) -> object:
    try:
        return (unpack(case),)
    except MalformedValue:
        return None


def _check_value(case: Case, read: object) -> None:
    if read is None:
        return
    assert isinstance(read, tuple)
    _check_parts(read[0])
    try:
        first = pack(encode(read[0]))
    except NotPortable as refusal:
        if refusal.reason != "two keys are alike without their classes":  # what stands for instances is hashed here
            raise
        return
    second = pack(encode(unpack(first)))
    assert _form(first) == _form(second), "a value that reads otherwise when it is written again"


def _check_parts(value: object) -> None:
    """Of the types of the table, exactly, all the way down."""
    if type(value) in (list, tuple, set, frozenset):
        for part in value:  # type: ignore[attr-defined]
            _check_parts(part)
    elif type(value) is dict:
        for pair in value.items():
            _check_parts(pair)
    elif type(value) is slice:
        _check_parts((value.start, value.stop, value.step))
    elif type(value) is Record:
        assert type(value.type) is str
        assert type(value.fields) is dict
        _check_parts(value.fields)
    elif type(value) in (Opaque, EnumName):
        assert all(type(getattr(value, field.name)) is str for field in fields(value))  # type: ignore[arg-type]
    elif type(value).__module__ == "numpy":
        assert type(value).__name__ == "ndarray" or type(value) in seeds.SCALARS
        assert not value.dtype.hasobject  # type: ignore[attr-defined]
    else:
        assert type(value) in _PARTLESS, f"a {type(value)}"


_PARTLESS = (
    type(None), bool, int, float, complex, str, bytes, bytearray, range, dt.date, dt.time, dt.datetime, dt.timedelta,
    dt.timezone, ZoneInfo, Decimal, Fraction, UUID, PurePosixPath, PureWindowsPath, PosixPath,
)  # fmt: skip


def _form(buffers: tuple[Any, ...]) -> tuple[list[int], list[bytes]]:
    """Sets have no order of their own."""
    return sorted(bytes(buffers[0])), sorted(map(bytes, buffers[1:]))


# --- text --------------------------------------------------------------------------------------------------------


def _read_text(case: Case) -> tuple[list[Text | Place], list[Written]]:
    demultiplexer, budget = Demultiplexer(seeds.NONCE), TextBudget(200)
    items = [item for chunk in case for item in demultiplexer.feed(chunk)]
    items += demultiplexer.rest()
    told = [written for item in items if isinstance(item, Text) for written in budget.add(item)]
    return items, [*told, *budget.finish()]


def _check_text(case: Case, read: tuple[list[Text | Place], list[Written]]) -> None:
    items, told = read
    whole = list(Demultiplexer(seeds.NONCE).feed(b"".join(case)))
    streams = {
        name: b"".join(item.data for item in items if isinstance(item, Text) and item.stream == name)
        for name in ("stdout", "stderr")
    }
    for name, data in streams.items():
        expected = b"".join(item.data for item in whole if isinstance(item, Text) and item.stream == name)
        assert data.startswith(expected), "text that depends on how the pipe was cut"
    assert [item for item in items if isinstance(item, Place)] == [item for item in whole if isinstance(item, Place)]
    assert all(type(item.text) is str and item.stream in streams for item in told)
    told_bytes = sum(len(item.text.encode()) for item in told)
    assert told_bytes <= 3 * 301, "more text than was asked for"
    assert sum(item.cut for item in told) <= sum(map(len, streams.values()))


# --- what is shown -----------------------------------------------------------------------------------------------


def _shown(case: Case) -> tuple[str, dict[str, object], str, list[str]]:
    """The page, the document, the model's text, and each text made inert, of a cell that showed all this."""
    draft = Cell(id="c1", number=1, source="", state=CellState.RUNNING)
    recorder, buffers, names = Recorder(draft, 500), [], {}
    finished = m.Finished(number=1, failure=None, duration_ms=1.0, cpu_ms=1.0, memory_peak=1)
    for step in case:
        kind, rest = step[:1], step[1:]
        text = rest.decode("utf-8", "replace")
        try:
            if kind == b"s":
                draft = replace(draft, source=rest.decode("utf-8", "surrogateescape"))
            elif kind in (b"o", b"e"):
                recorder.write(Written(stream="stdout" if kind == b"o" else "stderr", text=text))
            elif kind == b"b":
                buffers.append(rest)
            elif kind == b"l":
                names[text] = text
            elif kind in (b"d", b"f"):
                event = decode_event(Frame(rest, tuple(buffers)))
                buffers = []
                if isinstance(event, m.Display):
                    recorder.display(event)
                elif isinstance(event, m.Finished):
                    finished = event
        except ProtocolError:
            continue
    cell = replace(recorder.finish(finished, timed_out=None, lost=losses(names, "gone")), source=draft.source)
    notebook = Notebook()
    notebook.record(cell, recorder.blobs)
    printed = [inert(output.text) for output in cell.outputs]
    return notebook.to_html(), notebook.to_ipynb(), cell.text, printed


def _check_shown(case: Case, read: tuple[str, dict[str, object], str, list[str]]) -> None:
    page, document, text, printed = read
    page.encode()
    json.dumps(document, allow_nan=False).encode()
    assert len(text.encode("utf-8", "replace")) <= 500 + 100
    for one in printed:
        _check_inert(one, "text made inert")
    _check_inert(page, "the page")
    elements = Elements(page).found
    for tag, attributes in elements:
        allowed = _ATTRIBUTES.get(tag)
        assert allowed is not None, f"<{tag}> in the page"
        assert attributes.keys() <= allowed, f"<{tag}> with {attributes.keys() - allowed}"
        assert tag != "iframe" or attributes["sandbox"] == "", "a frame with rights"
        assert tag != "img" or str(attributes["src"]).startswith(_IMAGES), "an image that is fetched"
    _check_document(document)


def _check_inert(text: str, where: str, also: str = "") -> None:
    found = {f"U+{ord(one):04X}" for one in set(text) - {"\n", "\t", *also} if _acts(one)}
    assert not found, f"{', '.join(sorted(found))} in {where}"


def _acts(character: str) -> bool:
    """Whether a terminal or a browser does something else with it than showing it, or shows nothing."""
    return unicodedata.category(character) in ("Cc", "Cf", "Cs") and character not in _SCRIPTS_NEED


_SCRIPTS_NEED = frozenset(
    "\u200c\u200d"  # joiners
    "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"  # seen, before numbers
).union(map(chr, range(0x13430, 0x13440)))  # how hieroglyphs stand


_ATTRIBUTES: dict[str, set[str]] = {
    **{tag: {"class"} for tag in ("head", "title", "style", "body", "main", "header", "h1", "p", "div", "span", "pre")},
    **{tag: {"class"} for tag in ("code", "table", "thead", "tbody", "tr", "th", "td", "ul", "li")},
    "html": {"lang"},
    "meta": {"charset", "name", "content", "http-equiv"},
    "section": {"class", "id"},
    "img": {"alt", "src"},
    "iframe": {"sandbox", "loading", "title", "style", "srcdoc"},
}
_IMAGES = tuple(f"data:image/{kind};base64," for kind in ("png", "jpeg", "gif", "webp", "svg+xml"))


class Elements(HTMLParser):
    """What a browser would make of a page."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attributes)))

    def handle_comment(self, data: str) -> None:
        raise AssertionError("a comment in the page")


def _check_document(document: dict[str, Any]) -> None:
    """The parts of nbformat 4.5 that come from inside."""
    (cell,) = document["cells"]
    assert cell.keys() == {"cell_type", "id", "execution_count", "metadata", "source", "outputs"}
    assert type(cell["source"]) is str
    assert cell["metadata"].keys() == {"cellblock"}
    for output in cell["outputs"]:
        kind = output["output_type"]
        if kind == "stream":
            assert output["name"] in ("stdout", "stderr")
            assert type(output["text"]) is str
        elif kind == "error":
            assert all(type(line) is str for line in (output["ename"], output["evalue"], *output["traceback"]))
        else:
            assert kind in ("display_data", "execute_result")
            assert output["metadata"] == {}
            for mime, part in output["data"].items():
                assert "javascript" not in mime.lower(), "a script in the document"
                assert mime.endswith("json") or type(part) is str


# --- what a terminal is sent -------------------------------------------------------------------------------------


class Screen(io.StringIO):
    """A terminal that keeps what it is sent."""

    def isatty(self) -> bool:
        return True


def _print(case: Case) -> str:
    screen = Screen()
    printer = Printer(screen)
    for at, part in enumerate(case):
        text = part.decode("utf-8", "surrogateescape")
        if at % 3 == 2:
            printer.line(text)
        else:
            printer.write(text)
    printer.end_line()
    return screen.getvalue()


def _check_printed(case: Case, sent: str) -> None:
    _check_inert(sent, "what a terminal is sent", also="\r")


TARGETS: tuple[Target, ...] = (
    Target("frames", _frames, _read_frames, _check_frames),
    Target("events", seeds.events, _read_event, _check_event),
    Target("packed", _packed, _read_packed, _check_packed),
    Target("conversations", seeds.conversations, _converse, _check_conversation),
    Target("values", seeds.values, _read_value, _check_value),
    Target("text", seeds.pipes, _read_text, _check_text),
    Target("terminal", seeds.pipes, _print, _check_printed),
    Target("shown", seeds.cells, _shown, _check_shown, spare=8 * 2**20, each=1000),
)
BY_NAME = {target.name: target for target in TARGETS}
