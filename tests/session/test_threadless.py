"""Where no thread can be started for a moment: what is told as failed has not been done, and all goes on afterwards."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from cellblock import CellblockError, Session, Versioned
from cellblock.executors.door.door import Door
from cellblock.network import destinations

Refusing = Callable[[str], list[str]]


@pytest.fixture
def refusing(monkeypatch: pytest.MonkeyPatch) -> Refusing:
    """Has the next threads of a name not start, as where a limit of processes is reached: as often as the list says."""
    start, refused = threading.Thread.start, dict[str, list[str]]()

    def starts(thread: threading.Thread) -> None:
        if left := refused.get(thread.name):
            left.pop()
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", starts)
    return lambda name: refused.setdefault(name, [])


def test_function_whose_cell_was_told_that_it_failed_is_not_called_later(refusing: Refusing) -> None:
    sent: list[str] = []

    def mail(to: str) -> str:
        sent.append(to)
        return f"sent to {to}"

    with Session(tools=[mail]) as session:
        refusing("cellblock-tool").append("once")
        cell = session.run(
            "said = []\n"
            "for _ in range(2):\n"
            "    try: said.append(mail('bob'))\n"
            "    except Exception as error: said.append('no thread' in str(error))\n"
            "said"
        )
    assert cell.value == [True, "sent to bob"]
    assert sent == ["bob"]


def test_session_that_could_not_be_opened_is_free_at_once(refusing: Refusing, tmp_path: Path) -> None:
    state = Versioned(f"sqlite:///{tmp_path}/cells.db")
    refusing("cellblock-leases").append("once")
    with pytest.raises(CellblockError, match="thread"):
        Session("notes", state=state)
    with Session("notes", state=state) as session:
        assert session.run("1").value == 1


def test_door_says_why_a_name_is_not_resolved_and_resolves_the_next(refusing: Refusing) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    asked: list[str] = []

    def resolve(host: str, port: int) -> list[str]:
        asked.append(host)
        return ["127.0.0.1"]  # where no client may go

    door = Door(listener, destinations(["example.com:80"]), max_connections=8, max_bytes=10**9, resolve=resolve)

    def answer() -> bytes:
        with socket.create_connection(listener.getsockname(), timeout=60) as client:
            client.sendall(b"CONNECT example.com:80 HTTP/1.1\r\n\r\n")
            return b"".join(iter(lambda: client.recv(4096), b""))

    try:
        refusing("cellblock-door-asks").extend(["once", "again", "and again"])
        for _ in range(3):
            assert b"no thread can be started" in answer()
        assert b"403" in answer()
        assert asked == ["example.com"]
    finally:
        door.close()
