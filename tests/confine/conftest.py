"""What the tests of the walls share: whom a child that is walled in runs as."""

import os

import pytest

UNPRIVILEGED = 61000


@pytest.fixture(params=["as this user", "unprivileged"])
def uid(request: pytest.FixtureRequest) -> int | None:
    if request.param == "as this user":
        return None
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    return UNPRIVILEGED
