"""What a scribe may say, when, and how much of it; and what any bytes can do."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cellblock.snapshots import CHUNK_BYTES, Snapshot, address_of
from cellblock.wire import saving
from cellblock.wire.frames import ProtocolError
from cellblock.wire.saving import CHUNK, FAILED, HELLO, INDEX, RECORD, TRIED, WORK, Conversation, Stage

KINDS = (HELLO, WORK, CHUNK, INDEX, RECORD, FAILED, TRIED)
ALLOWED = {
    Stage.MAKING: {HELLO: Stage.WAITING, FAILED: Stage.ENDED},
    Stage.WAITING: {},
    Stage.SAVING: {WORK: Stage.SAVING, CHUNK: Stage.SAVING, INDEX: Stage.INDEXED, FAILED: Stage.ENDED},
    Stage.INDEXED: {RECORD: Stage.TRYING, FAILED: Stage.ENDED},
    Stage.TRYING: {TRIED: Stage.TRYING},
    Stage.ENDED: {},
}
WAYS = {
    Stage.MAKING: (),
    Stage.WAITING: (HELLO,),
    Stage.SAVING: (HELLO, None),
    Stage.INDEXED: (HELLO, None, INDEX),
    Stage.TRYING: (HELLO, None, INDEX, RECORD),
    Stage.ENDED: (HELLO, None, FAILED),
}
"""Frames that lead to each stage; None is the host's beginning."""
HERE = address_of(b"here")
RECORDED: dict[str, Any] = {
    "format": 1,
    "python": "a70d0d0a",
    "groups": [{"key": "x", "stream": [HERE], "buffers": [[CHUNK_BYTES + 1, [HERE, HERE]]], "needs": []}],
    "names": [["x", "x", "list", 8, "[1]"]],
    "lost": [["y", "file", "it is open", "open it again"]],
    "ambient": [["random", "x"]],
}


def at(stage: Stage, most: int = 10**9) -> Conversation:
    conversation = Conversation(most)
    for kind in WAYS[stage]:
        if kind is None:
            conversation.begin()
        else:
            conversation.expect(saving.frame(kind, 1))
    assert conversation.stage is stage
    return conversation


def read(record: object) -> Snapshot:
    return saving.read_record(saving.pack_record(record), b"index", {HERE}.__contains__, int)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [*KINDS, b"B", b"\0"])
@pytest.mark.parametrize("stage", Stage)
@pytest.mark.threat("W7")
def test_frame_is_taken_where_the_table_allows_it_and_nowhere_else(stage: Stage, kind: bytes) -> None:
    conversation = at(stage)
    after = ALLOWED[stage].get(kind)
    if after is None:
        with pytest.raises(ProtocolError, match=f"is not allowed while {stage.value}"):
            conversation.expect(saving.frame(kind, 1))
    else:
        assert conversation.expect(saving.frame(kind, 1)) == (kind, 1)
    assert conversation.stage is (after or stage)


@pytest.mark.parametrize(
    "said",
    [b"", b"[]", b"{}", b'{"loading": 1, "failed": []}', b'{"loading": "", "failed": [["x"]]}', b'{"loading": ""}',
     b'{"loading": "", "failed": [["x", 5]]}', b'{"loading": "", "failed": [["x", ""], ["y", ""]]}'],
)  # fmt: skip
@pytest.mark.threat("W7")
def test_report_of_a_trial_that_is_none_is_refused(said: bytes) -> None:
    assert saving.read_tried(b'{"loading": "a", "failed": [["x", "why"]]}') == ("a", {"x": "why"})
    with pytest.raises(ProtocolError):
        saving.read_tried(said)


@pytest.mark.parametrize(
    "said", [b"", b"[]", b"{}", b'{"work": 1, "holds": ""}', b'{"work": "a"}', b'{"work": "\\ud800", "holds": ""}']
)
@pytest.mark.threat("W7")
def test_piece_of_work_that_is_none_is_refused(said: bytes) -> None:
    assert saving.read_work(b'{"work": "save a", "holds": "1"}') == ("save a", "1")
    with pytest.raises(ProtocolError):
        saving.read_work(said)


@pytest.mark.parametrize("stage", [stage for stage in Stage if stage is not Stage.WAITING])
def test_saving_begins_once_and_after_a_hello(stage: Stage) -> None:
    with pytest.raises(ProtocolError):
        at(stage).begin()


@pytest.mark.parametrize(
    ("stage", "kind", "most"),
    [
        (Stage.MAKING, HELLO, 64 * 1024),
        (Stage.SAVING, CHUNK, CHUNK_BYTES),
        (Stage.SAVING, INDEX, saving.MAX_INDEX_BYTES),
        (Stage.INDEXED, RECORD, saving.MAX_RECORD_BYTES),
        (Stage.SAVING, FAILED, 64 * 1024),
    ],
)
@pytest.mark.threat("W7")
def test_frame_of_more_than_its_kind_may_have_is_refused_before_it_is_read(
    stage: Stage, kind: bytes, most: int
) -> None:
    at(stage).expect(saving.frame(kind, most))
    with pytest.raises(ProtocolError, match="are allowed"):
        at(stage).expect(saving.frame(kind, most + 1))


@pytest.mark.threat("W6")
def test_bytes_of_all_frames_together_are_bounded() -> None:
    conversation = at(Stage.SAVING, most=10 * 2**20)
    for _ in range(9):
        conversation.expect(saving.frame(CHUNK, CHUNK_BYTES))
    with pytest.raises(ProtocolError, match="in all"):
        conversation.expect(saving.frame(CHUNK, CHUNK_BYTES))


def test_what_the_host_begins_with_comes_back_out() -> None:
    known = {address_of(bytes([number])) for number in range(5)}
    told = b"index", known, {HERE}, {"save a": ("why", "holds")}
    assert saving.unpack_beginning(saving.pack_beginning(*told)) == told


def test_record_comes_back_out_as_it_went_in() -> None:
    snapshot = read(RECORDED)
    assert snapshot.index == b"index"
    assert saving.unpack_record(saving.pack_record(saving.record_of(snapshot))) == RECORDED
    assert snapshot.addresses() == {HERE}


def _but(**changed: object) -> dict[str, object]:
    return {**RECORDED, **changed}


_GROUP = RECORDED["groups"][0]


@pytest.mark.parametrize(
    "record",
    [
        {},
        _but(more=1),
        {name: value for name, value in RECORDED.items() if name != "format"},
        {name: value for name, value in RECORDED.items() if name != "python"},
        _but(groups={}),
        _but(groups=[{**_GROUP, "stream": [address_of(b"elsewhere")]}]),
        _but(groups=[{**_GROUP, "stream": [1]}]),
        _but(groups=[{**_GROUP, "stream": [[HERE]]}]),
        _but(groups=[{**_GROUP, "stream": HERE}]),
        _but(groups=[{**_GROUP, "buffers": [[1, [HERE, HERE]]]}]),
        _but(groups=[{**_GROUP, "buffers": [[-1, []]]}]),
        _but(groups=[{**_GROUP, "buffers": [[2**63, [HERE]]]}]),
        _but(groups=[{**_GROUP, "buffers": [[True, [HERE]]]}]),
        _but(groups=[{**_GROUP, "needs": ["z"]}]),
        _but(groups=[{**_GROUP, "key": ""}, _GROUP, _GROUP]),
        _but(groups=[{**_GROUP, "key": "k" * 5000}]),
        _but(groups=[{**_GROUP, "key": "\ud800"}]),
        _but(names=[["x", "z", "list", 8, ""]]),
        _but(names=[["x", "x", "list", 8]]),
        _but(names=[["x", "x", "list", 8, ""]] * 2),
        _but(names=[["x", "x", "list", 1.5, ""]]),
        _but(names=[["x", "x", "list", 8, None]]),
        _but(lost=[["y", "file", "", 1]]),
        _but(ambient=[["random", "z"]]),
        _but(format="1"),
        _but(format=-1),
        _but(python=None),
    ],
)
@pytest.mark.threat("W7")
def test_record_that_is_not_what_it_should_be_is_refused(record: object) -> None:
    with pytest.raises(ProtocolError):
        read(record)


@pytest.mark.sampled(0)
@given(st.binary(max_size=300))
@settings(max_examples=300, deadline=None)
@pytest.mark.threat("W7")
def test_any_bytes_are_words_or_refused(data: bytes) -> None:
    for read_one in (
        saving.read_hello,
        saving.read_failure,
        lambda one: saving.read_record(one, b"", {HERE}.__contains__, int),
    ):
        try:
            read_one(data)
        except ProtocolError:
            continue


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just(HERE),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(sorted(RECORDED)), inner, max_size=3)
        ),
        max_leaves=10,
    ),
    st.sampled_from(sorted(RECORDED)),
)
@settings(max_examples=300, deadline=None)
@pytest.mark.threat("W7")
def test_any_value_in_a_field_is_read_or_refused(value: object, field: str) -> None:
    try:
        snapshot = read(_but(**{field: value}))
    except ProtocolError:
        return
    assert snapshot.addresses() <= {HERE}


@pytest.mark.parametrize("protocol", [0, 5])
@pytest.mark.threat("W8")
def test_pickle_in_a_record_stays_what_it_is(protocol: int) -> None:
    """Nothing a scribe says is ever unpickled: it stays text, or is refused."""
    told = pickle.dumps(print, protocol).decode("latin-1")
    snapshot = read(_but(lost=[[told] * 4]))
    assert snapshot.lost[0].reason == told
    with pytest.raises(ProtocolError):
        saving.read_record(told.encode("latin-1"), b"", {HERE}.__contains__, int)
