"""A hint in the words of who reads it.

`cell.error.hint` is for who wrote the program around the session: it names arguments and methods. A model that wrote
the cell has none of them, and the command line has options in their place.
"""

from __future__ import annotations

import re

_PROGRAM = re.compile(
    r"ExecutionLimits\(|ExecutionLimits\.|Policy\(|policy\.|network=|trust_level=|walls=|strict=|limits=|timeout=|"
    r"python=|mounts=|session\.[a-z]|session\[|state=|flush\(\)|isolated|the session a tool"
)
"""Advice that only the program around a session can follow."""
_TO_ITS_AUTHOR = re.compile(r"(?:register|open|give|raise|list|install|grant|leave) ")
"""Beginning of advice that is for the author, once what it is about has gone."""
_INSTEAD = (
    ('bind what it asks for to a name before the cell (session["name"] = …)', "write the answer into the code"),
    ("run commands with session.shell(…)", "run commands with subprocess.run"),
    ("the list is ", "what may be reached is "),
)
_OPTIONS = (
    ("raise ExecutionLimits(timeout_seconds=…)", "give --timeout S"),
    ("raise ExecutionLimits(max_memory_mb=…)", "give --memory MB"),
    ('open it with network=["host:port"]', "give --network HOST:PORT"),
    (
        'network=["pypi.org:443", "files.pythonhosted.org:443"] lets',
        "--network pypi.org:443 --network files.pythonhosted.org:443 lets",
    ),
    ('bind what it asks for to a name before the cell (session["name"] = …)', "write the answer into the code"),
    ("run commands with session.shell(…)", "run commands with subprocess.run"),
    ("session.undo()", ":undo"),
    ("network= ", "--network "),
    ("install it there (python=…)", "install it there (--python PATH)"),
    ("of a module of your own (session.files.write, mounts=…)", "of a module of your own (--file, --mount)"),
    ("give it one (session.files.write, mounts=…)", "give it one (--file, --mount)"),
)
_PLACE = re.compile(r'network=\["([^"]{1,300})"\]')


def for_model(hint: str) -> str:
    """Advice for the code that failed; "" for none."""
    for said, instead in _INSTEAD:
        hint = hint.replace(said, instead)
    return "; ".join(filter(None, map(_of_the_code, hint.split("; "))))


def for_command_line(hint: str) -> str:
    """The same advice with options in place of arguments."""
    for said, option in _OPTIONS:
        hint = hint.replace(said, option)
    return _PLACE.sub(r"--network \1", hint)


def _of_the_code(sentence: str) -> str:
    """A sentence "what happened: this, or that" without what only a program's author can do."""
    first, *others = sentence.split(", or ")
    if not any(map(_PROGRAM.search, (first, *others))):
        return sentence
    if _PROGRAM.search(first):
        what, _, _ = first.partition(": ")
        first = "" if _PROGRAM.search(what) or _TO_ITS_AUTHOR.match(what) else what
        others = [one for one in others if not (_PROGRAM.search(one) or _TO_ITS_AUTHOR.match(one))] if not first else []
    else:
        others = [one for one in others if not _PROGRAM.search(one)]
    return ", or ".join(filter(None, (first, *others)))
