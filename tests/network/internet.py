"""`python internet.py`: a machine with an internet of its own, and sessions on it; prints what became of each row.

Two network namespaces, joined by a pair of interfaces. In the one is the internet: public, private and special
addresses, with a server that notes who connects to which. The other is the host: a resolver of its own, which notes
what it is asked, services on its loopback and its own address, and the sessions.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
sys.path.append(str(HERE))
import rows  # noqa: E402

SHOP, SIX, BANK = "93.184.216.34", "2606:2800:220:1::35", "93.184.216.99"
ANY, ANY6 = "198.41.0.4", "2606:2800:99::4"
"""Of networks that the host's routes say are its own."""
HOST, HOST6 = "93.184.216.1", "2606:2800:220:1::1"
THERE = [SHOP, BANK, "10.0.0.5", "169.254.169.254", "192.168.7.7"]
THERE6 = [SIX, "fd00::5"]
PORTS = (80, 8080)
NAMES = {
    "shop.test": [SHOP],
    "six.test": [SIX],
    "both.test": [SHOP, SIX],
    "bank.test": [BANK],
    "local.test": ["127.0.0.1"],
    "local6.test": ["::1"],
    "zero.test": ["0.0.0.0"],
    "inner.test": ["10.0.0.5"],
    "home.test": ["192.168.7.7"],
    "meta.test": ["169.254.169.254"],
    "unique.test": ["fd00::5"],
    "link6.test": ["fe80::5"],
    "mixed.test": [SHOP, "127.0.0.1"],
    "mapped.test": ["::ffff:127.0.0.1"],
    "nat64.test": ["64:ff9b::7f00:1"],
    "sixtofour.test": ["2002:7f00:1::1"],
    "many.test": ["224.0.0.1"],
    "own.test": [HOST],
    "own6.test": [HOST6],
    "any.test": [ANY],
    "any6.test": [ANY6],
    "dead.test": ["93.184.216.77"],
}


def internet(notes: int) -> None:
    """In the other namespace: serve every address and port, and write a line for each connection and request."""

    def note(*what: object) -> None:
        os.write(notes, (json.dumps(what) + "\n").encode())

    def answer(client: socket.socket, address: str, port: int) -> None:
        with client:
            head = b""
            while b"\r\n\r\n" not in head:
                if not (more := client.recv(65536)):
                    return
                head += more
            line, *headers = head.decode("latin-1").split("\r\n")
            path = line.split(" ")[1]
            named = next((one[6:] for one in headers if one.lower().startswith("host: ")), "")
            note(address, port, path, named)
            if path.startswith("/to/"):
                where = path.removeprefix("/to/")
                client.sendall(f"HTTP/1.1 302 there\r\nLocation: http://{where}\r\nContent-Length: 0\r\n\r\n".encode())
            elif path == "/endless":
                client.sendall(b"HTTP/1.1 200 ok\r\n\r\n")
                while True:
                    client.sendall(b"x" * 65536)
            elif path == "/drip":
                client.sendall(b"HTTP/1.1 200 ok\r\nContent-Length: 1000000\r\n\r\n")
                while True:
                    client.sendall(b"x")
                    time.sleep(0.05)
            elif path == "/silent":
                time.sleep(1000)
            elif path == "/head":
                client.sendall(b"HTTP/1.1 200 ok\r\n" + b"a: b\r\n" * 100_000 + b"\r\n")
            else:
                body = f"{address} {path}".encode()
                client.sendall(b"HTTP/1.1 200 ok\r\nContent-Length: %d\r\n\r\n" % len(body) + body)

    def quietly(*words: object) -> None:
        with contextlib.suppress(OSError):
            answer(*words)  # type: ignore[arg-type]

    def serve(address: str, port: int) -> None:
        server = socket.create_server((address, port), family=_family(address), backlog=100)
        while True:
            client, _ = server.accept()
            threading.Thread(target=quietly, args=(client, address, port), daemon=True).start()

    for address in (*THERE, *THERE6):
        for port in PORTS:
            threading.Thread(target=serve, args=(address, port), daemon=True).start()
    time.sleep(0.3)
    note("ready")
    sys.stdin.read()  # until who asked for it is gone


class Resolver:
    """A name server on the host's loopback: `asked` are the names it was asked for. `rebind.test` changes its mind."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self._times = 0
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.53", 53))
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            query, client = self._socket.recvfrom(4096)
            labels, at = [], 12
            while length := query[at]:
                labels.append(query[at + 1 : at + 1 + length].decode())
                at += 1 + length
            (kind,) = struct.unpack_from(">H", query, at + 1)
            name = ".".join(labels).lower()
            self.asked.append(name)
            question = query[12 : at + 5]
            addresses = [one for one in self._addresses(name, kind) if (":" in one) is (kind == 28)]
            answers = b"".join(self._record(kind, one) for one in addresses)
            known = name in NAMES or name == "rebind.test"
            flags = 0x8180 if known else 0x8183
            self._socket.sendto(
                query[:2] + struct.pack(">HHHHH", flags, 1, len(addresses), 0, 0) + question + answers, client
            )

    def _addresses(self, name: str, kind: int) -> list[str]:
        if name == "rebind.test" and kind == 1:
            self._times += 1
            return [SHOP] if self._times == 1 else ["127.0.0.1"]
        return NAMES.get(name, [])

    @staticmethod
    def _record(kind: int, address: str) -> bytes:
        packed = socket.inet_pton(socket.AF_INET6 if kind == 28 else socket.AF_INET, address)
        return struct.pack(">HHHIH", 0xC00C, kind, 1, 0, len(packed)) + packed


class Services:
    """The host's own, on its loopback and its own addresses: `touched` are those that were connected to."""

    def __init__(self) -> None:
        self.touched: list[str] = []
        for address in ("127.0.0.1", "::1", HOST, HOST6, ANY, ANY6):
            for port in PORTS:
                server = socket.socket(_family(address))
                freely = (socket.IPPROTO_IPV6, 78) if ":" in address else (socket.IPPROTO_IP, 15)  # IP_FREEBIND
                server.setsockopt(*freely, 1)
                server.bind((address, port))
                server.listen()
                threading.Thread(target=self._serve, args=(server, f"{address} {port}"), daemon=True).start()

    def _serve(self, server: socket.socket, name: str) -> None:
        while True:
            client, _ = server.accept()
            self.touched.append(name)
            client.close()


def _family(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def furnish() -> Iterator[dict[str, object]]:
    """In new namespaces: files of the resolver's, the interfaces, the internet; what it notes, line by line."""
    folder = Path(tempfile.mkdtemp())
    for name, text in (("resolv.conf", "nameserver 127.0.0.53\n"), ("hosts", ""), ("nsswitch.conf", "hosts: dns\n")):
        (folder / name).write_text(text)
        _call("mount", "--bind", folder / name, f"/etc/{name}")
    notes, end = os.pipe()
    other = subprocess.Popen(
        ["unshare", "-n", sys.executable, __file__, "internet", str(end)], pass_fds=[end], stdin=subprocess.PIPE
    )
    os.close(end)
    time.sleep(0.3)
    _call("ip", "link", "set", "lo", "up")
    _call("ip", "link", "add", "veth0", "type", "veth", "peer", "name", "veth1", "netns", other.pid)
    _call("ip", "addr", "add", f"{HOST}/24", "dev", "veth0")
    _call("ip", "-6", "addr", "add", f"{HOST6}/64", "dev", "veth0", "nodad")
    _call("ip", "link", "set", "veth0", "up")
    inside = ["nsenter", "-t", other.pid, "-n", "ip"]
    _call(*inside, "link", "set", "lo", "up")
    _call(*inside, "link", "set", "veth1", "up")
    for address in THERE:
        _call(*inside, "addr", "add", f"{address}/24", "dev", "veth1")
    for address in THERE6:
        _call(*inside, "-6", "addr", "add", f"{address}/64", "dev", "veth1", "nodad")
    for net in ("10.0.0.0/24", "169.254.169.0/24", "192.168.7.0/24"):
        _call("ip", "route", "add", net, "dev", "veth0")
    _call("ip", "-6", "route", "add", "fd00::/64", "dev", "veth0")
    _call("ip", "route", "add", "local", "198.41.0.0/24", "dev", "lo")
    _call("ip", "-6", "route", "add", "local", "2606:2800:99::/64", "dev", "lo")
    _call(*inside, "route", "add", "default", "via", HOST)
    _call(*inside, "-6", "route", "add", "default", "via", HOST6)
    assert other.stdin is not None
    other.stdin.write(b"go\n")
    other.stdin.flush()
    with open(notes, encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def _call(*words: object) -> None:
    subprocess.run([str(word) for word in words], check=True)


class World:
    """What the rows look at: everything that was reached, asked and touched since the row before."""

    def __init__(self) -> None:
        self.notes: list[object] = []
        self._furnishing = furnish()
        assert next(self._furnishing) == ["ready"]
        threading.Thread(target=self._listen, daemon=True).start()
        self.resolver, self.services = Resolver(), Services()

    def _listen(self) -> None:
        for note in self._furnishing:
            self.notes.append(note)

    def news(self) -> dict[str, object]:
        """And forgets them."""
        time.sleep(0.02)
        found = {
            "reached": self.notes[:],
            "asked": sorted(set(self.resolver.asked)),
            "touched": self.services.touched[:],
        }
        del self.notes[:], self.resolver.asked[:], self.services.touched[:]
        return found


def main() -> None:
    world = World()
    for row in rows.play():
        print(json.dumps({**row, **world.news()}, default=repr), flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["internet"]:
        sys.stdin.readline()
        internet(int(sys.argv[2]))
    elif sys.argv[1:2] == ["main"]:
        main()
        os._exit(0)
    else:
        os.execvp("unshare", ["unshare", "-n", "-m", sys.executable, __file__, "main"])
