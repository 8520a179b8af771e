"""Two versions of a tree made one by what each changed since their base; files, with what must stand together."""

from __future__ import annotations

import operator
from collections import Counter, defaultdict
from collections.abc import Callable, Set
from typing import Any, TypeAlias

from cellblock.store.address import canonical

Tree: TypeAlias = dict[str, Any]
"""Rows by their keys: names, groups, or files by their paths."""
_ROOT = ""


def three_way(
    base: Tree,
    first: Tree,
    second: Tree,
    unsettled: Set[str],
    is_same: Callable[[Any, Any], bool] = operator.eq,
) -> tuple[Tree, set[str]]:
    """The first with what the second alone changed, and the keys that both did, at which the first's is kept.

    Keys that are `unsettled` have no row in the base: both changed these, unless they are the same.
    """
    merged, conflicts = dict(first), set()
    for key in {**base, **first, **second}:
        before, mine, theirs = base.get(key), first.get(key), second.get(key)
        if is_same(mine, theirs):
            continue
        if key in unsettled:
            conflicts.add(key)
        elif theirs == before:
            continue
        elif mine != before and not is_same(before, mine):
            if not is_same(before, theirs):
                conflicts.add(key)
        else:
            put(merged, key, theirs)
    return merged, conflicts


def put(tree: Tree, key: str, row: Any) -> None:
    """Have a key hold a row, or be gone where that is None."""
    if row is None:
        tree.pop(key, None)
    else:
        tree[key] = row


def merge_files(base: Tree, first: Tree, second: Tree, unsettled: Set[str]) -> tuple[Tree, set[str]]:
    """As `three_way`, by paths. A path that cannot stand in what else is there is a conflict, too.

    So is a file whose directory the other version removed, and one of several names of one file of which each version
    has another content. The first's is kept, with the directories that it is in.
    """
    merged, conflicts = three_way(base, first, second, unsettled, _is_same)
    links = _Links()
    astray = [path for key, row in merged.items() for path in links.torn_by(key, row)]
    below = defaultdict[str, list[str]](list)
    for path in sorted({**merged, **first}):  # a directory comes before what is in it
        below[_directory(path)].append(path)
    outside = {_ROOT: False}
    for path in sorted(merged):
        parent = _directory(path)
        outside[path] = outside.get(parent, True) or not (parent == _ROOT or _is_directory(merged[parent]))
        if outside[path]:
            astray.append(path)
    settled, restored = set[str](), {_ROOT}
    while astray:
        path = astray.pop()
        settled.add(path)
        while path not in restored:  # else all that it is in was restored, too
            restored.add(path)
            before, row = merged.get(path), first.get(path)
            if before != row:
                put(merged, path, row)
                links.let_go(path, before)
                astray += links.torn_by(path, row)
                if not _is_directory(row):
                    astray += [one for one in below[path] if one in merged and one not in settled]
            path = _directory(path)
    return merged, conflicts | settled


class _Links:
    """The names of each file that has several, and how many rows there are of each content."""

    def __init__(self) -> None:
        self._contents = defaultdict[str, Counter[bytes]](Counter)
        self._whole = defaultdict[str, set[str]](set)
        """Names of which nobody was told that they are torn."""

    def torn_by(self, path: str, row: Any) -> Set[str]:
        """Take a path's row up; the names, so far not told, of one file that do not have all the same content by it."""
        if not row or not row["same"]:
            return set()
        contents, names = self._contents[row["same"]], self._whole[row["same"]]
        contents[canonical(row)] += 1
        names.add(path)
        return self._whole.pop(row["same"]) if len(contents) > 1 else set()

    def let_go(self, path: str, row: Any) -> None:
        """The path has this row no more."""
        if row and row["same"]:
            contents, content = self._contents[row["same"]], canonical(row)
            contents[content] -= 1
            contents += Counter()  # which drops what is at 0
            self._whole[row["same"]].discard(path)


def _is_same(before: Any, after: Any) -> bool:
    """True if two rows are of one file: when a directory was last changed tells only that something in it was."""
    if before and after and before["kind"] == after["kind"] == "directory":
        return bool(before["mode"] == after["mode"])
    return bool(before == after)


def _is_directory(row: Any) -> bool:
    return bool(row) and row["kind"] == "directory"


def _directory(path: str) -> str:
    """The directory that a path is in; `_ROOT` for those that every session has."""
    above = path.rpartition("/")[0]
    return above if "/" in above else _ROOT
