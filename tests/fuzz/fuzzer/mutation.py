"""Changes to a case: of its bytes, of the JSON in them, of the frames in them, of its parts and their order."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Callable, Sequence

from cellblock.wire.frames import PACKET_BYTES, Frame, ProtocolError, packets
from cellblock.wire.frames import _parse as parse_frame
from cellblock.wire.text import PREFIX
from fuzzer.cases import Case
from fuzzer.seeds import NONCE

MAX_PART = 200_000
_NUMBERS = (
    0, 1, -1, 2, 63, 64, 127, 128, 255, 256, 1023, 1024, 65_535, 65_536,
    2**31, 2**32 - 1, 2**53, 2**63 - 1, 2**63, 2**64,
)  # fmt: skip
_ODD: tuple[object, ...] = (
    None, True, False, *_NUMBERS, 0.5, -0.0, 1e308, "", "a", "00", "0x1", "-0x" + "f" * 20, "\ud800", "é", "\u202e",
    "\x1b[2J", "</script><script>x</script>", "<img src=//evil onerror=x>", "javascript:x", "notebook://cell/c1/image/0",
    "\x00", [], {}, [[]], [None] * 5, "x" * 300, "image/png", "text/html", "application/json", "raised", "memory",
    "7ff8000000000000", "<f8", "|O",
)  # fmt: skip
_TAGS = (
    "is", "int", "float", "complex", "text", "bytes", "bytearray", "tuple", "set", "frozenset", "dict", "ints",
    "floats", "range", "slice", "date", "time", "datetime", "timedelta", "timezone", "zone", "decimal", "fraction",
    "uuid", "path", "enum", "record", "opaque", "array", "scalar", "hello", "display", "tool", "finished", "data",
    "mimes", "mark", "number", "failure", "gained", "dropped", "kind", "message", "traceback", "type", "columns",
    "head", "index", "shape",
)  # fmt: skip
_WORDS: tuple[bytes, ...] = (
    *(f'"{tag}":'.encode() for tag in _TAGS), b"{}", b"[]", b"[[", b"]]", b'{"', b'"}', b",", b"null", b"NaN",
    b"1e999", b"\\u0000", b"\\ud800", b"-0", b"9" * 30, b"\x00", b"\xff", b"\r\n", b"\x1b]0;", b"\x1b[", b"\x9b",
    b"<!--", b"]]>", b"-->", b"<svg onload=x>", b"'\">", b"&lt;", b"\xe2\x80\xae", b"\xf3\xa0\x80\xa1",
    PREFIX, NONCE, PREFIX + NONCE + b"M",
    PREFIX + NONCE + b"E" + bytes(8), b"F", b"R", b"\x00", b"\x01", *(struct.pack("<Q", n % 2**64) for n in _NUMBERS),
)  # fmt: skip


class Mutator:
    """Makes cases out of cases. The same seed makes the same ones."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def mutate(self, case: Case, corpus: Sequence[Case]) -> Case:
        """A case a few steps away."""
        parts = list(case)
        for _ in range(self.random.choice((1, 1, 1, 2, 3, 6))):
            if not parts or self.random.random() < 0.15:
                self._rearrange(parts, corpus)
            else:
                at = self.random.randrange(len(parts))
                parts[at] = self._changed(parts[at])[:MAX_PART]
        return tuple(parts[:40])

    def _rearrange(self, parts: list[bytes], corpus: Sequence[Case]) -> None:
        other = self.random.choice(corpus)
        change = self.random.randrange(6)
        if change == 0 and other:
            parts.insert(self.random.randint(0, len(parts)), self.random.choice(other))
        elif change == 1 and parts:
            del parts[self.random.randrange(len(parts))]
        elif change == 2 and parts:
            parts.insert(self.random.randint(0, len(parts)), self.random.choice(parts))
        elif change == 3 and len(parts) > 1:
            self.random.shuffle(parts)
        elif change == 4:
            parts[self.random.randint(0, len(parts)) :] = other
        elif parts:
            at = self.random.randrange(len(parts))
            cut = self.random.randint(0, len(parts[at]))
            parts[at : at + 1] = [parts[at][:cut], parts[at][cut:]]

    def _changed(self, part: bytes) -> bytes:
        for change in self.random.sample((self._json, self._frame), 2):
            if self.random.random() < 0.6 and (changed := change(part)) is not None:
                return changed
        return self._bytes(part)

    # --- bytes

    def _bytes(self, part: bytes) -> bytes:
        pick = self.random
        at = pick.randint(0, len(part))
        end = min(len(part), at + pick.choice((1, 1, 2, 4, 8, 64, 1024)))
        changes: tuple[Callable[[], bytes], ...] = (
            lambda: part[:at] + bytes([pick.randrange(256)]) + part[at + 1 :],
            lambda: (
                part[:at] + bytes([part[at] ^ (1 << pick.randrange(8))]) + part[at + 1 :] if at < len(part) else part
            ),
            lambda: part[:at] + part[end:],
            lambda: part[:at] + part[at:end] * pick.choice((2, 3, 10, 100)) + part[end:],
            lambda: part[:at] + pick.choice(_WORDS) + part[at:],
            lambda: part[:at] + pick.choice(_WORDS) + part[end:],
            lambda: part[:at] + pick.choice(_WORDS) * pick.choice((10, 100, 1000)) + part[at:],
            lambda: part[:at] + pick.randbytes(pick.choice((1, 8, 100))) + part[at:],
            lambda: part[:at],
            lambda: part[at:],
        )
        return pick.choice(changes)()

    # --- JSON

    def _json(self, part: bytes) -> bytes | None:
        starts = [at for at in (part.find(b"{"), part.find(b"[")) if 0 <= at < 40]
        start = min(starts, default=0)
        try:
            tree = json.loads(part[start:])
        except (ValueError, RecursionError):
            return None
        return part[:start] + json.dumps(self._tree(tree, 0), separators=(",", ":")).encode()

    def _tree(self, tree: object, depth: int) -> object:
        pick = self.random
        if depth > 6 or not isinstance(tree, dict | list) or not tree or pick.random() < 0.2:
            return self._node(tree)
        if isinstance(tree, list):
            at = pick.randrange(len(tree))
            return [*tree[:at], self._tree(tree[at], depth + 1), *tree[at + 1 :]]
        name = pick.choice(list(tree))
        if pick.random() < 0.1:
            name, tree = pick.choice(_TAGS), {key: item for key, item in tree.items() if key != name}
        return {**tree, name: self._tree(tree.get(name), depth + 1)}

    def _node(self, node: object) -> object:
        pick = self.random
        change = pick.randrange(9)
        if change == 0:
            return {pick.choice(_TAGS): node}
        if change == 1:
            return [node] * pick.choice((0, 1, 2, 3, 6, 9, 200))
        if change == 2 and isinstance(node, list):
            return node[: pick.randint(0, len(node))] + node[pick.randint(0, len(node)) :]
        if change == 3 and isinstance(node, dict):
            return {**node, pick.choice(_TAGS): pick.choice(_ODD)}
        if change == 4 and isinstance(node, str):
            return self._bytes(node.encode("utf-8", "surrogatepass")).decode("utf-8", "replace")
        if change == 5 and isinstance(node, int):
            return node + pick.choice((-1, 1, 1000, -(2**64)))
        if change == 6:
            for _ in range(pick.choice((2, 30, 65, 70))):
                node = [node] if pick.random() < 0.5 else {pick.choice(_TAGS): node}
            return node
        return pick.choice(_ODD)

    # --- frames

    def _frame(self, part: bytes) -> bytes | None:
        """A frame whose head or buffers were changed, under a prefix that is right, or nearly."""
        at = 1 if part[:1] == b"w" else 0
        if part[at : at + 1] != b"\x01":
            return None
        try:
            frame = parse_frame(part[at + 1 :])
        except ProtocolError:
            return None
        buffers = [bytes(buffer) for buffer in frame.buffers]
        head = frame.head
        if buffers and self.random.random() < 0.4:
            self._rearrange(buffers, [tuple(buffers)])
        else:
            head = self._json(head) or self._bytes(head)
        (packet, *_) = packets(Frame(head[: PACKET_BYTES // 2], tuple(buffers)))
        return part[:at] + bytes(packet)
