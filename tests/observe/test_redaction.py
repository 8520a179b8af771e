"""What is secret stays out of logs: in whatever field, in whatever form a value has there, whole or cut."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cellblock import CodeAgent, ReactAgent, ScriptedModel, TaskFailed
from cellblock.agent.recording import to_plain
from cellblock.models import Reply, ToolRequest
from cellblock.observe.log import EventLog
from cellblock.observe.redaction import MASK, Redactor

SECRET = "hunter2-Kestrel\\'\"é-9931"
KEY = "sk-proj-" + "Ab3_" * 6
redactor = Redactor(environment={"DB_PASSWORD": SECRET, "HOME": "/home/ana", "API_TOKEN": "short"})


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (repr(f"x\n{KEY}\t{KEY}"), rf"'x\n{MASK}\t{MASK}'"),
        (f"key {KEY}.", f"key {MASK}."),
        ("ghp_" + "a1" * 12, MASK),
        ("AKIAABCDEFGHIJKLMNOP", MASK),
        ("Authorization: Bearer abcdefgh.ijkl-mnop==", f"Authorization: Bearer {MASK}"),
        ("postgresql://ana:pa55@host/db", f"postgresql://{MASK}@host/db"),
        ("https://host:8080/a@b", "https://host:8080/a@b"),
        ("redis://:pa55@host:6379/0", f"redis://{MASK}@host:6379/0"),
        ("postgresql://ana:pa@55@host/db", f"postgresql://{MASK}@host/db"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\nx", f"{MASK}\nx"),
        ("-----BEGIN PRIVATE KEY-----\nMIIE, cut off", MASK),
        (f"it is {SECRET}!", f"it is {MASK}!"),
        (f"it is {SECRET!r}", None),
        (json.dumps({"it": SECRET}), f'{{"it": "{MASK}"}}'),
        (f"cut {SECRET[:15]}… 30 characters cut …{SECRET[-12:]} on", f"cut {MASK}… 30 characters cut …{MASK} on"),
        (SECRET[:-1], MASK),
        ("sketch of a risk-averse desk-top, /home/ana, short", "sketch of a risk-averse desk-top, /home/ana, short"),
        ("the hunter2 came", "the hunter2 came"),
    ],
)
def test_secrets_of_a_text_are_replaced_and_the_rest_is_left(text: str, left: str | None) -> None:
    found = redactor.text(text)
    assert found == (left if left is not None else found)
    assert "Kestrel" not in found
    assert redactor.text(found) == found


def test_rules_of_the_user_come_on_top() -> None:
    assert Redactor([r"ACME-\d+"], environment={}).data({"a": ["ACME-12 and ACME-x"]}) == {"a": [f"{MASK} and ACME-x"]}


@pytest.mark.sampled(0)
def test_very_long_secret_is_found_as_it_is() -> None:
    secret = "line of a key\\\n" * 5_000
    assert Redactor(environment={"SIGNING_KEY": secret}).text(f"<{secret.strip()}>") == f"<{MASK}>"


SPACED = '{"type": "service",\n  "of":\t"Kestrel",\r\n "id": "hunter2 \\n 9931"}'


@pytest.mark.parametrize(
    "secret", [SPACED, "alpha  beta\tgamma", "ab\\ \\n \\n\n\\t Kestrel", f"{'long  ' * 500}\tKestrel"]
)
def test_blanks_of_a_secret_that_became_others_do_not_hide_it(secret: str) -> None:
    found = Redactor(environment={"API_SECRET": secret}).text
    for one in (secret, " ".join(secret.split()), repr(secret), json.dumps(secret), " ".join(repr(secret).split())):
        assert secret[:2] not in found(f"<{one}>")
        assert MASK in found(f"<{one}>")
        assert found(f"<{one[: len(one) * 3 // 4]}…") in (f"<{MASK}…", f"<{one[0]}{MASK}…")


@pytest.mark.parametrize("place", range(3))
def test_a_text_of_blanks_and_escapes_is_read_once(place: int) -> None:
    secret = ["x" + r" \n" * 12 + " y", "a  " * 30 + "b", r"\ \ " * 12 + "b"][place]
    redact = Redactor(environment={"API_SECRET": secret}).text
    for text in (r"x" + r"\n" * 5_000, "x" + r" \n" * 5_000, "a" + " " * 50_000, "a  " * 5_000, "\\ " * 5_000):
        assert redact(f"!{text}!") == f"!{text}!"


def holders(secret: str) -> st.SearchStrategy[object]:
    """Values that have a secret somewhere, in the ways that values of cells and tools do."""
    around = st.text(alphabet=" \n\t=:'\"é…", max_size=6)
    text = st.tuples(around, around).map(lambda ends: f"x {ends[0]}{secret}{ends[1]} y")
    leaf = st.one_of(text, text.map(str.encode), text.map(lambda one: bytearray(one.encode())))
    keyed = text.map(lambda one: {one: 1})
    return st.recursive(
        st.one_of(leaf, keyed),
        lambda inner: st.one_of(
            st.lists(inner, min_size=1, max_size=3),
            st.tuples(inner, st.integers()),
            st.dictionaries(st.text(max_size=4), inner, min_size=1, max_size=2),
        ),
        max_leaves=4,
    )


def texts_of(found: object) -> str:
    """All that somebody finds who decodes what a log has."""
    text = json.dumps(found, ensure_ascii=False)
    more = []

    def walk(one: object) -> None:
        match one:
            case dict():
                for key, value in one.items():
                    walk(key)
                    walk(value)
            case list():
                for value in one:
                    walk(value)
            case str():
                more.append(one)
                for decode in (bytes.fromhex, lambda raw: base64.b64decode(raw.removeprefix("base64:"), validate=True)):
                    try:
                        data = decode(one)
                    except ValueError:
                        continue
                    more.extend((data.decode("latin-1"), data.replace(b"\0", b"").decode("utf-8", "replace")))

    walk(json.loads(text))
    return "\n".join([text, *more])


@pytest.mark.sampled(2)
@pytest.mark.hostile
@pytest.mark.parametrize("blank", [" ", "\n", "Bearer "], ids=["words", "lines", "bearers"])
@pytest.mark.parametrize(
    "secret", [KEY, "Bearer abcdef-0123", "eyJ" + "a" * 12 + "." + "b" * 12 + "." + "c" * 12, "://ana:pw@host"]
)
def test_a_secret_is_found_wherever_in_a_long_text_it_stands(secret: str, blank: str) -> None:
    redactor = Redactor(environment={})
    short = redactor.text(f"{blank}{secret} x")
    assert MASK in short
    for place in range(0, 80, 7):
        before, after = "a" * (2**16 - place - len(secret)), " and more" * 10_000
        assert redactor.text(f"{before}{blank}{secret} x{after}") == f"{before}{short}{after}"


@pytest.mark.sampled(1)
@pytest.mark.parametrize("secret", [KEY, SECRET], ids=["pattern", "environment"])
def test_no_event_holds_a_secret_whatever_value_it_came_with(secret: str) -> None:
    @given(holders(secret), st.sampled_from(["text", "value", "error", "arguments", "reason"]), st.integers(0, 3))
    def check(value: object, field: str, how: int) -> None:
        log = EventLog(redactor=redactor)
        form: Any = [to_plain(value), repr(value), str(value), {"type": "E", "message": repr(value)[:200]}][how]
        log.write("cell", **{field: form})
        found = texts_of(log.events)
        assert secret not in found
        assert secret[:20] not in found

    check()


@given(st.binary(max_size=40), st.integers(0, 2000))
def test_bytes_with_a_secret_are_found_in_buffers_too(before: bytes, padding: int) -> None:
    tree = to_plain(before + b" " + KEY.encode() + b" " + b"." * padding)
    log = EventLog(redactor=redactor)
    log.write("tool", answer=tree)
    assert KEY not in texts_of(log.events)


def test_arrays_of_text_with_a_secret_are_left_out() -> None:
    numpy = pytest.importorskip("numpy")
    log = EventLog(redactor=redactor)
    log.write("tool", answer=to_plain(numpy.array(["a", KEY] * 20)))
    assert KEY not in texts_of(log.events)
    assert MASK in json.dumps(log.events)


@pytest.mark.hostile
def test_run_keeps_secrets_out_of_its_log_wherever_they_come_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_TOKEN", SECRET)
    log = tmp_path / "run.jsonl"

    def login(user: str, secret: str) -> dict[str, object]:
        """Log in."""
        if user == "bob":
            raise ValueError(f"wrong: {secret}")
        return {"token": secret, "raw": secret.encode() * 100, KEY: 1}

    codes = [
        f"token = {SECRET!r}\nprint(token)\ntoken",
        "found = login('ana', secret=token)\nfound",
        "login('bob', token)",
        "memory.observations.append(token)\nmemory.variables[token] = token\nuncertain(token)\nexplore(token)",
        "raise KeyError(token)",
        "final_answer([token], verified_by=token)",
    ]
    model = ScriptedModel([f"thinking of {SECRET}\n```python\n{code}\n```" for code in codes])
    agent = CodeAgent(model, tools=[login])
    files = {"k.txt": SECRET.encode(), "k.bin": b"\xff" + KEY.encode()}
    result = agent.run(f"use {SECRET}", inputs={"t": {SECRET: [SECRET]}}, files=files, log=log)
    assert result.value == [SECRET]
    found = texts_of([json.loads(line) for line in log.read_text().splitlines()])
    assert [one in found for one in (SECRET, KEY, SECRET[:15], "Kestrel")] == [False] * 4
    assert found.count(MASK) > 20


@pytest.mark.sampled(2)
@pytest.mark.hostile
@pytest.mark.parametrize("secret", [SPACED, "alpha-beta  gamma-delta", "alpha-beta\tgamma-delta"])
def test_no_event_of_a_run_holds_a_secret_whose_blanks_were_folded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, secret: str
) -> None:
    monkeypatch.setenv("SHOP_SECRET", secret)
    log = tmp_path / "run.jsonl"

    def login(secret: str) -> str:
        """Log in."""
        if secret.startswith("again"):
            raise ValueError(secret)
        return secret

    codes = [
        "raise ValueError(token)",
        "login('again ' + token)",
        "print(token, [token])\nlogin(token)",
        "uncertain(token)\nx = {'a': token}\nassert False, [token]",
        "final_answer(token)",
    ]
    agent = CodeAgent(ScriptedModel([f"It is {secret}\n```python\n{code}\n```" for code in codes]), tools=[login])
    agent.run(f"use {secret}", inputs={"token": secret}, log=log)
    events = [json.loads(line) for line in log.read_text().splitlines()]
    assert {"run", "begin", "reply", "tool", "cell", "end"} <= {event["event"] for event in events}
    for event in events:
        found = texts_of(event)
        assert [one in found for one in ("Kestrel", "hunter2", "alpha-beta", "gamma-delta")] == [False] * 4, event


@pytest.mark.hostile
def test_a_failed_approach_that_is_cut_within_a_secret_does_not_hold_its_beginning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_SECRET", "Kestrel-hunter2-9931-alpha-beta")
    log = tmp_path / "run.jsonl"
    begins = f"x = '{'y' * 174}"
    code = f"{begins}Kestrel-hunter2-9931-alpha-beta'\nraise ValueError('z' * 280 + x[174:])"
    CodeAgent(ScriptedModel([f"```python\n{one}\n```" for one in (code, "final_answer(1)")])).run("go", log=log)
    assert f"{begins}{MASK}…" in log.read_text()
    assert "Kestrel-hunter2" not in log.read_text()


def test_failures_and_tool_requests_of_models_keep_their_secrets_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_TOKEN", SECRET)

    def look(name: str) -> str:
        """Look."""
        raise RuntimeError(name)

    request = ToolRequest("1", "look", {"name": SECRET, KEY: SECRET}, json.dumps({"name": SECRET}))
    log = tmp_path / "react.jsonl"
    ReactAgent(ScriptedModel([Reply(requests=(request,)), SECRET]), tools=[look]).run(SECRET, log=log)
    found = texts_of([json.loads(line) for line in log.read_text().splitlines()])
    assert (SECRET in found, KEY in found) == (False, False)


@pytest.mark.hostile
def test_reason_of_a_failed_task_keeps_its_secret_out(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    with pytest.raises(TaskFailed):
        CodeAgent(ScriptedModel([f"```python\ntask_fail({KEY!r})\n```"])).run("fail", log=log)
    assert KEY not in log.read_text()


def test_numbers_that_are_a_secret_are_not_shown() -> None:
    redactor = Redactor(environment={"DB_PASSWORD": "8273645519283", "PIN_KEY": "1234"})
    shown = redactor.data({"a": [8273645519283, 1234, True, 10**400, 8273645519283.5], "b": 8273645519283})
    assert shown == {"a": [MASK, 1234, True, 10**400, 8273645519283.5], "b": MASK}
