"""Saves each name by itself, by plain pickle: what `saving` does better, until it is there."""

from __future__ import annotations

import base64
import hashlib
import json
import pickle
from collections.abc import Callable, MutableMapping
from typing import Any

from cellblock.snapshots import CHUNK_BYTES


def save(
    namespace: MutableMapping[str, Any],
    *,
    put: Callable[[bytes | memoryview], str],
    index: bytes,
    unchanged: Callable[[int, int], bool],
) -> dict[str, Any]:
    groups, names, lost = [], [], []
    for name, value in list(namespace.items()):
        if type(name) is not str or name.startswith("__"):
            continue
        buffers: list[pickle.PickleBuffer] = []
        try:
            stream = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
        except Exception as error:
            lost.append([name, type(value).__name__, str(error)[:200], "make it again"])
            continue
        key = hashlib.sha256(name.encode()).hexdigest()[:16]
        groups.append(
            {
                "key": key,
                "stream": _cut(memoryview(stream), put),
                "buffers": [[len(one.raw()), _cut(one.raw(), put)] for one in buffers],
                "needs": [],
            }
        )
        names.append([name, key, type(value).__name__, len(stream), repr(value)[:80]])
    return {
        "groups": groups,
        "names": names,
        "lost": lost,
        "declarations": [],
        "ambient": {},
        "index": base64.b64encode(json.dumps(len(names)).encode()).decode(),
    }


def load(
    namespace: MutableMapping[str, Any],
    record: dict[str, Any],
    *,
    get: Callable[[str], bytes | bytearray | memoryview],
    wanted: set[str] | None = None,
) -> list[list[str]]:
    groups = {group["key"]: group for group in record["groups"]}
    lost = []
    for name, key, kind, _, _ in record["names"]:
        if wanted is not None and name not in wanted:
            continue
        group = groups[key]
        try:
            namespace[name] = pickle.loads(
                b"".join(map(get, group["stream"])),
                buffers=[bytearray(b"".join(map(get, chunks))) for _, chunks in group["buffers"]],
            )
        except Exception as error:
            lost.append([name, kind, str(error)[:200], "make it again"])
    return lost


def _cut(data: memoryview, put: Callable[[bytes | memoryview], str]) -> list[str]:
    return [put(data[at : at + CHUNK_BYTES]) for at in range(0, len(data), CHUNK_BYTES)]
