"""What endpoints' refusals mean, and how long they ask to wait."""

from datetime import UTC, datetime

import pytest

from cellblock.models.failures import asked_wait, refused
from cellblock.text import line

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    "message",
    [
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.",
        "the request exceeds the available context size. try increasing the context size",
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096",
        "prompt is too long: 210000 tokens > 200000 maximum",
        "The input is too long for this model's context window",
        "Please reduce the length of the messages or completion.",
    ],
)
@pytest.mark.parametrize("status", [400, 422, 0])
def test_too_long_a_context_is_known_by_many_words(message, status):
    failure = refused(status, message, model="m", place="u")
    assert (failure.error.context_too_long, failure.again) == (True, False)


@pytest.mark.parametrize(
    ("status", "message", "code", "kind"),
    [
        (413, "Request Entity Too Large", "", "context"),
        (429, "Request too large for gpt-4 on tokens per min: Limit 10000, Requested 12000", "", "context"),
        (429, "Rate limit reached: too many tokens per minute", "", "rate"),
        (429, "Too many requests", "", "rate"),
        (429, "You exceeded your current quota", "insufficient_quota", "quota"),
        (402, "Insufficient credits", "", "quota"),
        (401, "no", "", "key"),
        (403, "no", "", "key"),
        (403, "Your input was flagged by moderation", "", "filtered"),
        (400, "The response was filtered", "content_filter", "filtered"),
        (400, "temperature must be below 2", "", "refused"),
        (501, "not implemented", "", "refused"),
        (408, "", "", "server"),
        (500, "context length unknown", "", "server"),
        (529, "overloaded", "", "server"),
        (0, "the engine failed", "", "server"),
    ],
)
def test_each_refusal_has_its_kind(status, message, code, kind):
    failure = refused(status, message, code=code, model="m", place="u")
    assert (failure.error.kind, failure.again) == (kind, kind in ("rate", "server"))


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "2"}, 2.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"retry-after": "Thu, 01 Jan 2026 12:00:30 GMT"}, 30.0),
        ({"retry-after": "Thu, 01 Jan 2026 11:00:00 GMT"}, 0.0),
        ({"retry-after": "Thu, 01 Jan 2026 12:00:30 -0000"}, 30.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "Mon, 01 Jan 2020 00:00:00 +99999999999999999999"}, None),
    ],
)
def test_the_wait_that_is_asked_for_is_a_number_or_a_date(headers, seconds):
    assert asked_wait(headers, NOW) == seconds


def test_words_of_an_endpoint_are_one_line_that_no_terminal_acts_on():
    assert line("a\n\x1b[31mred\x1b[0m\u202e b") == "a red b"
    assert line("x" * 10_000, 400) == "x" * 400 + "…"
