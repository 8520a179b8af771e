"""Sessions for tests: opening one takes some ten milliseconds once its family runs, so each test has its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cellblock import ExecutionLimits, Session, Versioned


@pytest.fixture
def open_session() -> Iterator[Callable[..., Session]]:
    """Opens sessions that are closed with the test. Cells may take 20 s unless `limits` says otherwise."""
    opened: list[Session] = []

    def open_one(**options: object) -> Session:
        options.setdefault("limits", ExecutionLimits(timeout_seconds=20))
        session = Session(**options)  # type: ignore[arg-type]
        opened.append(session)
        return session

    yield open_one
    for session in opened:
        session.close()


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A store of the test's own."""
    return f"sqlite:///{tmp_path}/cells.db"


@pytest.fixture
def opened(url: str) -> Iterator[Callable[..., Session]]:
    """Opens sessions of the store `url`, and closes them."""
    sessions: list[Session] = []

    def open_one(name: str = "one", **options: object) -> Session:
        sessions.append(Session(name, state=Versioned(url), **options))  # type: ignore[arg-type]
        return sessions[-1]

    yield open_one
    for session in sessions:
        session.close()


@pytest.fixture
def session(open_session: Callable[..., Session]) -> Session:
    """A session with no preloaded packages and a limit of 20 s."""
    return open_session()


@pytest.fixture
def hasty(open_session: Callable[..., Session]) -> Session:
    """A session whose cells time out after 0.3 s, with a grace of 0.3 s."""
    return open_session(limits=ExecutionLimits(timeout_seconds=0.3, interrupt_grace_seconds=0.3))
