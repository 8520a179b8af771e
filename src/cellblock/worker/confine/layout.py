"""Places of things: inside a session, in its template, and which host paths a session may see.

Pure path work; `root` does the mounting.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator

HOME = "/session"
WORKSPACE = HOME + "/workspace"
TMP = HOME + "/tmp"
SHM = HOME + "/shm"
OWN_DATA = HOME + "/data"
STAND = "/etc/session"
"""A directory of the template, of which the session's own directories stand in a branch: walls that the session it was
branched from has put around it name this one."""
DATA = "/data"
"""The session's own, or, where there are any, for mounts that are not to lie in the workspace."""
PACKAGES = TMP + "/.packages"
"""Directory in which pip installs, in a session that can: not in the workspace, whose files are what the session is
about."""
OWN = (WORKSPACE, TMP, SHM, OWN_DATA)

SHORTCUTS = {
    "/workspace": "session/workspace",
    "/tmp": "session/tmp",
    "/var/tmp": "../session/tmp",
    DATA: OWN_DATA[1:],
}
"""Symbolic links of the template that lead into the session's own files."""

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_ETC = (
    "alternatives",
    "ca-certificates.conf",
    "fonts",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "magic",
    "matplotlibrc",
    "mime.types",
    "pki/ca-trust/extracted",
    "pki/tls/certs",
    "protocols",
    "services",
    "ssl/certs",
    "ssl/openssl.cnf",
    "timezone",
)
_PREFIX_PARTS = ("bin", "etc", "include", "lib", "lib32", "lib64", "libexec", "pyvenv.cfg", "share", "ssl")
_PRIVATE = ("/tmp", "/var/tmp", "/session", "/workspace", "/proc", "/dev")


class Exposure:
    """Host paths a session sees read-only at the same place, and symbolic links to make on the way.

    `late` paths lie where a session has files of its own (an environment under /tmp, say) and are put
    into each session after those.
    """

    __slots__ = ("early", "late", "links")

    def __init__(self, early: tuple[str, ...], late: tuple[str, ...], links: tuple[tuple[str, str], ...]) -> None:
        self.early = early
        self.late = late
        self.links = links


def exposure(extra: Iterable[str] = ()) -> Exposure:
    """Host paths that sessions of the running interpreter see: the system, the interpreter, its packages, `extra`.

    Of a prefix only what an installation puts there is taken, so that an environment made in a project's
    root does not bring the project along. Directories that `.pth` files add are not taken either.
    """
    wanted = [*_SYSTEM, *("/etc/" + name for name in _ETC), *_python(), *extra]
    reals: set[str] = set()
    links: dict[str, str] = {}
    for path in wanted:
        real = _resolve(path, links)
        if real is not None and os.path.lexists(real):
            reals.add(real)
    minimal = tuple(_outermost(reals))
    early = tuple(path for path in minimal if not _inside(path, _PRIVATE))
    late = tuple(path for path in minimal if _inside(path, _PRIVATE))
    kept = {link: target for link, target in links.items() if not _inside(link, (*minimal, *_PRIVATE))}
    return Exposure(early, late, tuple(sorted(kept.items())))


def _python() -> Iterator[str]:
    for prefix in {sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix, *_environment()}:
        if prefix.startswith("/nix/store/"):
            yield "/nix/store"
        for part in _PREFIX_PARTS:
            yield os.path.join(prefix, part)
    yield sys.executable


def _environment() -> Iterator[str]:
    """The prefix of the virtual environment that the interpreter is of; `site` knows it, where it is loaded."""
    programs = os.path.dirname(os.path.abspath(sys.executable))
    prefix = os.path.dirname(programs)
    if any(os.path.isfile(os.path.join(directory, "pyvenv.cfg")) for directory in (programs, prefix)):
        yield prefix


def _resolve(path: str, links: dict[str, str]) -> str | None:
    """Follow a path's symbolic links one by one, noting each in `links`; None for a broken or endless chain."""
    done, todo = "/", [part for part in path.split("/") if part]
    for _ in range(200):
        if not todo:
            return done
        part = todo.pop(0)
        if part == ".":
            continue
        if part == "..":
            done = os.path.dirname(done)
            continue
        here = os.path.join(done, part)
        if not os.path.islink(here):
            done = here
            continue
        target = os.readlink(here)
        links[here] = target
        if target.startswith("/"):
            done = "/"
        todo = [piece for piece in target.split("/") if piece] + todo
    return None


def _outermost(paths: Iterable[str]) -> Iterator[str]:
    taken: list[str] = []
    for path in sorted(paths):
        if not _inside(path, taken):
            taken.append(path)
            yield path


def _inside(path: str, roots: Iterable[str]) -> bool:
    return any(path == root or path.startswith(root + "/") for root in roots)
