"""Network hints of failed cells: the host that was wanted, and the remedy.

Told by what libraries, programs and the door say, which is text from inside: it decides which hint is given, and no
word of it is in one. A place that a hint names is of the door's own record.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from cellblock.network import PORT

_MOST_SHOWN = 5
_LONGEST = 20_000
"""Characters that are looked at: of both ends of an error, and of the end of what a command printed."""

_NO_NAME = r"gaierror|name resolution|Name or service not known|Failed to resolve|[Cc]ould not resolve"
_NO_ROUTE = r"\[Errno (?:101|113)\]|Network is unreachable|No route to host"
_ASKED = re.compile(f"{_NO_NAME}|{_NO_ROUTE}")
_REFUSED = re.compile(r"\[Errno 111\]|[Cc]onnection refused")
_WALLED = re.compile(r"\[Errno 13\] Permission denied(?!: ['\"])|[Cc]ouldn't connect|[Ff]ailed to connect")
"""Of a file the error names it."""
_CONNECTS = re.compile(r"connect|urlopen|getaddrinfo", re.IGNORECASE)
_LISTENS = re.compile(r"\.bind\(|\.listen\(|create_server|start_server|bind\(sa\)|server_bind")
_PIP = re.compile(r"No matching distribution found|Could not find a version that satisfies")
_READ_ONLY_PIP = re.compile(r"Could not install packages due to an OSError: \[Errno 30\]")
_UNLISTED = " is not in the network= list of this session"
_NOT_PUBLIC = re.compile(r"leads to (?:a|an) [a-z' -]{4,40}, and only a public one is connected to")
_USED_UP = re.compile(r"has used up ExecutionLimits\.max_network_mb")
_SHUT = re.compile(r"holds private data: its network is closed for good")
_TUNNEL = re.compile(r"tunnel failed, response 403|HTTP code 403 from proxy")
"""Message of curl, and so of git."""
_OUTWARD = "reaches outside, which a session that holds private data cannot"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """Network of a session: `listed`, or nothing; or why it is `private`, and since which cell.

    `door`: whether its level and walls can have a door at all. `unlisted`: the destination that the door has refused
    last to the cell, for not being listed.
    """

    listed: tuple[str, ...] = ()
    private: str = ""
    since: int = 0
    door: bool = True
    unlisted: str = ""


def hint(said: str, printed: str, reach: Reach) -> str:
    """The remedy; "" for a failure that has nothing to do with the network.

    `said` is the error with its traceback, `printed` what a command wrote, where it was one that failed.
    """
    if len(said) > 2 * _LONGEST:
        said = f"{said[:_LONGEST]}\n{said[-_LONGEST:]}"
    whole = f"{said}\n{printed[-_LONGEST:]}"
    if _READ_ONLY_PIP.search(whole):
        return "what the interpreter has cannot be replaced: pip install --ignore-installed puts it beside"
    if reach.private and _OUTWARD in said:
        return f"{_since(reach)}; another session, without these data, can call it"
    wants_package = bool(_PIP.search(whole))
    if not (wants_package or _SHUT.search(whole) or (reach.private and _TUNNEL.search(whole)) or _wants_out(whole)):
        return _of_the_door(whole, reach)
    if reach.private:
        return f"{_since(reach)}: it has no network, for good; another session, without these data, can have one"
    if not reach.door:
        return "there is no network at this level: give the session a tool that asks it, or open it at isolated"
    if not reach.listed:
        return _without(wants_package, is_own=bool(_REFUSED.search(whole)))
    if wants_package:
        return _of_the_door(whole, reach)
    if _LISTENS.search(said) and not _ASKED.search(whole):
        return "a session with a network= list listens on no port: one without it may, for itself"
    return (
        f"only what goes through the session's door gets out: give the library the proxy http://127.0.0.1:{PORT}, "
        f"which http_proxy and https_proxy name, and the host's name as it is; the list is {_shown(reach)}"
    )


def in_a_line(reach: Reach) -> str:
    """One line for a model about the network."""
    if reach.private or not reach.listed:
        return "There is no network."
    return f"Of the network there is only {', '.join(reach.listed)}, by HTTP(S)."


def is_refused(message: str) -> bool:
    """True if an error is that of a function which a private session cannot call."""
    return message.endswith(_OUTWARD)


def _wants_out(whole: str) -> bool:
    if _ASKED.search(whole) or _REFUSED.search(whole):
        return True
    return bool(_WALLED.search(whole) and (_CONNECTS.search(whole) or _LISTENS.search(whole)))


def _of_the_door(whole: str, reach: Reach) -> str:
    """Hint for the door's own refusals."""
    if reach.unlisted and _UNLISTED in whole:
        return f'list it, if it may be reached: network=["{reach.unlisted}"]; the list is {_shown(reach)}'
    if _NOT_PUBLIC.search(whole):
        return "a name that leads to such an address is refused: where that is meant, list the address itself"
    if _USED_UP.search(whole):
        return "raise ExecutionLimits(max_network_mb=…)"
    if _TUNNEL.search(whole):
        return f"the session's door refused it: only what network= lists may be reached, which is {_shown(reach)}"
    return ""


def _without(wants_package: bool, *, is_own: bool) -> str:
    if wants_package:
        return (
            'the session has no network: network=["pypi.org:443", "files.pythonhosted.org:443"] lets pip reach PyPI, '
            "or install it on the host"
        )
    own = " (127.0.0.1 inside is the session's own)" if is_own else ""
    return f'the session has no network{own}: open it with network=["host:port"], or give it what it needs as a file'


def _since(reach: Reach) -> str:
    when = f"since cell {reach.since}" if reach.since else "from the start"
    return f"the session is private {when} ({reach.private})"


def _shown(reach: Reach) -> str:
    more = ", …" if len(reach.listed) > _MOST_SHOWN else ""
    return ", ".join(reach.listed[:_MOST_SHOWN]) + more if reach.listed else "empty"
