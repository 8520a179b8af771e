"""Keeps secrets out of logs, by rule: patterns of well-known keys, and values of the environment that look like one."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping

MASK = "[redacted]"

_KEYS = re.compile(
    r"""
    \b(?:sk|pk|rk)-[A-Za-z0-9_-]{16,}            # OpenAI, Anthropic, Stripe and their like
    | \b(?:ghp|gho|ghu|ghs|ghr)_[A-Za-z0-9]{20,} | \bgithub_pat_[A-Za-z0-9_]{20,}
    | \bxox[abpr]-[A-Za-z0-9-]{10,}
    | \b(?:AKIA|ASIA)[A-Z0-9]{16}\b
    | \bAIza[A-Za-z0-9_-]{30,}
    | \beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{5,}
    | (?<=Bearer\ )[A-Za-z0-9._~+/-]{8,}=*
    | (?<=://)[^/\s:@]+:[^/\s@]+(?=@)
    | -----BEGIN[ A-Z]*PRIVATE\ KEY-----.*?(?:-----END[ A-Z]*PRIVATE\ KEY-----|\Z)
    """,
    re.VERBOSE | re.DOTALL,
)
_NAMED = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL", re.IGNORECASE)
_LEAST = 8


class Redactor:
    """Replaces what is secret in texts, and in data that is made of texts.

    `rules` are patterns beside the built-in ones. Values of `environment` are secret where their names say so and they
    have at least 8 characters.
    """

    def __init__(
        self, rules: Iterable[str | re.Pattern[str]] = (), *, environment: Mapping[str, str] | None = None
    ) -> None:
        self._rules = [_KEYS, *(re.compile(rule) if isinstance(rule, str) else rule for rule in rules)]
        named = os.environ if environment is None else environment
        values = {value for name, value in named.items() if _NAMED.search(name) and len(value) >= _LEAST}
        self._values = sorted(values, key=lambda value: (-len(value), value))

    def text(self, text: str) -> str:
        """The text without its secrets."""
        for value in self._values:
            text = text.replace(value, MASK)
        for rule in self._rules:
            text = rule.sub(MASK, text)
        return text

    def data(self, data: object) -> object:
        """The same of every text in data as JSON has it; keys of objects are left alone."""
        if isinstance(data, str):
            return self.text(data)
        if isinstance(data, dict):
            return {key: self.data(value) for key, value in data.items()}
        if isinstance(data, (list, tuple)):
            return [self.data(value) for value in data]
        return data
