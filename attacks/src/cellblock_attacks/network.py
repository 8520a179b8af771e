"""W3: services of the host and of a neighbour, sockets of every family, names, and inherited descriptors."""

from __future__ import annotations

from cellblock import Session
from cellblock_attacks.attack import Attack, one_of
from cellblock_attacks.host import LIMITS, Host, outcome_of

_NAMESPACE = "the network namespace: its loopback is the session's own"
_UNREACHABLE = "the network namespace: no route leads out"
_FAMILIES = "seccomp's list of socket families"


def _cell(name: str, wall: str, expect: object, cell: str) -> Attack:
    return Attack(name=f"network-{name}", threat="W3", wall=wall, expect=expect, cell="import socket\n" + _DIAL + cell)


_DESCRIPTORS = """
import os
def kind(number):
    where = os.readlink(f"/proc/self/fd/{number}")
    return where.split(":")[0] if ":" in where else os.path.basename(where)
found = {}
for number in range(1024):
    try:
        found[kind(number)] = found.get(kind(number), 0) + 1
    except OSError:
        continue
found
"""

_DIAL = """
def dial(address, family=socket.AF_INET, kind=socket.SOCK_STREAM):
    with socket.socket(family, kind) as one:
        one.settimeout(0.5)
        try:
            one.connect(address)
            if kind == socket.SOCK_DGRAM:
                one.send(b"x")
            return one.recv(100).decode()
        except TimeoutError:
            return "timed out"
        except OSError as error:
            return name_of(error)
"""


def _in_a_new_session(host: Host) -> object:
    with Session(limits=LIMITS) as session:
        return outcome_of(session, _DESCRIPTORS)


ATTACKS: tuple[Attack, ...] = (
    _cell("tcp-of-the-host", _NAMESPACE, "ECONNREFUSED", "dial(('127.0.0.1', facts['tcp']))"),
    _cell(
        "tcp-by-other-names-of-loopback",
        _NAMESPACE,
        ["ECONNREFUSED"],
        """
sorted({dial((name, facts["tcp"])) for name in ("localhost", "127.0.0.2", "0.0.0.0", "127.255.255.254")})
""",
    ),
    _cell(
        "udp-of-the-host",
        _NAMESPACE,
        one_of("ECONNREFUSED", "timed out"),
        """
dial(("127.0.0.1", facts["udp"]), kind=socket.SOCK_DGRAM)
""",
    ),
    _cell(
        "tcp6-of-the-host",
        _NAMESPACE,
        one_of("ECONNREFUSED", "EADDRNOTAVAIL", "EAFNOSUPPORT"),
        """
attempt(dial, ("::1", facts.get("tcp6", 9)), socket.AF_INET6)
""",
    ),
    _cell(
        "tcp-mapped-into-ipv6",
        _NAMESPACE,
        one_of("ECONNREFUSED", "EAFNOSUPPORT"),
        """
attempt(dial, ("::ffff:127.0.0.1", facts["tcp"]), socket.AF_INET6)
""",
    ),
    _cell("abstract-socket-of-the-host", _NAMESPACE, "ECONNREFUSED", "dial(facts['abstract'], socket.AF_UNIX)"),
    _cell(
        "unix-socket-of-the-host",
        "the session's root holds no such path",
        "ENOENT",
        "dial(facts['unix'], socket.AF_UNIX)",
    ),
    _cell(
        "well-known-sockets",
        "the session's root holds no such path",
        ["ENOENT"],
        """
sorted({dial(path, socket.AF_UNIX) for path in ("/run/docker.sock", "/var/run/docker.sock",
    "/run/containerd/containerd.sock",
        "/run/dbus/system_bus_socket", "/run/systemd/private", "/dev/log", "/tmp/.X11-unix/X0")})
""",
    ),
    _cell("neighbour", _NAMESPACE, "ECONNREFUSED", "dial(('127.0.0.1', facts['neighbour_port']))"),
    _cell("abstract-socket-of-a-neighbour", _NAMESPACE, "ECONNREFUSED", "dial('\\0neighbour', socket.AF_UNIX)"),
    _cell(
        "outside-by-address",
        _UNREACHABLE,
        ["ENETUNREACH"],
        """
sorted({dial((address, 9)) for address in ("192.0.2.1", "10.0.0.1", "172.16.0.1", "169.254.169.254", "192.168.0.1")})
""",
    ),
    _cell("outside-by-udp", _UNREACHABLE, "ENETUNREACH", "dial(('192.0.2.1', 53), kind=socket.SOCK_DGRAM)"),
    _cell(
        "outside-by-ipv6",
        _UNREACHABLE,
        one_of(["ENETUNREACH"], ["EADDRNOTAVAIL"], ["EAFNOSUPPORT"]),
        """
sorted({attempt(dial, (address, 9), socket.AF_INET6) for address in ("2001:db8::1", "fd00::1", "64:ff9b::1")})
""",
    ),
    _cell(
        "broadcast-and-multicast",
        _UNREACHABLE,
        ["ENETUNREACH"],
        """
def shout(address):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        return one.sendto(b"x", (address, 9))
sorted({attempt(shout, address) for address in ("255.255.255.255", "224.0.0.1")})
""",
    ),
    _cell(
        "names",
        _UNREACHABLE,
        ["EAI_AGAIN"],
        """
codes = {value: name for name, value in vars(socket).items() if name.startswith("EAI_")}
def resolve(name):
    try:
        return socket.getaddrinfo(name, 80)
    except socket.gaierror as error:
        return codes[error.errno]
sorted({resolve(name) for name in ("host.invalid", "metadata.internal")})
""",
    ),
    _cell(
        "other-families",
        _FAMILIES,
        {"refused": ["EAFNOSUPPORT"], "given": [1, 2, 10]},
        """
def family(number):
    answers = {call("socket", number, kind, 0) for kind in (1, 2, 3, 5)}
    return sorted(answer for answer in answers)
answers = {number: family(number) for number in range(60)}
for number in os.listdir("/proc/self/fd"):
    if int(number) > 30: attempt(os.close, int(number))
given = [number for number, found in answers.items() if any(one.startswith("returned") for one in found)]
{"refused": sorted({one for number, found in answers.items() if number not in given for one in found}), "given": given}
""",
    ),
    _cell(
        "raw-sockets",
        "seccomp's list of socket types",
        ["EPERM"],
        """
sorted({call("socket", family, kind, protocol) for family in (2, 10) for kind in (3, 4, 6, 10)
    for protocol in (0, 1, 58, 255)})
""",
    ),
    _cell(
        "other-protocols",
        "seccomp's list of protocols",
        ["EPROTONOSUPPORT"],
        """
sorted({call("socket", 2, kind, protocol) for kind, protocol in ((1, 262), (2, 1), (1, 132), (5, 132), (2, 136))})
""",
    ),
    _cell(
        "connect-inside-a-send",
        "seccomp: TCP Fast Open",
        "ENOTSUP",
        """
with socket.socket() as one:
    answer = attempt(one.sendto, b"x", 0x20000000, ("127.0.0.1", facts["tcp"]))
answer
""",
    ),
    _cell(
        "interfaces",
        _NAMESPACE,
        ["lo"],
        """
[line.split(":")[0].strip() for line in read("/proc/net/dev").splitlines()[2:]]
""",
    ),
    _cell(
        "change-interfaces",
        "empty capability sets",
        ["EPERM"],
        """
import fcntl, struct
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
    answers = sorted({attempt(fcntl.ioctl, one, number, struct.pack("16s16s8x", b"lo", b""))
        for number in (0x8914, 0x8916, 0x891C, 0x8922)})
answers
""",
    ),
    _cell(
        "low-ports",
        "empty capability sets",
        "EACCES",
        """
with socket.socket() as one:
    answer = attempt(one.bind, ("127.0.0.1", 80)) or "bound"
answer
""",
    ),
    Attack(
        name="network-inherited-descriptors",
        threat="W3",
        wall="the worker keeps its socket, the end of the next checkpoint, two pipes with their spares, and its meter",
        expect={"null": 1, "pipe": 4, "socket": 2, "clear_refs": 1},
        host=_in_a_new_session,
    ),
    _cell(
        "pipes-lead-out-only",
        "pipes are write ends",
        ["EBADF"],
        """
sorted({attempt(os.read, number, 1) for number in (1, 2)})
""",
    ),
    _cell(
        "pipes-opened-again-for-reading",
        "another user made them, on the host",
        one_of(["EACCES"], ["opened"]),
        """
def reopen(number):
    os.close(os.open(f"/proc/self/fd/{number}", os.O_RDONLY | os.O_NONBLOCK))
    return "opened"
sorted({attempt(reopen, number) for number in (1, 2)})
""",
    ),
    _cell(
        "who-is-at-the-other-end",
        "the pid namespace hides the host's pid",
        0,
        """
import struct
one = socket.socket(fileno=os.dup(channel()))
peer, _, _ = struct.unpack("3i", one.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
one.close()
peer
""",
    ),
)
