"""Host operations on a session between its cells, in a form that can be kept and done again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from cellblock.cell import Lost
from cellblock.errors import UnpicklableError
from cellblock.executors.protocol import FileVersion, Handed, Kernel
from cellblock.values import portable
from cellblock.wire.frames import Buffer
from cellblock.wire.messages import Bind, Clear, Run

_MOST_SAID = 500
_MOST_TOLD = 200
ASIDE = "aside"
_FILES = "files"
FORGET: Final = "forget"


@dataclass(frozen=True, slots=True)
class HostStep:
    """A value that was bound, pickled by the host or in its portable form; a file written or deleted; a clearing;
    source that was run and is no cell; or cells that were deleted, by their ids.

    `name` is that of the variable or the file, or says what the source is for.
    """

    do: Literal["bind", "hand", "write", "delete", "clear", "run", "forget"]
    name: str = ""
    buffers: tuple[Buffer, ...] = ()

    @property
    def kind(self) -> str:
        """The kind of its commit."""
        return ASIDE if self.do == "run" and not self.name else "host"

    @property
    def clears_files(self) -> bool:
        """True for a clearing that deletes the workspace's files, too."""
        return (self.do, self.name) == ("clear", _FILES)

    @property
    def message(self) -> str:
        """Message for the log."""
        match self.do:
            case "bind" | "hand":
                return f"{self.name} = …"
            case "clear":
                return f"clear {self.name}".rstrip()
            case "run":
                return self.name or b"".join(self.buffers).decode().strip().partition("\n")[0]
        return f"{self.do} {self.name}"

    def request(self, kernel: Kernel) -> Bind | Clear | Run | None:
        """Request that has the kernel do it; None for a file, which `change` is for."""
        match self.do:
            case "bind":
                return Bind(name=self.name, buffers=self.buffers)
            case "hand":
                return kernel.binding(self.name, portable.unpack(self.buffers))
            case "clear":
                return Clear()
            case "run":
                return aside(b"".join(self.buffers).decode())
        return None

    async def change(self, kernel: Kernel, *, again: bool = False) -> FileVersion | None:
        """Carry out the change of a file, or of all; the version that one has. `again`: it may be deleted already."""
        left: list[FileVersion] = []

        def changed() -> None:
            if self.do == "write":
                left.append(kernel.files.write(self.name, b"".join(self.buffers)))
            elif self.clears_files:
                for path in kernel.files.list():
                    kernel.files.delete(path)
            elif not again or kernel.files.version(self.name) is not None:
                kernel.files.delete(self.name)

        await kernel.change_files(changed)
        return left[0] if left else None


def is_own(kind: str, during: object) -> bool:
    """True if a step, by the kind of its commit, can be undone by itself: what was run aside, or was done by the host
    `during` another step, belongs to the step before.
    """
    return kind != ASIDE and not during


def not_done_again(step: HostStep, why: str) -> Lost:
    """The loss of what the host had done, and cannot be done again."""
    name = "what was run aside" if step.kind == ASIDE else step.name or step.do
    remedy = "" if step.kind == ASIDE else "do it again"
    return Lost(name=name, type="", reason=f"done again, it failed: {why[:_MOST_TOLD]}", remedy=remedy)


def aside(source: str) -> Run:
    """The request that runs source which is no cell."""
    return Run(source=source, filename="<aside>", max_text=_MOST_SAID)


CLEAR_FILES = HostStep("clear", _FILES)


def host_step(request: Bind | Clear) -> HostStep:
    """A request as a step that can be done again; `UnpicklableError` where the value can only be handed over live."""
    if isinstance(request, Clear):
        return HostStep("clear")
    if not isinstance(request, Handed):
        return HostStep("bind", request.name, request.buffers)
    try:
        return HostStep("hand", request.name, tuple(portable.pack(portable.encode(request.value))))
    except portable.NotPortable as error:
        raise UnpicklableError(
            f"{request.name}: {type(request.value).__name__} cannot be kept in a store: {error}",
            hint="give it as plain data, or register its class by a policy and have a cell make it",
        ) from None
