"""Runs in a mount namespace of its own: a store on a disk that is full, and then read-only; run by `test_disk`.

unshare --map-root-user --mount python small_disk.py WHAT DIRECTORY, with one of the words at the end of this file
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable

from cellblock.errors import StoreError
from cellblock.store import HeldSession, Store, blobs, open_store

_READ_ONLY, _REMOUNT = 1, 32


def mount(directory: str, options: str) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "cells", directory], check=True)


def remount(directory: str, *, options: str = "", read_only: bool = False) -> None:
    """By the system call: mount(8) repeats the options it sees, with owners that mean nothing in this namespace."""
    flags = _REMOUNT | (_READ_ONLY if read_only else 0)
    if ctypes.CDLL(None, use_errno=True).mount(None, directory.encode(), None, flags, options.encode() or None):
        raise OSError(ctypes.get_errno(), "remount")


def refused(call: Callable[[], object], *words: str) -> None:
    """The call must be refused in words that say why, and no other way."""
    told = said(call)
    assert any(word in told for word in words), told


def said(call: Callable[[], object]) -> str:
    """What the store says when it refuses a call; "" where it does not."""
    try:
        call()
    except StoreError as error:
        return str(error)
    return ""


def cell(held: HeldSession, number: int, data: bytes) -> str:
    head = held.head().commit
    noted = held.append({"cell": number})
    with held.batch() as batch:
        root = None if head is None else held.resolve(head).trees["names"]
        root = batch.tree(root, {f"n{number}": {"data": blobs(batch.put(data))}})
        return batch.commit(kind="cell", number=number, trees={"names": root}, entries=[noted]).id


def fill(held: HeldSession) -> list[str]:
    """Commit until the disk is full: what was acknowledged."""
    done: list[str] = []
    while not (told := said(lambda: done.append(cell(held, len(done), os.urandom(100_000))))):
        pass
    assert "disk is full" in told or "No space left" in told, told
    return done


def whole(store: Store, done: list[str], more: int = 0) -> None:
    session = store.read("ana", "q3")
    assert [one.id for one in session.log()][::-1][: len(done)] == done
    assert len(session.tree(session.resolve("HEAD").trees["names"])) == len(done) + more
    report = store.verify()
    assert report.ok, report


def full(directory: str, objects: str = "") -> None:
    mount(directory, "size=3m")
    url = f"sqlite:///{directory}/cells.db{objects}"
    with open_store(url) as store:
        held = store.hold("ana", "q3")
        done = fill(held)
        assert len(done) > 3
        while not (told := said(lambda: held.append({"text": "x" * 3000}))):
            pass  # what little is left is used up as well
        assert "disk is full" in told, told
        whole(store, done)
        refused(lambda: open_store(f"sqlite:///{directory}/other.db"), "disk is full")
        remount(directory, options="size=64m")
        held.trim(entry.number for entry in held.journal())
        done.append(cell(held, len(done), b"after"))
        whole(store, done)
        held.release()
        store.gc(grace_seconds=0)
        whole(store, done)
    with open_store(url) as store:
        whole(store, done)


def too_large(directory: str, sizes: list[int], objects: str = "") -> None:
    """A step that the disk cannot take leaves room to others, in this process and in new ones."""
    mount(directory, "size=6m")
    url = f"sqlite:///{directory}/cells.db{objects}"
    with open_store(url) as store:
        ana, bob = store.hold("ana", "q3"), store.hold("bob", "q3")
        done = [cell(ana, 0, b"x" * 100)]
        for number in range(3):  # as a session tries again

            def step() -> None:
                with ana.batch() as batch:
                    for size in sizes:
                        batch.put(os.urandom(size))

            refused(step, "disk is full", "No space left")
            cell(bob, number, b"y" * 100)
            done.append(cell(ana, len(done), b"x" * 100))
        whole(store, done)
        ana.release()
        bob.release()
        assert store.gc(grace_seconds=0).strays == 0
        whole(store, done)
    assert not os.path.exists(f"{directory}/cells.db-wal")
    with open_store(url) as store:
        whole(store, done)
        cell(store.hold("bob", "q3"), 3, b"y" * 100)


def read_only(directory: str, *, crashed: bool) -> None:
    mount(directory, "size=16m")
    url = f"sqlite:///{directory}/cells.db"
    pid = os.fork()
    if pid == 0:
        store = open_store(url)
        held = store.hold("ana", "q3")
        for number in range(3):
            cell(held, number, b"x" * 100)
        if not crashed:
            held.release()
            store.close()
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(pid, 0)
    assert os.path.exists(f"{directory}/cells.db-wal") is crashed
    remount(directory, read_only=True)
    with open_store(url) as store:
        session = store.read("ana", "q3")
        whole(store, [one.id for one in session.log()][::-1])
        assert len(list(session.log())) == 3
        for call in (
            lambda: store.hold("ana", "q3"),
            lambda: store.hold("ana", "new"),
            lambda: store.delete("ana", "q3"),
            lambda: store.gc(),
        ):
            refused(call, "cannot be written to")
    refused(lambda: open_store(f"sqlite:///{directory}/new.db"), "Read-only file system")


if __name__ == "__main__":
    what, where = sys.argv[1:]
    {
        "full": lambda: full(where),
        "full-objects": lambda: full(where, f"?objects={where}/objects"),
        "large": lambda: too_large(where, [20_000_000]),
        "many": lambda: too_large(where, [300_000] * 60),
        "many-objects": lambda: too_large(where, [300_000] * 60, f"?objects={where}/objects"),
        "read-only": lambda: read_only(where, crashed=False),
        "crashed-read-only": lambda: read_only(where, crashed=True),
    }[what]()
    print("held")
