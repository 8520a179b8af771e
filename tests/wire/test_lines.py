"""Descriptions as lines: what is told is read, room is taken before, and no line grows with a session."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from io import BytesIO
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cellblock.wire import filelists, lines
from cellblock.wire.filelists import Told
from cellblock.wire.frames import ProtocolError

NAMES = st.text(st.sampled_from("ab/\udce9\U0001f600"), max_size=6)
TOLD = st.builds(
    Told,
    path=NAMES,
    kind=st.integers(0, 10),
    mode=st.integers(0, 0o777),
    modified_ns=st.integers(-(2**63), 2**63),
    size=st.integers(0, 2**40),
    target=NAMES,
    same=st.integers(0, 10),
    chunks=st.lists(st.just([3, "1", [[0, 1]]]), max_size=250),
)


@pytest.mark.sampled(0)
@given(st.lists(TOLD, max_size=6), st.lists(NAMES, max_size=4), st.lists(NAMES, max_size=4))
@settings(max_examples=100, deadline=None)
def test_files_that_are_told_are_read_and_their_room_given_back(
    rows: list[Told], gone: list[str], missed: list[str]
) -> None:
    first = {one.same: one.chunks for one in reversed(rows) if one.same}
    rows = [replace(one, chunks=first.get(one.same, one.chunks)) for one in rows]
    taken = [0]
    listed = filelists.write({"number": 7}, rows, gone=gone, missed=missed)
    found = list(filelists.read(listed, lambda size: taken.append(taken[-1] + size)))
    assert found == [
        ("number", 7),
        *(("rows", one) for one in rows),
        *(("gone", one) for one in gone),
        *(("missed", one) for one in missed),
    ]
    assert taken[-1] == 0 < max(taken)


def test_path_is_told_by_what_it_has_not_in_common_with_the_one_before() -> None:
    deep = "/".join(["d" * 250] * 14)
    listed = filelists.write({}, (Told(f"{deep}/{n}", 0, 0, 0) for n in range(1000)))
    with open(listed, "rb") as file:
        assert len(file.read()) < 100 * 1000


def test_chunks_of_a_file_are_told_with_the_first_of_its_names() -> None:
    chunks = [[number, str(number), [[0, 1]]] for number in range(1000)]
    listed = filelists.write({}, (Told(f"{n}", 0, 0, 0, same=7, chunks=chunks) for n in range(1000)))
    with open(os.dup(listed), "rb") as file:
        assert len(file.read()) < 200 * 1000
    assert [told.chunks for _, told in filelists.read(listed)] == [chunks] * 1000


@pytest.mark.threat("W7")
def test_long_list_goes_on_on_lines_of_their_own() -> None:
    item = {"many": list(range(100_000)), "few": [1]}
    packed = list(lines.packed([("one", item), ("two", 2)]))
    assert max(map(len, packed)) < 1000
    assert list(lines.read(BytesIO(b"".join(packed)))) == [("one", item), ("two", 2)]


@pytest.mark.threat("W11")
def test_line_is_not_parsed_where_there_is_no_room_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[bytes] = []
    monkeypatch.setattr(lines, "from_json", parsed.append)

    def lack(size: int) -> None:
        raise MemoryError(size)

    with pytest.raises(MemoryError):
        list(lines.read(BytesIO(b'["x",[]]\n'), lack))
    assert parsed == []


@pytest.mark.parametrize(
    "told",
    [
        b"[" * 100_000,
        b'["x",' + b" " * lines.MAX_BYTES + b"1]\n",
        b"{}\n",
        b'["x"]\n',
        b"[1,2]\n",
        b'["+x",[]]\n',
        b'["x",{"y":[]}]\n["+x",[]]\n',
        b'["x",{"y":[]}]\n["+y",1]\n',
        b'["x",{"y":1}]\n["+y",[]]\n',
        b"\xff\n",
    ],
)
@pytest.mark.threat("W7")
def test_line_that_is_not_what_it_should_be_is_refused(told: bytes) -> None:
    with pytest.raises(ProtocolError):
        list(lines.read(BytesIO(told)))


@given(st.recursive(st.none() | st.integers() | st.text(), lambda inner: st.lists(inner, max_size=3), max_leaves=5))
@settings(deadline=None)
def test_any_json_is_read_or_refused(value: Any) -> None:
    try:
        assert list(lines.read(BytesIO(json.dumps(value).encode()))) == [tuple(value)]
    except ProtocolError:
        assert type(value) is not list or len(value) != 2 or type(value[0]) is not str or value[0].startswith("+")
