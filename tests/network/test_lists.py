"""What `network=` may list, and which addresses are anybody's."""

import pytest

from cellblock import IsolationUnavailable, Session
from cellblock.executors.door import addresses
from cellblock.executors.door.addresses import is_own, why_not_public
from cellblock.executors.door.message import MAX_HEAD, Refused
from cellblock.executors.door.request import read
from cellblock.network import Traffic, destinations


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("pypi.org:443", "pypi.org:443"),
        ("PyPI.org.:0443", "pypi.org:443"),
        ("a_b.example:1", "a_b.example:1"),
        ("bücher.example:80", "xn--bcher-kva.example:80"),
        ("127.0.0.1:65535", "127.0.0.1:65535"),
        ("[2001:DB8:0::1]:443", "[2001:db8::1]:443"),
    ],
)
def test_a_destination_is_kept_in_one_form(text: str, told: str) -> None:
    assert [str(one) for one in destinations([text, text])] == [told]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("pypi.org", 'write it with its port, as "pypi.org:443"'),
        ("https://pypi.org:443", 'write the host and its port alone, as "pypi.org:443"'),
        ("pypi.org:https", 'write it with its port, as "pypi.org:443"'),
        ("pypi.org:0", "0 is no port"),
        ("pypi.org:65536", "65536 is no port"),
        ("pypi.org:٤٤٣", 'write it with its port, as "pypi.org:443"'),
        (":443", "its host is no name"),
        ("*.pypi.org:443", "there are no patterns: list each host"),
        ("a..b:1", "its host is no name"),
        ("a b:1", "its host is no name"),
        ("user@pypi.org:443", "its host is no name"),
        ("127.1:80", "its host is no address"),
        ("0x7f000001:80", "its host is no address"),
        ("2130706433:80", "its host is no address"),
        ("::1:80", 'write an IPv6 address in brackets, as "[2001:db8::1]:443"'),
        ("[127.0.0.1]:80", "its host is no address"),
        ("[fe80::1%lo]:80", "its host is no address"),
        (f"{'a' * 64}.b:1", "its host is no name: a part of it is too long"),
    ],
)
def test_what_is_no_destination_is_refused_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(ValueError, match="is not a destination") as raised:
        Session(network=[text])
    assert str(raised.value).endswith(f"is not a destination: {why}")


def test_a_text_is_no_list() -> None:
    with pytest.raises(TypeError, match="network is a list of"):
        Session(network="pypi.org:443")


@pytest.mark.parametrize(("level", "options"), [("local", {}), ("isolated", {"walls": "reduced"})])
def test_where_there_is_no_network_namespace_a_list_is_refused(level: str, options: dict[str, str]) -> None:
    with pytest.raises(IsolationUnavailable) as raised:
        Session(trust_level=level, network=["pypi.org:443"], **options)
    assert raised.value.mechanism == "door"


@pytest.mark.threat("W3")
@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "127.255.255.255", "0.0.0.0", "0.1.2.3", "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.0.1",
        "100.64.0.1", "100.127.255.255", "169.254.169.254", "192.0.0.170", "192.0.2.1", "198.18.0.1", "198.51.100.1",
        "203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255", "192.88.99.1",
        "::", "::1", "::127.0.0.1", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "64:ff9b:1::1", "100::1", "2001::1",
        "2001:2::1", "2001:10::1", "2001:20::1", "2001:db8::1", "2002:0808:0808::1", "3fff::1", "fc00::1", "fd00::1",
        "fe80::1", "fe80::1%lo", "2606:4700::1%lo", "fec0::1", "ff02::1", "5f00::1", "", "localhost", "1", "127.1",
    ],
)  # fmt: skip
def test_special_addresses_are_nobody_s(address: str) -> None:
    assert why_not_public(address) != ""


@pytest.mark.parametrize("address", ["8.8.8.8", "1.1.1.1", "172.32.0.1", "100.128.0.1", "2606:4700::1", "2a00:1450::1"])
def test_other_addresses_are_anybody_s(address: str) -> None:
    assert why_not_public(address) == ""


@pytest.mark.parametrize("netlink", [True, False])
def test_the_machine_s_own_addresses_are_known(netlink: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not netlink:

        def refuse(address: str) -> int:
            raise OSError

        monkeypatch.setattr(addresses, "_type_of_route", refuse)
    assert is_own("127.0.0.1")
    assert is_own("127.1.2.3") is netlink
    assert not is_own("192.0.2.1")


_GET = b"GET http://shop.test/a?b HTTP/1.1\r\n"


@pytest.mark.threat("W7")
@pytest.mark.parametrize(
    "head",
    [
        b"", b"\r\n", b"GET\r\n", b"GET http://shop.test/ HTTP/2.0\r\n", b"get http://shop.test/ HTTP/1.1\r\n",
        b"GET  http://shop.test/ HTTP/1.1\r\n", b"GET http://shop.test/ a HTTP/1.1\r\n",
        b"GET http://shop.test/\x00 HTTP/1.1\r\n", b"GET http://shop.test/\xff HTTP/1.1\r\n",
        b"GET https://shop.test/ HTTP/1.1\r\n", b"GET http:///a HTTP/1.1\r\n", b"GET http://a@b/ HTTP/1.1\r\n",
        b"GET http://shop.test:/ HTTP/1.1\r\n", b"GET http://shop.test:1:2/ HTTP/1.1\r\n",
        b"GET http://shop.test/#a HTTP/1.1\r\n", b"GET http://shop.test\\@b/ HTTP/1.1\r\n",
        b"CONNECT shop.test HTTP/1.1\r\n", b"CONNECT shop.test:443/ HTTP/1.1\r\n", b"CONNECT /shop:1 HTTP/1.1\r\n",
        b"CONNECT http://shop.test:443 HTTP/1.1\r\n", b"OPTIONS * HTTP/1.1\r\n",
        _GET + b"a\r\n", _GET + b" a: b\r\n", _GET + b"a : b\r\n", _GET + b"a: b\nc: d\r\n", _GET + b"a: \x00\r\n",
        _GET + b"a: b\rc\r\n", _GET + b": b\r\n", _GET + "ä: b\r\n".encode(),
    ],
)  # fmt: skip
def test_a_malformed_head_is_refused(head: bytes) -> None:
    with pytest.raises(Refused) as raised:
        read(head + b"\r\n")
    assert raised.value.status == 400
    first, _, rest = raised.value.answer().partition(b"\r\n")
    assert first.isascii()
    assert rest.count(b"\r\n\r\n") == 1


def test_a_request_is_sent_on_for_its_own_host_alone() -> None:
    headers = b"Host: bank.test\r\nHOST: bank.test\r\nProxy-Authorization: x\r\nConnection: keep-alive\r\nA:  b\r\n"
    wanted = read(_GET + headers + b"\r\n")
    assert str(wanted.destination) == "shop.test:80"
    assert wanted.head == b"GET /a?b HTTP/1.1\r\nHost: shop.test\r\nA:  b\r\nConnection: close\r\n\r\n"


def test_a_head_as_long_as_may_be_is_read_in_time() -> None:
    many = b"".join(b"a%d: b\r\n" % number for number in range(3000))[: MAX_HEAD - 100].rpartition(b"\r\n")[0]
    assert read(_GET + many + b"\r\n\r\n").head.count(b"\r\n") > 2000


def test_what_has_passed_is_told_by_difference() -> None:
    before = Traffic(connections=1, connections_refused=2, sent_bytes=3, received_bytes=4)
    after = Traffic(connections=2, connections_refused=2, sent_bytes=13, received_bytes=5)
    assert after.since(before) == Traffic(connections=1, connections_refused=0, sent_bytes=10, received_bytes=1)
