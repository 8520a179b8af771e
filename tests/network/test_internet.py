"""Sessions on a machine with an internet of its own: what is let through, and that nothing else is ever reached."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.append(str(HERE))
import rows  # noqa: E402

sys.path.remove(str(HERE))

pytestmark = [pytest.mark.timeout(300), pytest.mark.threat("W3"), pytest.mark.hostile]
_PRIVATE = [f"private-{name}" for name in rows.WAYS]


@pytest.fixture(scope="module")
def played() -> dict[str, dict]:
    """What became of each row, by name."""
    if os.getuid() != 0 or not all(map(shutil.which, ("unshare", "nsenter", "ip"))):
        pytest.skip("the internet is made of network namespaces: that takes root, and iproute2")
    tried = subprocess.run(
        ["unshare", "-n", "ip", "link", "add", "veth0", "type", "veth", "peer", "name", "veth1"], capture_output=True
    )
    if tried.returncode:
        pytest.skip("this machine makes no pairs of interfaces")
    done = subprocess.run([sys.executable, HERE / "internet.py"], capture_output=True, text=True, timeout=250)
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stderr == ""
    return {row["name"]: row for row in map(json.loads, done.stdout.splitlines())}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("row", rows.ROWS, ids=lambda row: row.name)
def test_what_is_listed_answers_and_nothing_else_is_reached(row, played):
    found = played[row.name]
    assert row.answer in found["answer"]
    assert found["reached"] == row.reached
    assert found["touched"] == []
    assert bool(found["asked"]) is row.asked


def test_no_name_was_asked_for_that_is_not_listed(played):
    asked = {name for row in played.values() for name in row["asked"]}
    listed = {one.lower().rpartition(":")[0].removesuffix(".") for one in rows.LISTED}
    assert asked <= listed


def test_no_service_of_the_host_was_touched_by_any_row(played):
    assert [row["touched"] for row in played.values() if row["touched"]] == []


def test_a_cell_s_usage_counts_connections_refusals_and_bytes(played):
    usage = played["redirect-to-another"]["usage"]
    assert (usage["connections"], usage["connections_refused"]) == (1, 1)
    request = "GET /to/bank.test:8080/ HTTP/1.1\r\nHost: shop.test:8080\r\n"
    assert usage["sent_bytes"] > len(request)
    assert usage["received_bytes"] == len(
        "HTTP/1.1 302 there\r\nLocation: http://bank.test:8080/\r\nContent-Length: 0\r\n\r\n"
    )


@pytest.mark.threat("W6")
def test_a_server_that_does_not_end_ends_with_the_cell_or_the_limit(played):
    assert played["bounds-silent"]["answer"] == "TimeoutError: the cell ran longer than 1.5 s"
    assert played["bounds-drip"]["answer"] == "TimeoutError: the cell ran longer than 1.5 s"
    told = "HTTP Error 502: the answer of shop.test:8080: its head has more than 32768 bytes"
    assert told in played["bounds-head-of-a-server"]["answer"]
    received = sum(row["usage"]["received_bytes"] for name, row in played.items() if name.startswith("bounds-"))
    assert 2**20 - 2**16 < received < 2**20 + 2**17
    assert played["bounds-used-up"]["answer"] == "403 the session has used up ExecutionLimits.max_network_mb"
    assert played["bounds-lives"]["answer"] == "2"


@pytest.mark.threat("W6")
def test_more_connections_than_allowed_wait(played):
    late, then = eval(played["bounds-connections"]["answer"])
    assert late == "TimeoutError('timed out')"
    assert then == f"{rows.SHOP} /then"


def test_a_session_had_a_tunnel_and_a_tool_before_it_was_private(played):
    assert played["private-before"]["answer"] == "sent hello"
    assert played["private-before"]["usage"]["connections"] == 3
    assert played["private-tool"] | {"usage": {}} == {
        "name": "private-tool", "answer": "[1, 2]", "usage": {}, "private": "salaries() was called",
        "reached": [], "asked": [], "touched": [],
    }  # fmt: skip


def test_there_are_more_than_forty_ways_out():
    assert len(set(rows.WAYS.values())) > 60


@pytest.mark.parametrize(
    "name", [*_PRIVATE, *rows.LASTING, "private-by-undo", "private-by-branch", "private-by-a-tool-of-a-branch"]
)
def test_a_private_session_does_not_get_out(name, played):
    found = played[name]
    assert (found["reached"], found["asked"], found["touched"]) == ([], [], [])
    assert (found["usage"]["connections"], found["usage"]["sent_bytes"], found["usage"]["received_bytes"]) == (0, 0, 0)
    assert "sent secret" not in found["answer"]
    assert "sent x" not in found["answer"]


def test_the_mark_is_in_what_comes_of_a_session(played):
    for name in ("private-by-undo", "private-by-branch", "private-by-a-tool-of-a-branch"):
        assert played[name]["private"] == "salaries() was called"


def test_a_session_that_is_opened_as_private_has_no_door(played):
    found = played["private-from-the-start"]
    assert found["private"] == "opened as private"
    assert (found["reached"], found["asked"], found["usage"]["connections_refused"]) == ([], [], 0)


def test_without_a_list_nothing_listens(played):
    assert played["no-list-no-door"]["answer"] == "ConnectionRefusedError"
