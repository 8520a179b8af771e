"""A web service: each user has named sessions, which outlive requests and restarts.

    uvicorn fastapi_service:app        # serve it
    python fastapi_service.py          # or send it four requests, without a network

Needs `pip install cellblock fastapi uvicorn`, and `httpx2` for the requests of the second command.
"""

import os
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import FastAPI, Header, HTTPException
from pydantic import BaseModel

from cellblock import Busy, CellblockError, ExecutionLimits, SessionPool

STORE = os.environ.get("STORE") or f"sqlite:///{tempfile.mkdtemp()}/cells.db"
LIMITS = ExecutionLimits(timeout_seconds=10)


class Code(BaseModel):
    """The body of a request."""

    source: str


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    async with SessionPool(STORE, max_sessions=50, max_per_user=5, limits=LIMITS) as app.state.pool:
        yield


app = FastAPI(lifespan=lifespan)


@app.post("/sessions/{name}/cells")
async def run(name: str, code: Code, x_user: Annotated[str, Header()]) -> dict[str, object]:
    """Run a cell. In your service the user comes from your authentication, not from a header."""
    try:
        async with app.state.pool.session(name, user=x_user) as session:
            cell = await session.run(code.source)
    except Busy as error:
        raise HTTPException(503, str(error), {"Retry-After": f"{error.retry_after:.0f}"}) from error
    except CellblockError as error:
        raise HTTPException(400, str(error)) from error
    return {"ok": cell.ok, "text": cell.text}


if __name__ == "__main__":
    from fastapi.testclient import TestClient

    with TestClient(app) as client:
        for user, source in [("ana", "x = 6 * 7"), ("ana", "x"), ("bob", "x"), ("ana", "open('/etc/shadow')")]:
            answer = client.post("/sessions/notes/cells", json={"source": source}, headers={"X-User": user}).json()
            print(f"{user}: {source!r} -> ok={answer['ok']} {answer['text'].strip().splitlines()[-1:]}")
#> ana: 'x = 6 * 7' -> ok=True []
#> ana: 'x' -> ok=True ['42']
#> bob: 'x' -> ok=False ["NameError: name 'x' is not defined"]
#> ana: "open('/etc/shadow')" -> ok=False ["hint: cells see their own session's files: look with os.listdir()"]
