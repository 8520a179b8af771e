"""W3: the door of a session that may connect to something, and what it is asked for beyond that."""

from __future__ import annotations

from cellblock import Session
from cellblock_attacks.attack import Attack, host_later, one_of
from cellblock_attacks.host import LIMITS, Host, outcome_of
from cellblock_attacks.network import _DESCRIPTORS

_LIST = "the door's list, on the host"
_PORTS = "Landlock: the door's port alone"
_ASK = """
import socket
def ask(*parts, most=200):
    with socket.create_connection(("127.0.0.1", 3128), 5) as one:
        said = b""
        try:
            for part in parts:
                one.sendall(part)
            while len(said) < most and (more := one.recv(most)):
                said += more
        except OSError:
            pass
    return said.decode("latin-1").partition("\\r\\n")[0][9:]
def connect(where):
    return ask(f"CONNECT {where} HTTP/1.1\\r\\n\\r\\n".encode())
def status(where):
    return connect(where)[:3]
"""
_NOTHING = ["127.0.0.1:9", "nobody.invalid:443"]


@host_later
def _in_a_session(host: Host, cell: str, *, private: bool = False, branch: bool = False, dies: bool = False) -> object:
    """Attacks from a session that may connect to nothing that is there; a private one lists the host's service, too."""
    listed = [*_NOTHING, f"127.0.0.1:{host.facts['tcp']}"] if private else _NOTHING
    source = host.prelude + _ASK + cell
    with Session(limits=LIMITS, network=listed) as session:
        session.run("1")
        if private:
            session.mark_private("attacked")
        if dies:
            session.run("import os\nos._exit(1)")
        if not branch:
            return outcome_of(session, source)
        with session.branch() as other:
            return outcome_of(other, source)


def _attack(name: str, wall: str, expect: object, cell: str, *, threat: str = "W3", **how: bool) -> Attack:
    return Attack(name=f"door-{name}", threat=threat, wall=wall, expect=expect, host=_in_a_session(cell, **how))


def _past_another_s(host: Host) -> object:
    with Session(limits=LIMITS, network=_NOTHING):
        return outcome_of(
            host.session, host.prelude + "import socket\nattempt(socket.create_connection, ('127.0.0.1', 3128))"
        )


_SHUT = "403 the session holds private data: its network is closed for good"

ATTACKS: tuple[Attack, ...] = (
    _attack("tcp-of-the-host", _LIST, "403", "status(f\"127.0.0.1:{facts['tcp']}\")"),
    _attack(
        "loopback-by-other-names",
        _LIST,
        ["400", "403"],
        """
names = ("localhost", "0.0.0.0", "127.1", "2130706433", "0x7f000001", "017700000001", "[::1]", "[::]",
    "[::ffff:127.0.0.1]", "[::127.0.0.1]", "[64:ff9b::7f00:1]", "LOCALHOST.", "127.0.0.2", "localhost.localdomain")
sorted({status(f"{name}:{facts['tcp']}") for name in names})
""",
    ),
    _attack("neighbour", _LIST, "403", "status(f\"127.0.0.1:{facts['neighbour_port']}\")"),
    _attack(
        "sockets-that-have-a-path",
        "the door takes hosts with ports",
        ["400"],
        """
sorted({status(where) for where in (facts["unix"], f"unix:{facts['unix']}:1", f"[{facts['abstract'][1:]}]:1", "/:1")})
""",
    ),
    _attack(
        "credentials-before-the-host",
        "the door takes hosts with ports",
        ["400"],
        """
tcp = facts["tcp"]
sorted({ask(f"GET http://{text}/ HTTP/1.1\\r\\n\\r\\n".encode())[:3] for text in (
    f"127.0.0.1:9@127.0.0.1:{tcp}", f"127.0.0.1:9\\\\@127.0.0.1:{tcp}", f"127.0.0.1:9#@127.0.0.1:{tcp}",
    f"127.0.0.1:9%00@127.0.0.1:{tcp}", f"127.0.0.1:9:{tcp}")})
""",
    ),
    _attack(
        "two-heads-in-one",
        "one request for each connection, sent where its own line says",
        ["400", "502"],
        """
tcp = facts["tcp"]
second = f"GET http://127.0.0.1:{tcp}/ HTTP/1.1\\r\\n\\r\\n".encode()
sorted({ask(first, second)[:3] for first in (
    b"GET http://127.0.0.1:9/ HTTP/1.1\\r\\n\\r\\n",
    b"GET http://127.0.0.1:9/ HTTP/1.1\\r\\nHost: 127.0.0.1:%d\\r\\n\\r\\n" % tcp,
    b"GET http://127.0.0.1:9/ HTTP/1.1\\r\\nX: y\\nHost: z\\r\\n\\r\\n",
    b"GET http://127.0.0.1:9/ HTTP/1.1\\r\\nX: y\\r\\n z\\r\\n\\r\\n")})
""",
    ),
    _attack(
        "bytes-that-are-no-request",
        "the door's grammar of heads",
        ["400", "431"],
        """
import random
some = random.Random(7)
sorted({ask(some.randbytes(some.randrange(1, 40_000)) + b"\\r\\n\\r\\n")[:3] for _ in range(20)} - {""})
""",
        threat="W7",
    ),
    _attack(
        "a-crowd-of-connections",
        "the door takes so many at a time, and so many in a second",
        "403",
        """
crowd = [socket.create_connection(("127.0.0.1", 3128), 5) for _ in range(100)]
for one in crowd:
    one.close()
status(f"127.0.0.1:{facts['tcp']}")
""",
        threat="W6",
    ),
    _attack(
        "taking-its-port",
        _PORTS,
        one_of(["EACCES"], ["EADDRINUSE"]),  # before Landlock ABI 4
        """
def listen(family, address):
    with socket.socket(family) as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        one.bind(address)
        return "bound"
places = ((socket.AF_INET, ("127.0.0.1", 3128)), (socket.AF_INET, ("0.0.0.0", 3128)), (socket.AF_INET6, ("::", 3128)))
sorted({attempt(listen, *place) for place in places})
""",
    ),
    _attack(
        "past-it",
        _PORTS,
        one_of(["EACCES"], ["ECONNREFUSED"]),
        """
def dial(address, port):
    with socket.create_connection((address, port), 1):
        return "connected"
sorted({attempt(dial, address, facts["tcp"]) for address in ("127.0.0.1", "0.0.0.0", "127.0.0.2")})
""",
    ),
    _attack(
        "inherited-descriptors",
        "the listener was handed to the host, and nothing inside keeps it",
        {"null": 1, "pipe": 4, "socket": 2, "clear_refs": 1},
        _DESCRIPTORS,
    ),
    Attack(
        name="door-of-another-session",
        threat="W3",
        wall="the network namespace: its loopback is the session's own",
        expect="ECONNREFUSED",
        host=_past_another_s,
    ),
    _attack("of-a-branch", _LIST, "403", "status(f\"127.0.0.1:{facts['tcp']}\")", branch=True),
    _attack("private", "the mark", _SHUT, "connect(f\"127.0.0.1:{facts['tcp']}\")", private=True),
    _attack(
        "private-by-plain-http",
        "the mark",
        _SHUT,
        "ask(f\"GET http://127.0.0.1:{facts['tcp']}/ HTTP/1.1\\r\\n\\r\\n\".encode())",
        private=True,
    ),
    _attack(
        "private-after-a-death",
        "the mark is the host's, whatever process runs",
        _SHUT,
        "connect(f\"127.0.0.1:{facts['tcp']}\")",
        private=True,
        dies=True,
    ),
    _attack(
        "private-in-a-branch",
        "a branch of a private session has no door",
        one_of("raised: ConnectionRefusedError: [Errno 111] Connection refused"),
        "connect(f\"127.0.0.1:{facts['tcp']}\")",
        private=True,
        branch=True,
    ),
)
