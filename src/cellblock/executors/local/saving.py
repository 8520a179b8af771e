"""A state of a local session that is being saved: written out in the session's thread, before anything else runs."""

from __future__ import annotations

from collections.abc import Callable

from cellblock.cell import Lost
from cellblock.errors import CaptureFailed
from cellblock.executors.local.runner import Runner
from cellblock.executors.suspects import Suspects
from cellblock.hosting import to_thread
from cellblock.snapshots import Snapshot, address_of
from cellblock.worker.keeping import keep


class Captured:
    """Chunks and the snapshot that they belong to."""

    def __init__(self, runner: Runner, chunks: dict[str, bytes], snapshot: Snapshot) -> None:
        self._runner, self._chunks, self._snapshot = runner, chunks, snapshot
        self._has: set[str] | None = None
        self._closed = False

    @classmethod
    async def of(cls, runner: Runner) -> Captured:
        """The state after the last request that a runner took."""
        return cls(runner, *await _written(runner))

    async def begin(self, previous: Snapshot | None, suspects: Suspects | None = None) -> None:
        if self._has is not None or self._closed:
            raise CaptureFailed("it was begun before, or closed", hint="capture again")
        has = set() if previous is None else previous.addresses()
        if not self._snapshot.addresses() <= has | self._chunks.keys():  # what was written last is in no store
            self._runner.written.clear()
            self._chunks, self._snapshot = await _written(self._runner)
        self._has = has

    async def read(self, put: Callable[[bytes], object], take: Callable[[int], object] = int) -> Snapshot:
        if (has := self._has) is None:
            raise CaptureFailed("it was not begun, or closed", hint="begin first, and read once")
        self._has = None

        def read() -> None:
            take(self._snapshot.held())
            for address, data in self._chunks.items():
                if self._closed:
                    raise CaptureFailed("it was closed", hint="capture again")
                if address not in has:
                    put(data)

        await to_thread.run_sync(read)
        return self._snapshot

    async def trial(self) -> tuple[Lost, ...]:
        """See `Capture`. What is saved here is plain data."""
        return ()

    def close(self) -> None:
        self._has, self._closed = None, True


async def _written(runner: Runner) -> tuple[dict[str, bytes], Snapshot]:
    chunks: dict[str, bytes] = {}

    def put(data: bytes) -> str:
        address = address_of(data)
        chunks[address] = data
        return address

    try:
        work = runner.call(lambda: keep(runner.world, put, runner.written))
        return chunks, await to_thread.run_sync(work.result)
    except (MemoryError, RecursionError) as error:
        raise CaptureFailed(f"names cannot be saved: {type(error).__name__}", hint="keep less") from error
