"""Values of the host's on their way in: pickled here, where they are trusted, and unpickled inside."""

from __future__ import annotations

import pickle

from cellblock.errors import UnpicklableError
from cellblock.values.forms import BESIDE_BYTES, Buffer
from cellblock.wire.frames import MAX_FRAME_BYTES
from cellblock.wire.messages import Bind


def pickled(name: str, value: object) -> Bind:
    """The request to bind a name to a copy of a value. Its buffers but the first are memory of the value's."""
    large: list[Buffer] = []

    def is_small(buffer: pickle.PickleBuffer) -> bool:
        raw = buffer.raw()
        if len(raw) < BESIDE_BYTES:
            return True
        large.append(raw)
        return False

    try:
        data = pickle.dumps(value, protocol=5, buffer_callback=is_small)
    except Exception as error:  # pickling runs the value's own code
        raise UnpicklableError(
            f"{name}: {type(value).__name__} cannot be copied into the session: {error}",
            hint="give it as plain data, or make it inside the session",
        ) from error
    return Bind(name=name, buffers=(data, *large))


def require_sendable(request: Bind, *, had_room: bool) -> None:
    """Raise for a value that is more than one message takes. Without room in the session it had to be in one."""
    size = sum(map(len, request.buffers))
    if size > MAX_FRAME_BYTES:
        what, most = f"{request.name}: {size / 2**20:,.0f} MB", MAX_FRAME_BYTES >> 20
        if had_room:
            raise UnpicklableError(
                f"{what} are more than the {most} MB that can be sent at once",
                hint="write it to a file with session.files.write and load it inside",
            )
        raise UnpicklableError(
            f"{what} do not fit into the session's memory",
            hint="raise ExecutionLimits(max_memory_mb=…), or write it to a file with session.files.write",
        )
