"""Whether the guard held: what in the outcome of an attempt shows that it did not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cellblock.attacks.language.programs import Program

_ENDS = ("completed", "raised", "refused", "timeout", "memory")


def reached(found: Mapping[str, object]) -> Iterator[str]:
    """What an attempt got at, or changed, of the host's."""
    if found["canary"] is not False:
        yield "a secret of the host came out"
    if found["changed"] != []:
        yield f"the host was changed: {found['changed']!r:.300}"


def failed(attempt: Program, found: Mapping[str, object]) -> Iterator[str]:
    """What else is not as it must be: it was not ended, or another rule refused it than the one that it is for."""
    if found["ended"] not in _ENDS:
        yield f"it ended so: {found['ended']}"
        return
    if found["left"] != 0:
        yield f"{found['left']} threads still ran its code afterwards"
    for key, what in (("refused", found["rules"]), ("ended", [found["ended"]])):
        if key in attempt.keys:
            said = attempt.keys[key].split(", ")
            if what != said and not (key == "ended" and found["ended"] in said):
                yield f"{key}: {what}, where {said} was expected"


def wall_of(attempt: Program) -> str:
    """What answers it."""
    if "refused" in attempt.keys:
        return f"the guard's rule {attempt.keys['refused']}"
    return "the limits" if "ended" in attempt.keys else "nothing has to: it is harmless behind the guard"
