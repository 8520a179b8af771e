"""Servers for the tests of the store: PostgreSQL, and S3 of moto. Each test has a schema or a bucket of its own."""

from __future__ import annotations

import itertools
import urllib.request
from collections.abc import Iterator
from datetime import timedelta

import pytest
from failing_proxy import FailingProxy
from postgres_server import Server, server, why_none

_numbers = itertools.count()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    reason = why_none()
    if reason:
        pytest.skip(reason)
    with server() as running:
        yield running


@pytest.fixture
def postgres_url(postgres: Server) -> str:
    """The URL of a schema that does not exist yet."""
    return f"{postgres.url}&schema=s{next(_numbers)}"


@pytest.fixture(scope="session")
def s3() -> Iterator[tuple[str, int]]:
    """Host and port of a server of S3's protocol."""
    from moto.server import ThreadedMotoServer  # half a second

    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    yield server.get_host_and_port()
    server.stop()


@pytest.fixture
def s3_credentials() -> tuple[str, str]:
    return "AKIATEST", "throw-away-secret"


@pytest.fixture
def proxy(s3: tuple[str, int], s3_credentials: tuple[str, str]) -> Iterator[FailingProxy]:
    """In front of the server, for tests in which it fails."""
    with FailingProxy(s3, s3_credentials[1]) as running:
        yield running


@pytest.fixture
def bucket(proxy: FailingProxy, s3_credentials: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of an empty bucket; the provider's own variables lead to it, through the proxy."""
    key, secret = s3_credentials
    variables = {
        "AWS_ACCESS_KEY_ID": key,
        "AWS_SECRET_ACCESS_KEY": secret,
        "AWS_ENDPOINT": proxy.address,
        "AWS_ALLOW_HTTP": "true",
        "AWS_REGION": "us-east-1",
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("cellblock.store.bucket._PATIENCE", timedelta(seconds=0.1))
    name = f"cells{next(_numbers)}"
    with urllib.request.urlopen(urllib.request.Request(f"{proxy.address}/{name}", method="PUT")):
        return f"s3://{name}/objects"
