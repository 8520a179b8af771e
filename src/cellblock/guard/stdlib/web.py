"""Audits of modules about the texts of networks, shells and paths: they take texts apart, and reach nothing."""

from __future__ import annotations

import codecs
import html.parser
import pathlib
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from itertools import chain
from typing import TYPE_CHECKING, Any

from cellblock.guard.anatomy import exact, name_of, plain
from cellblock.guard.budget import afford
from cellblock.guard.names import names
from cellblock.guard.refusal import denied
from cellblock.guard.tables import Method, ModuleAudit, TypeAudit, audit, naming

if TYPE_CHECKING:
    from cellblock.guard.world import World


_CODINGS = names(
    "utf-8 utf8 ascii latin-1 latin1 iso-8859-1 cp1252 utf-16 utf-32 utf-8-sig utf-16-le utf-16-be rot13 rot_13 hex "
    "base64 unicode_escape raw_unicode_escape punycode idna quopri"
)
_DEEPEST, _WIDEST = 2000, 10_000


def _coding(name: str) -> Callable[..., Any]:
    function = getattr(codecs, name)

    def coded(obj: Any, encoding: str = "utf-8", errors: str = "strict") -> Any:
        encoding = plain(encoding)
        if encoding.lower() not in _CODINGS:
            raise LookupError(f"unknown encoding: {encoding}")
        return function(obj, encoding, exact(errors))

    return coded


def _fromstring(text: Any) -> Any:
    """Without external entities, which the parser does not read; depth is bounded, as trees are freed in C."""
    parser: Any = ElementTree.XMLPullParser(["start", "end"])
    text = exact(text)
    if (b"<!ENTITY" if isinstance(text, bytes | bytearray) else "<!ENTITY") in text:
        raise denied("a document that declares entities", "size")
    depth = 0
    for start in range(0, len(text), 1 << 16):
        parser.feed(text[start : start + (1 << 16)])
        for event, _ in parser.read_events():
            depth += 1 if event == "start" else -1
            if depth > _DEEPEST:
                raise denied(f"elements more than {_DEEPEST:,} deep", "size")
    return ElementTree.fromstring(text)  # noqa: S314


_NAMES: tuple[Any, ...] = (str, ElementTree.QName, type(ElementTree.Comment), type(None))


def _of_texts(element: Any) -> Any:
    """A tree with nothing but texts and names in it, whose methods the library calls by name."""
    if not issubclass(type(element), ElementTree.Element):
        raise TypeError(f"expected an Element, not {name_of(type(element))}")
    for one in element.iter():
        parts: tuple[Any, ...] = (one.tag, one.text, one.tail, *chain.from_iterable(one.items()))
        for part in parts:
            texts = (part, part.text) if isinstance(part, ElementTree.QName) else (part,)
            for text in texts:
                if type(text) not in _NAMES:
                    raise TypeError(f"cannot serialize a {name_of(type(text))!r} object")
    return element


def _indent(tree: Any, space: str = "  ", level: int = 0) -> None:
    space, level = exact(space), exact(level)
    if level * len(space) > _WIDEST:
        raise MemoryError(f"{level * len(space):,} characters of space [size]")
    ElementTree.indent(_of_texts(tree), space, level)


def _tostring(element: Any, encoding: Any = None, method: Any = None, **options: Any) -> Any:
    return ElementTree.tostring(
        _of_texts(element), None if encoding is None else plain(encoding), exact(method), **options
    )


def _path(name: str) -> Method:
    """A method that takes a path, from the source that C code calls as well, whose cache is the world's."""

    direct = getattr(ElementTree.Element, name)
    most = {"find": 0, "findall": 0, "findtext": 1}.get(name, -1)
    """Arguments beside the path, but for namespaces, of what C looks for by itself."""

    def make(world: World) -> Callable[..., Any]:
        def found(self: Any, /, path: Any, *given: Any, **named: Any) -> Any:
            by_itself = len(given) <= most and not named.keys() - {"default"}
            if by_itself and type(path) is str and _TAG.fullmatch(path):
                return direct(self, path, *given, **named)
            return world.library.module("xml.etree.ElementPath")[name](self, path, *given, **named)

        return found

    return Method(f"Element.{name}", make)


_TAG = re.compile(r"(?:\{[^{}]*+\}|[^][/*@.{}])*+")
_PATHS = ("find", "findall", "findtext", "iterfind")

_PURE = names(
    "anchor as_posix as_uri drive full_match is_absolute is_relative_to is_reserved joinpath match name parent parents "
    "parts relative_to root stem suffix suffixes with_name with_segments with_stem with_suffix"
)


class PosixPath(pathlib.PurePosixPath):
    """`Path`: a pure one, whose other methods say that there are no files."""

    __slots__ = ()


def _refusing(name: str) -> Any:
    def refuse(*_: object, **__: object) -> None:
        raise denied(f"Path.{name}(): there are no files here", "builtin")

    refuse.__name__ = refuse.__qualname__ = name
    return staticmethod(refuse)


_TOUCHING = frozenset(
    name for name in dir(pathlib.Path) if not name.startswith("_") and name not in dir(pathlib.PurePath)
)
for _name in _TOUCHING:
    setattr(PosixPath, _name, _refusing(_name))
PosixPath.__module__ = "pathlib"



class HTMLParser(html.parser.HTMLParser):
    """A parser that takes no element with more attributes than there is memory for: one expression reads them."""

    def feed(self, data: Any) -> None:
        data = exact(data)
        if type(data) is str:
            afford(_TAKEN * max(sum(map(one.count, " \t\n\f\r/")) for one in data.split(">")))
        super().feed(data)


HTMLParser.__module__ = "html.parser"
_TAKEN = 500
"""Bytes for what may begin an attribute of an element."""
_NAMED = naming("match", "full_match", "with_name", "with_stem", "with_suffix")


def _of_paths(kind: type) -> TypeAudit:
    shown = _PURE | _TOUCHING if kind is PosixPath else _PURE
    return TypeAudit(type=kind, reads=shown - _NAMED.keys(), statics=shown - _NAMED.keys(), replaced=_NAMED)


_PURE_PATHS = (pathlib.PurePath, pathlib.PurePosixPath, pathlib.PureWindowsPath)

AUDITS = (
    ModuleAudit(name="urllib", submodules=names("parse"), note="nothing that opens a connection"),
    ModuleAudit(
        name="pathlib",
        members=names("PurePath PurePosixPath PureWindowsPath"),
        instead={"Path": PosixPath, "PosixPath": PosixPath},
        types=(
            *map(_of_paths, (*_PURE_PATHS, PosixPath)),
            TypeAudit(type=type(pathlib.PurePosixPath("a").parents), reads=names("count index"), constructable=False),
        ),
        note="paths as names: what touches files is refused when it is called",
    ),
    ModuleAudit(
        name="html.parser",
        instead={"HTMLParser": HTMLParser},
        types=(
            audit(
                HTMLParser,
                also=names("rawdata lasttag cdata_elem convert_charrefs lineno offset"),
                subclassable=True,
            ),
        ),
        note="written, its expressions would be tried in a process of their own: twenty times as slow",
    ),
    ModuleAudit(
        name="codecs",
        members=names(
            "BOM BOM32_BE BOM32_LE BOM64_BE BOM64_LE BOM_BE BOM_LE BOM_UTF16 BOM_UTF16_BE BOM_UTF16_LE BOM_UTF32 "
            "BOM_UTF32_BE BOM_UTF32_LE BOM_UTF8"
        ),
        instead={name: _coding(name) for name in ("encode", "decode")},
        note="codecs that decompress, and those that others registered, are left out; files are not opened",
    ),
    ModuleAudit(name="xml", submodules=names("etree"), note="nothing that reads what a document names"),
    ModuleAudit(name="xml.etree", submodules=names("ElementTree")),
    ModuleAudit(
        name="xml.etree.ElementTree",
        members=names("Element SubElement Comment ProcessingInstruction QName ParseError iselement"),
        naming=names("iselement"),
        instead={
            "fromstring": _fromstring,
            "XML": lambda text: _fromstring(text),
            "tostring": _tostring,
            "indent": _indent,
        },
        types=(
            audit(
                ElementTree.Element,
                but=_PATHS,
                writes=names("tag text tail attrib"),
                replaced={name: _path(name) for name in _PATHS},
            ),
            audit(ElementTree.QName, also=["text"]),
            audit(ElementTree.ParseError, also=names("code position")),
        ),
        note="no files, no parsers of the caller's, no external entities; trees are bounded in depth",
    ),
)
