"""Alternatives to modules that are never granted, or not by themselves."""

from __future__ import annotations

from cellblock.policy import UNTRUSTED

_ISOLATED = 'use trust_level="isolated" without a policy, where code has a process of its own'

_INSTEAD = {
    "os shutil glob tempfile fileinput stat": f"there are no files here: bind the content, or {_ISOLATED}",
    "subprocess signal multiprocessing pty resource": f"nothing can be started here: {_ISOLATED}",
    "threading concurrent _thread": "threads would outlive what ends a cell: use asyncio.gather, or a loop",
    "socket ssl http requests httpx aiohttp ftplib smtplib socketserver": "register a function: policy.fn(fetch)",
    "pickle shelve marshal dbm copyreg": "reading a pickle runs what it names: use json",
    "sqlite3": "databases open files and run queries that nothing ends: register a function: policy.fn(query)",
    "importlib imp runpy pkgutil builtins code codeop zipimport": "use import, of what is granted",
    "ctypes mmap gc site sysconfig platform": f"it reaches into the process: {_ISOLATED}",
    "getopt optparse": "there is no command line: bind the values as names, or give them to argparse",
    "unittest pytest": "use assert",
    "gzip bz2 lzma tarfile zipfile": "zlib takes bytes in memory",
}
_BY_NAME = {name: instead for listed, instead in _INSTEAD.items() for name in listed.split()}


def instead_of(module: str) -> str:
    """Alternative to a module; "" where there is none but a grant."""
    package = module.partition(".")[0]
    trusted = f"Policy(trusted=[{package!r}]) grants it, which guards against mistakes only: else {_ISOLATED}"
    return _BY_NAME.get(package, "" if package in UNTRUSTED else trusted)
