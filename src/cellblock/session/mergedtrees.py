"""Two versions of a tree made one by what each changed since their base; files, with what must stand together."""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Callable, Iterator, Set
from typing import Any, TypeAlias

Tree: TypeAlias = dict[str, Any]
"""Rows by their keys: names, groups, or files by their paths."""


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
    settled: set[str] = set()
    while astray := {*_orphans(merged), *_torn(merged)} - settled:
        settled |= astray
        for one in {one for path in astray for one in (path, *_above(path))}:
            put(merged, one, first.get(one))
    return merged, conflicts | settled


def _is_same(before: Any, after: Any) -> bool:
    """True if two rows are of one file: when a directory was last changed tells only that something in it was."""
    if before and after and before["kind"] == after["kind"] == "directory":
        return bool(before["mode"] == after["mode"])
    return bool(before == after)


def _orphans(files: Tree) -> Iterator[str]:
    """Paths in what is no directory."""
    for path in files:
        if any(files.get(above, {}).get("kind") != "directory" for above in _above(path)):
            yield path


def _torn(files: Tree) -> Iterator[str]:
    """Paths that are names of one file, and would not all have its content."""
    names = defaultdict(list)
    for path, row in files.items():
        if row["same"]:
            names[row["same"]].append(path)
    for paths in names.values():
        if any(files[path] != files[paths[0]] for path in paths):
            yield from paths


def _above(path: str) -> Iterator[str]:
    """The directories that a path is in, but for the root that every session has."""
    parts = path.split("/")
    return ("/".join(parts[:count]) for count in range(2, len(parts)))
