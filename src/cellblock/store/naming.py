"""Names of users, sessions, branches and tags: visible, in one spelling, in one alphabet, not long.

Names are parameters of statements and never part of a path or a command, so this is for people: two names that look
alike are one name, or the second is refused.
"""

from __future__ import annotations

import re
import unicodedata

from cellblock.errors import StoreError

_LONGEST = 200
_UNSEEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
"""Controls, marks of direction and joining, halves of pairs, characters nobody has defined, ends of lines."""
_ALIKE = {"LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "COPTIC", "CHEROKEE", "LISU"}
"""Alphabets whose letters look like one another's."""
_REF = re.compile(r"[^\s~^:?*\[\]\\]+")


def checked_name(name: str, what: str) -> str:
    """A user's or session's name as it is kept. StoreError: no name, and why."""
    if not isinstance(name, str):
        raise TypeError(f"the name of a {what} must be a str, not {type(name).__name__}")
    if not name or len(name) > _LONGEST:
        raise StoreError(f"the name of a {what} must have 1 to {_LONGEST} characters, not {len(name)}")
    for place, one in enumerate(name):
        if unicodedata.category(one) in _UNSEEN:
            raise StoreError(f"the {what} name {name[:40]!a} has a character that cannot be seen, at {place}")
    plain = unicodedata.normalize("NFKC", name)
    if plain != unicodedata.normalize("NFC", name):
        raise StoreError(f"the {what} name {name!a} has characters that stand for others", hint=f"say {plain!r}")
    if plain != " ".join(plain.split()):
        raise StoreError(f"the {what} name {plain!r} begins or ends with a space, or has two together")
    alphabets = _ALIKE & {unicodedata.name(one, "").split(" ")[0] for one in plain if one.isalpha()}
    if len(alphabets) > 1:
        mixed = " and ".join(sorted(one.capitalize() for one in alphabets))
        raise StoreError(f"the {what} name {name!a} mixes {mixed} letters that look alike", hint="use one alphabet")
    return plain


def checked_ref(name: str, what: str) -> str:
    """A branch's or tag's name as it is kept. StoreError: no name, and why."""
    name = checked_name(name, what)
    if name == "HEAD" or name.startswith(("-", "sha256-")) or not _REF.fullmatch(name):
        raise StoreError(
            f"{name!r} cannot be the name of a {what}",
            hint="no spaces, none of ~ ^ : ? * [ ] \\, and neither HEAD nor an address",
        )
    return name
