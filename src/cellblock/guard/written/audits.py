"""Audits of modules that a world makes from the running Python's own source: a list of names, and what they give."""

from __future__ import annotations

import functools
import ipaddress
import urllib.parse

from cellblock.guard.names import names
from cellblock.guard.tables import ModuleAudit, TypeAudit, audit

_PARTS = names("geturl _replace _asdict _fields _make encode decode hostname port username password count index")
_RESULTS = names("ParseResult SplitResult DefragResult ParseResultBytes SplitResultBytes DefragResultBytes")

AUDITS = (
    ModuleAudit(
        name="argparse",
        written=True,
        members=names(
            "ArgumentParser Namespace Action BooleanOptionalAction ArgumentError ArgumentTypeError HelpFormatter "
            "RawDescriptionHelpFormatter RawTextHelpFormatter ArgumentDefaultsHelpFormatter MetavarTypeHelpFormatter "
            "SUPPRESS OPTIONAL ZERO_OR_MORE ONE_OR_MORE REMAINDER PARSER"
        ),
        note="no files, and no words but those of the code's own `sys.argv`",
    ),
    ModuleAudit(
        name="colorsys",
        written=True,
        members=names("rgb_to_yiq yiq_to_rgb rgb_to_hls hls_to_rgb rgb_to_hsv hsv_to_rgb"),
    ),
    ModuleAudit(
        name="contextlib",
        written=True,
        members=names(
            "contextmanager asynccontextmanager suppress nullcontext closing aclosing ExitStack AsyncExitStack "
            "ContextDecorator AsyncContextDecorator AbstractContextManager AbstractAsyncContextManager "
            "redirect_stdout redirect_stderr"
        ),
        note="chdir moves the process",
    ),
    ModuleAudit(
        name="dataclasses",
        written=True,
        members=names(
            "asdict astuple dataclass field fields is_dataclass make_dataclass replace KW_ONLY InitVar MISSING Field "
            "FrozenInstanceError"
        ),
        note="fields are names before they are written into source; those of the host's objects are read through the "
        "gates",
    ),
    ModuleAudit(name="fnmatch", written=True, members=names("fnmatch fnmatchcase filter filterfalse translate")),
    ModuleAudit(
        name="functools",
        written=True,
        members=names(
            "cache cached_property cmp_to_key lru_cache partial partialmethod reduce singledispatch "
            "singledispatchmethod total_ordering update_wrapper wraps WRAPPER_ASSIGNMENTS WRAPPER_UPDATES"
        ),
        types=(
            TypeAudit(type=functools.partial, constructable=False),
            audit(type(functools.lru_cache(lambda: None)), constructable=False),
            TypeAudit(type=type(functools.cmp_to_key(lambda a, b: 0)), constructable=False),
            audit(vars(functools)["_CacheInfo"], constructable=False),
        ),
    ),
    ModuleAudit(name="graphlib", written=True, members=names("TopologicalSorter CycleError")),
    ModuleAudit(name="hmac", written=True, members=names("new compare_digest digest HMAC")),
    ModuleAudit(name="html", written=True, members=names("escape unescape"), submodules=names("parser")),
    ModuleAudit(
        name="ipaddress",
        written=True,
        members=names(
            "ip_address ip_network ip_interface IPv4Address IPv6Address IPv4Network IPv6Network IPv4Interface "
            "IPv6Interface AddressValueError NetmaskValueError summarize_address_range collapse_addresses "
            "get_mixed_type_key v4_int_to_packed v6_int_to_packed"
        ),
        types=tuple(
            audit(getattr(ipaddress, f"IPv{version}{kind}"), constructable=False)
            for version in (4, 6)
            for kind in ("Address", "Network", "Interface")
        ),
        note="those that the host hands over are of the program's own classes",
    ),
    ModuleAudit(
        name="logging",
        written=True,
        members=names(
            "CRITICAL ERROR WARNING WARN INFO DEBUG NOTSET FATAL debug info warning warn error exception critical log "
            "getLogger getLevelName getLevelNamesMapping addLevelName basicConfig disable Logger LoggerAdapter Handler "
            "LogRecord StreamHandler NullHandler Formatter BufferingFormatter Filter makeLogRecord"
        ),
        note="loggers of the session's own, that write to its outputs: no files, and no sockets",
    ),
    ModuleAudit(
        name="shlex",
        written=True,
        members=names("shlex split quote join"),
        note="words of texts and of streams in memory: no files",
    ),
    ModuleAudit(
        name="string",
        written=True,
        members=names(
            "Formatter Template ascii_letters ascii_lowercase ascii_uppercase capwords digits hexdigits octdigits "
            "printable punctuation whitespace"
        ),
        note="Formatter reads no attributes",
    ),
    ModuleAudit(name="textwrap", written=True, members=names("TextWrapper dedent fill indent shorten wrap")),
    ModuleAudit(
        name="urllib.parse",
        written=True,
        members=_RESULTS
        | names(
            "urlparse urlunparse urljoin urldefrag urlsplit urlunsplit urlencode parse_qs parse_qsl quote quote_plus "
            "quote_from_bytes unquote unquote_plus unquote_to_bytes"
        ),
        types=tuple(
            TypeAudit(
                type=getattr(urllib.parse, name),
                reads=_PARTS | frozenset(getattr(urllib.parse, name)._fields),
                statics=names("_fields _make"),
                constructable=False,
            )
            for name in sorted(_RESULTS)
        ),
        note="results that the host hands over are of the program's own classes",
    ),
)
