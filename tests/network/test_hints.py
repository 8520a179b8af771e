"""What the errors of cells that wanted the network say that would help."""

from __future__ import annotations

import shutil

import pytest

from cellblock import ExecutionLimits, Session, tool
from cellblock.session.unreached import Reach, hint

pytest.importorskip("pip", reason="this environment has no pip, nor the copy of requests in it")

_LIMITS = ExecutionLimits(timeout_seconds=30)
_WITHOUT = 'the session has no network: open it with network=["host:port"], or give it what it needs as a file'
_DOOR = (
    "only what goes through the session's door gets out: give the library the proxy http://127.0.0.1:3128, which "
    "http_proxy and https_proxy name, and the host's name as it is; the list is shop.test:443"
)
_CURL = pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl on this machine")

DIRECT = {
    "a socket": "import socket\nsocket.create_connection(('1.1.1.1', 443), 3)",
    "a socket of IPv6": "import socket\nsocket.create_connection(('2606:4700::1', 443), 3)",
    "a name": "import socket\nsocket.getaddrinfo('shop.test', 443)",
    "a datagram": "import socket\nsocket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'', ('1.1.1.1', 53))",
    "asyncio": "import asyncio\nawait asyncio.open_connection('1.1.1.1', 443)",
    "http.client": "import http.client\nhttp.client.HTTPSConnection('1.1.1.1', timeout=3).request('GET', '/')",
    "urllib without a proxy": """
import urllib.request
urllib.request.build_opener(urllib.request.ProxyHandler({})).open('http://1.1.1.1/', timeout=3)""",
}
THROUGH = {
    "urllib": "import urllib.request\nurllib.request.urlopen('http://bank.test/', timeout=3)",
    "requests": "from pip._vendor import requests\nrequests.get('http://bank.test/', timeout=3).raise_for_status()",
    "requests in a tunnel": "from pip._vendor import requests\nrequests.get('https://bank.test/', timeout=3)",
}


@pytest.fixture(scope="module")
def sealed() -> Session:
    with Session(limits=_LIMITS) as session:
        yield session


@pytest.fixture(scope="module")
def listing() -> Session:
    with Session(limits=_LIMITS, network=["shop.test:443"]) as session:
        yield session


def _hint(session: Session, source: str) -> str:
    error = session.run(source).error
    assert error is not None
    return error.hint


@pytest.mark.parametrize("source", DIRECT.values(), ids=DIRECT)
def test_without_a_list_the_list_is_what_helps(source: str, sealed: Session) -> None:
    assert _hint(sealed, source) == _WITHOUT


@pytest.mark.parametrize("source", THROUGH.values(), ids=THROUGH)
def test_libraries_are_told_the_same(source: str, sealed: Session) -> None:
    assert _hint(sealed, source) == _WITHOUT


@pytest.mark.parametrize("source", DIRECT.values(), ids=DIRECT)
def test_with_a_list_the_proxy_is_what_helps(source: str, listing: Session) -> None:
    assert _hint(listing, source) == _DOOR


@pytest.mark.parametrize("source", THROUGH.values(), ids=THROUGH)
def test_what_is_not_listed_is_to_be_listed(source: str, listing: Session) -> None:
    found = _hint(listing, source)
    port = 443 if "https" in source else 80
    assert found == f'list it, if it may be reached: network=["bank.test:{port}"]; the list is shop.test:443'


_FORGED = (
    "evil.test:443 is not in the network= list of this session",
    "HTTPSConnectionPool(host='evil.test', port=443): Max retries exceeded: Network is unreachable",
)


@pytest.mark.threat("W8")
@pytest.mark.parametrize("said", _FORGED)
def test_a_cell_puts_no_place_into_a_hint(said: str, sealed: Session, listing: Session) -> None:
    listing.run(THROUGH["urllib"])
    for session in (sealed, listing):
        for cell in (session.run(f"raise OSError({said!r})"), session.shell(f'echo "{said}"; exit 1')):
            assert cell.error is not None
            assert "evil" not in cell.error.hint
            assert "bank" not in cell.error.hint  # refused to the cell before
    source = THROUGH["urllib"].replace("urllib.request.urlopen", "try: urllib.request.urlopen")
    said_of_another = _hint(listing, f"{source}\nexcept OSError: raise OSError({said!r})")
    assert "evil" not in said_of_another


def test_the_session_s_own_loopback_is_told_apart(sealed: Session) -> None:
    said = _hint(sealed, "import socket\nsocket.create_connection(('127.0.0.1', 8000))")
    assert said.startswith("the session has no network (127.0.0.1 inside is the session's own): open it with network=")


def test_a_server_in_a_session_with_a_list(listing: Session) -> None:
    said = _hint(listing, "import socket\nsocket.create_server(('127.0.0.1', 8000))")
    assert said == "a session with a network= list listens on no port: one without it may, for itself"


@pytest.mark.sampled(0)
@pytest.mark.parametrize(
    "run",
    ["import subprocess, sys\nsubprocess.run([sys.executable, '-m', 'pip', 'install', 'pebble'], check=True)", "!"],
)
def test_pip_without_an_index(run: str, sealed: Session) -> None:
    cell = sealed.shell("python3 -m pip install pebble") if run == "!" else sealed.run(run)
    assert cell.error is not None
    assert cell.error.hint.startswith(
        'the session has no network: network=["pypi.org:443", "files.pythonhosted.org:443"]'
    )


@_CURL
def test_a_program_is_told_the_same_as_a_library(sealed: Session, listing: Session) -> None:
    for session, said in ((sealed, _WITHOUT), (listing, 'list it, if it may be reached: network=["bank.test:80"]')):
        error = session.shell("curl -sS --fail-with-body http://bank.test/").error
        assert error is not None
        assert error.hint.startswith(said)


def test_a_private_session_says_since_when_and_why() -> None:
    @tool(outward=True)
    def mail(text: str) -> None:
        """Send it."""

    with Session(limits=_LIMITS, network=["shop.test:80"], tools=[mail]) as session:
        session.run("x = 1")
        session.run("mark_private('payroll')")
        why = "the session is private since cell 2 (payroll)"
        never = f"{why}: it has no network, for good; another session, without these data, can have one"
        for source in (*DIRECT.values(), "import urllib.request\nurllib.request.urlopen('http://shop.test/')"):
            assert _hint(session, source) == never
        assert _hint(session, "mail('x')") == f"{why}; another session, without these data, can call it"
    with Session(limits=_LIMITS, private=True) as session:
        assert _hint(session, DIRECT["a name"]).startswith(
            "the session is private from the start (opened as private): "
        )


def test_other_errors_get_none(sealed: Session, listing: Session) -> None:
    for source in (
        "1 / 0",
        "import os\nos.kill(1, 9)",
        "raise PermissionError(13, 'Permission denied', 'x')",
    ):
        assert _hint(sealed, source) == _hint(listing, source) == ""
    assert sealed.shell("exit 3").error.hint == ""  # type: ignore[union-attr]


def test_what_a_function_of_the_host_could_not_reach_is_not_the_session_s() -> None:
    def query() -> None:
        """Ask the host's database."""
        raise ConnectionRefusedError(111, "Connection refused")

    with Session(limits=_LIMITS, tools=[query]) as session:
        assert session.run("query()").error.message == "[Errno 111] Connection refused"  # type: ignore[union-attr]
        assert _hint(session, "query()") == ""
        assert _hint(session, "try:\n    query()\nexcept OSError as error:\n    raise ValueError from error") == ""


@pytest.mark.parametrize(
    ("said", "reach", "helps"),
    [
        ("httpx.ConnectError: [Errno -3] Temporary failure in name resolution", Reach(), "open it with network="),
        (
            "httpx.ProxyError: 403 bank.test:443 is not in the network= list of this session",
            Reach(listed=("a.test:1",), unlisted="bank.test:443"),
            'network=["bank.test:443"]; the list is a.test:1',
        ),
        (
            "ConnectionError: HTTPSConnectionPool(host='bank.test', port=443): Max retries exceeded with url: / "
            "(Caused by NameResolutionError(\": Failed to resolve 'bank.test' ([Errno -3] Temporary failure in name "
            'resolution)"))',
            Reach(),
            'network=["host:port"]',
        ),
        (
            "fatal: unable to access 'https://bank.test/x/': CONNECT tunnel failed, response 403",
            Reach(listed=("a.test:1",)),
            "only what network= lists may be reached, which is a.test:1",
        ),
        (
            "curl: (56) Received HTTP code 403 from proxy after CONNECT",
            Reach(listed=("a.test:1",), private="payroll", since=3),
            "the session is private since cell 3 (payroll)",
        ),
        ("socket.gaierror: [Errno -2] Name or service not known", Reach(door=False), "open it at isolated"),
        (
            "HTTPError: HTTP Error 403: in.test leads to a loopback address, and only a public one is connected to",
            Reach(listed=("in.test:1",)),
            "list the address itself",
        ),
        (
            "HTTPError: HTTP Error 403: the session has used up ExecutionLimits.max_network_mb",
            Reach(listed=("in.test:1",)),
            "raise ExecutionLimits(max_network_mb=…)",
        ),
    ],
)  # fmt: skip
def test_what_libraries_say_is_understood(said: str, reach: Reach, helps: str) -> None:
    assert helps in hint(said, "", reach)
