"""What the tests of endpoints share: a model of a server that they script, with waits of milliseconds."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cellblock.models import Patience, Retry


@pytest.fixture(autouse=True)
def _no_endpoint_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a key nor an endpoint nor a proxy of whoever runs the tests is used."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.fixture
def retries() -> list[Retry]:
    """What the model of `endpoint` was told before each of its waits."""
    return []


@pytest.fixture
def endpoint(retries: list[Retry]) -> Callable:
    pytest.importorskip("openai")
    from cellblock.models.openai import EndpointModel

    def endpoint(server, name="gpt", **given):
        patience = {"first_wait": 0.001, "retries": 3, "seed": 1} | given.pop("patience", {})
        return EndpointModel(
            name, **{"base_url": server.url, "api_key": server.key, "on_retry": retries.append} | given,
            patience=Patience(**patience),
        )  # fmt: skip

    return endpoint
