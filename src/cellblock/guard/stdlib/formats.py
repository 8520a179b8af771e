"""Audits of modules about formats: text and bytes in, values out."""

from __future__ import annotations

import binascii
import csv
import enum
import hashlib
import io
import json
import pprint
import struct
import uuid
import zlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from cellblock.guard import sizes
from cellblock.guard.anatomy import exact, exactly, name_of
from cellblock.guard.names import names
from cellblock.guard.refusal import denied
from cellblock.guard.steps import ticking
from cellblock.guard.tables import ModuleAudit, TypeAudit, audit, measured, written
from cellblock.guard.weights import light

if TYPE_CHECKING:
    from cellblock.guard.world import World

_ITERATIONS = 1_000_000
"""Of a key of 20 bytes: about half a second, in which no cell can be ended."""


def _load(world: World) -> Callable[..., Any]:
    return lambda file, **options: _loads(world.gates.read(file, "read()").read(), **options)


def _dump(world: World) -> Callable[..., None]:
    def dump(value: Any, file: Any, **options: Any) -> None:
        world.gates.read(file, "write()").write(_dumps(value, **options))

    return dump


def _of(base: type, cls: Any) -> Any:
    if cls is not None and not (isinstance(cls, type) and issubclass(cls, base)):
        raise TypeError(f"cls is to be a subclass of {base.__name__}")
    return cls


class JSONEncoder(json.JSONEncoder):
    """An encoder whose indents and separators are not wider than can be borne."""

    def iterencode(self, o: Any, _one_shot: bool = False) -> Iterator[str]:
        for width in (self.indent, self.item_separator, self.key_separator):
            sizes.require_narrow(width, 1000)
        return super().iterencode(o, _one_shot)


JSONEncoder.__module__, JSONEncoder.__qualname__ = "json.encoder", "JSONEncoder"


def _dumps(obj: Any, *, cls: Any = None, **options: Any) -> str:
    for width in (options.get("indent"), *(options.get("separators") or ())):
        sizes.require_narrow(width, 1000)
    return json.dumps(light(obj), cls=_of(json.JSONEncoder, cls), **options)


_MOST_VALUES = 1_000_000
"""Of a document: they take C code about a second, in which no cell can be ended."""


def _few_values(text: Any) -> Any:
    if issubclass(type(text), str | bytes | bytearray) and len(text) > _MOST_VALUES:
        marks = ",[{:" if issubclass(type(text), str) else (b",", b"[", b"{", b":")
        if (values := sum(map(text.count, marks))) > _MOST_VALUES:
            raise MemoryError(f"a document of {values:,} values: the most are {_MOST_VALUES:,} [size]")
    return text


class JSONDecoder(json.JSONDecoder):
    """A decoder of documents that are not too long."""

    def raw_decode(self, s: str, idx: int = 0) -> tuple[Any, int]:
        return super().raw_decode(_few_values(exact(s)), idx)


JSONDecoder.__module__, JSONDecoder.__qualname__ = "json.decoder", "JSONDecoder"


def _loads(s: Any, *, cls: Any = None, **options: Any) -> Any:
    s = _few_values(bytes(memoryview(s)) if issubclass(type(s), bytearray) else exact(s))
    return json.loads(s, cls=_of(json.JSONDecoder, cls), **options)


def _dialects(world: World, given: tuple[Any, ...], named: dict[str, Any]) -> None:
    """Refuse what tells no dialect: its attributes are read by C code."""
    for one in (*given[:1], *(named[name] for name in named.keys() & {"dialect"})):
        if not world.gates.shows(one, _DIALECT):
            raise denied(f"a dialect of {name_of(type(one))!r}, whose attributes are not granted")


def csv_writer(world: World) -> Callable[..., Any]:
    def writer(csvfile: Any, *given: Any, **named: Any) -> Any:
        _dialects(world, given, named)
        return csv.writer(world.gates.read(csvfile, "write()"), *given, **named)

    return writer


_MOST_LINE = 5_000_000
"""Characters of a line of a table: it takes C code about half a second."""


class _Lines:
    """Lines of a table, none of them too long."""

    def __init__(self, lines: Any) -> None:
        self._lines = iter(lines)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        line = next(self._lines)
        if issubclass(type(line), str) and str.__len__(line) > _MOST_LINE:
            raise MemoryError(f"a line of {str.__len__(line):,} characters: the most are {_MOST_LINE:,} [size]")
        return line


def csv_reader(world: World) -> Callable[..., Any]:
    def reader(csvfile: Any, *given: Any, **named: Any) -> Any:
        _dialects(world, given, named)
        return csv.reader(_Lines(csvfile), *given, **named)

    return reader


def _quoted(data: Any, *given: Any, **named: Any) -> bytes:
    data = exact(data)
    if len(data) > _MOST_QUOTED:
        raise MemoryError(f"{len(data):,} bytes to quote: the most are {_MOST_QUOTED:,} [size]")
    return binascii.b2a_qp(data, *given, **named)


_MOST_QUOTED = 16_000_000
"""Bytes: they take about half a second."""


class _Printer(pprint.PrettyPrinter):
    """Knows the fields of the code's own dataclasses, which the program's `dataclasses` does not."""

    def _pprint_dataclass(
        self, object: Any, stream: Any, indent: int, allowance: int, context: Any, level: int
    ) -> None:
        name = type(object).__name__
        fields = type(object).__dataclass_fields__.values()
        items = [(one.name, getattr(object, one.name)) for one in fields if one.repr and hasattr(object, one.name)]
        stream.write(name + "(")
        self._format_namespace_items(  # type: ignore[attr-defined]
            items, stream, indent + len(name) + 1, allowance, context, level
        )
        stream.write(")")


def _formatted(
    object: Any, indent: int = 1, width: int = 80, depth: int | None = None, *, compact: bool = False, **named: Any
) -> str:
    return _Printer(indent=indent, width=width, depth=depth, compact=compact, **named).pformat(object)


_formatted.__name__ = _formatted.__qualname__ = "pformat"
_pformat: Callable[..., str] = sizes.narrow(_formatted, 1000)


def _pprint(world: World) -> Callable[..., None]:
    def pprint_(value: Any, stream: Any = None, *given: Any, **named: Any) -> None:
        text = _pformat(value, *given, **named) + "\n"
        world.builtins["print"](text, end="", file=stream)

    return pprint_


def _pp(world: World) -> Callable[..., None]:
    show = _pprint(world)

    def pp(value: Any, *given: Any, sort_dicts: bool = False, **named: Any) -> None:
        show(value, *given, sort_dicts=sort_dicts, **named)

    return pp


def _packing(name: str) -> Callable[..., Any]:
    function = getattr(struct, name)

    def packing(form: Any, *given: Any, **named: Any) -> Any:
        form = exact(form)
        sizes.check_spec(form if isinstance(form, str) else bytes(form).decode("latin-1"))
        if struct.calcsize(form) > sizes.MAX_BYTES:
            raise MemoryError(f"a structure of {struct.calcsize(form):,} bytes [size]")
        found = function(form, *given, **named)
        return ticking(found) if name == "iter_unpack" else found

    return packing


def _iter_unpack(world: World, structure: struct.Struct) -> Callable[[Any], Iterator[Any]]:
    return lambda buffer, /: ticking(structure.iter_unpack(buffer))


def _hash_new(name: Any, *given: Any, **named: Any) -> Any:
    name = exact(name)
    if isinstance(name, str) and name.lower().startswith("shake"):
        raise ValueError("digests of any length are not granted")
    return hashlib.new(name, *given, **named)


def _pbkdf2(hash_name: str, password: bytes, salt: bytes, iterations: int, dklen: int | None = None) -> bytes:
    iterations, dklen = sizes.counted(iterations), sizes.counted(dklen)
    rounds = iterations * (1 if dklen is None else max(-(-dklen // 20), 1))
    if rounds > _ITERATIONS:
        raise OverflowError(f"{rounds:,} iterations: the most here are {_ITERATIONS:,} [size]")
    return hashlib.pbkdf2_hmac(hash_name, password, salt, iterations, dklen)


def _decompress(data: Any, /, wbits: int = zlib.MAX_WBITS, bufsize: int = zlib.DEF_BUF_SIZE) -> bytes:
    machine = zlib.decompressobj(wbits)
    found = machine.decompress(data, sizes.MAX_BYTES)
    if machine.unconsumed_tail:
        raise MemoryError(f"more than {sizes.MAX_BYTES:,} bytes")
    if not machine.eof:
        raise zlib.error("Error -5 while decompressing data: incomplete or truncated stream")
    return found


_DIALECT = names("delimiter doublequote escapechar lineterminator quotechar quoting skipinitialspace strict")
_HASHES = names("md5 sha1 sha224 sha256 sha384 sha512 blake2b blake2s sha3_224 sha3_256 sha3_384 sha3_512")
_HASH_TYPES = {type(hashlib.new(name)) for name in ("md5", "sha256", "sha3_256", "blake2b", "blake2s")}
_HASH_READS = names("update digest hexdigest copy name digest_size block_size")
_FILES = ("buffer", "fileno", "raw", "detach")


def _seek(world: World, stream: Any) -> Callable[..., int]:
    """`seek`, not far past the end: what is written there has all before it filled up."""
    kind = io.BytesIO if isinstance(stream, io.BytesIO) else io.StringIO

    def seek(position: Any, whence: Any = 0, /) -> int:
        position = sizes.counted(position)
        if isinstance(position, int) and position > sizes.MAX_BYTES:
            raise MemoryError(f"a stream of {position:,} items [size]")
        return kind.seek(stream, position, whence)

    return seek


AUDITS = (
    ModuleAudit(
        name="json",
        calling=names("load dump loads dumps"),
        members=names("JSONDecodeError"),
        instead={"JSONDecoder": JSONDecoder, "JSONEncoder": JSONEncoder, "loads": _loads, "dumps": _dumps},
        replaced={"load": _load, "dump": _dump},
        types=(
            audit(json.JSONDecodeError, also=["msg", "doc", "pos", "lineno", "colno"], subclassable=True),
            audit(
                JSONEncoder,
                subclassable=True,
                also=["indent", "sort_keys", "skipkeys", "ensure_ascii", "item_separator", "key_separator"],
            ),
            audit(JSONDecoder, subclassable=True, also=["object_hook", "strict"]),
        ),
        submodules=names("decoder encoder"),
    ),
    ModuleAudit(name="json.decoder", members=names("JSONDecodeError"), instead={"JSONDecoder": JSONDecoder}),
    ModuleAudit(name="json.encoder", members=names("JSONEncoder")),
    ModuleAudit(
        name="base64",
        members=names(
            "a85decode a85encode b16decode b16encode b32decode b32encode b32hexdecode b32hexencode b64decode b64encode "
            "b85decode b85encode decodebytes encodebytes standard_b64decode standard_b64encode urlsafe_b64decode "
            "urlsafe_b64encode z85decode z85encode"
        ),
        note="encode and decode take files",
    ),
    ModuleAudit(
        name="binascii",
        members=names(
            "Error Incomplete a2b_base64 a2b_hex a2b_qp a2b_uu b2a_base64 b2a_hex b2a_uu crc32 crc_hqx hexlify "
            "unhexlify"
        ),
        instead={"b2a_qp": _quoted},
        types=(audit(binascii.Error, subclassable=True),),
    ),
    ModuleAudit(
        name="hashlib",
        members=_HASHES | names("algorithms_available algorithms_guaranteed"),
        instead={"pbkdf2_hmac": _pbkdf2, "new": _hash_new},
        types=tuple(TypeAudit(type=kind, reads=_HASH_READS, constructable=False) for kind in _HASH_TYPES),
        note="file_digest reads files; scrypt and the digests of any length take what memory they are told",
    ),
    ModuleAudit(
        name="uuid",
        members=names("UUID uuid3 uuid4 uuid5 NAMESPACE_DNS NAMESPACE_URL NAMESPACE_OID NAMESPACE_X500 SafeUUID"),
        naming=names("UUID uuid3 uuid5"),
        types=(audit(uuid.UUID, also=["int", "is_safe"], subclassable=True), TypeAudit(type=enum.EnumType)),
        note="uuid1 tells the machine's address",
    ),
    ModuleAudit(
        name="csv",
        members=names(
            "Dialect excel excel_tab unix_dialect Error list_dialects get_dialect "
            "QUOTE_ALL QUOTE_MINIMAL QUOTE_NONE QUOTE_NONNUMERIC QUOTE_NOTNULL QUOTE_STRINGS"
        ),
        replaced={"reader": csv_reader, "writer": csv_writer, **written("csv", "DictReader", "DictWriter", "Sniffer")},
        types=(
            TypeAudit(type=type(csv.reader([])), reads=names("line_num dialect"), constructable=False),
            TypeAudit(
                type=type(csv.writer(io.StringIO())), reads=names("writerow writerows dialect"), constructable=False
            ),
            audit(
                csv.DictReader, but=["reader"], also=names("fieldnames line_num restkey restval"), constructable=False
            ),
            TypeAudit(type=type(csv.get_dialect("excel")), reads=_DIALECT, constructable=False),
            *(
                audit(kind, subclassable=True)
                for kind in (csv.Dialect, csv.excel, csv.excel_tab, csv.unix_dialect, csv.Error)
            ),
        ),
        note="registering dialects changes them for the whole process",
    ),
    ModuleAudit(
        name="io",
        members=names("StringIO BytesIO SEEK_SET SEEK_CUR SEEK_END UnsupportedOperation DEFAULT_BUFFER_SIZE"),
        types=(
            measured(io.StringIO, but=_FILES, also={"seek": _seek}),
            measured(io.BytesIO, but=("getbuffer", *_FILES), also={"seek": _seek}),
            audit(io.UnsupportedOperation, subclassable=True),
        ),
        note="in memory alone",
    ),
    ModuleAudit(
        name="struct",
        members=names("error"),
        instead={
            "calcsize": exactly(struct.calcsize),
            **{name: _packing(name) for name in names("pack unpack pack_into unpack_from iter_unpack Struct")},
        },
        types=(
            audit(struct.Struct, but=["iter_unpack"], replaced={"iter_unpack": _iter_unpack}),
            audit(struct.error, subclassable=True),
        ),
    ),
    ModuleAudit(
        name="pprint",
        members=names("isreadable isrecursive saferepr"),
        instead={"pformat": _pformat},
        replaced={"pprint": _pprint, "pp": _pp},
        note="PrettyPrinter writes to the host's output where it is given no stream",
    ),
    ModuleAudit(
        name="zlib",
        members=names("adler32 crc32 compress error"),
        instead={"decompress": _decompress},
        types=(audit(zlib.error, subclassable=True),),
    ),
)
