"""Public addresses: a name is dialled only where it leads to one."""

from __future__ import annotations

import errno
import socket
import struct
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from cellblock.hosting.sockets import Socket

_NOT_PUBLIC = tuple(
    ip_network(text)
    for text in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
    )
)
"""Of IPv4, as the registry of special-purpose addresses has it, with multicast: interpreters differ in theirs."""

_PUBLIC6 = ip_network("2000::/3")
"""Of IPv6 what is assigned for anybody; all else is loopback, link-local, of a site, multicast, or has IPv4 in it."""
_NOT_PUBLIC6 = tuple(
    ip_network(text)
    for text in (
        "2001::/23",  # Teredo, ORCHID, benchmarks: 2001:4:112::/48 and the like are special as well
        "2001:db8::/32",
        "2002::/16",  # 6to4: an IPv4 address, behind a relay
        "3fff::/20",
    )
)
_DISCARD_PORT = 9
_NO_WAY_THERE = (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL, errno.ENETDOWN, errno.ENETUNREACH, errno.EHOSTUNREACH)
"""Errors of connecting, by TCP as well, where no route leads there."""


def why_not_public(address: str) -> str:
    """The kind of an address that is not public, "" where it is. A zone, or no address, is none."""
    try:
        found = ip_address(address)
    except ValueError:
        return "no address"
    if isinstance(found, IPv4Address):
        return _kind(found) if any(found in network for network in _NOT_PUBLIC) else ""
    if found.scope_id is not None or found not in _PUBLIC6 or any(found in network for network in _NOT_PUBLIC6):
        return _kind(found)
    return ""


_NETLINK_MESSAGE = struct.Struct("=IHHII")  # length, type, flags, sequence, port
_ROUTE = struct.Struct("=8BI")  # family, lengths, …, table, protocol, scope, type, flags
_ATTRIBUTE = struct.Struct("=HH")
_RTM_NEWROUTE, _RTM_GETROUTE, _NLM_F_REQUEST, _RTA_DST = 24, 26, 1, 1
_TYPE_OF_ROUTE = 7
_DELIVERED_HERE = (2, 3, 4)
"""Types of routes: local, broadcast, anycast."""
_KERNEL_SECONDS = 1.0


def is_own(address: str) -> bool:
    """True if what is sent there comes to this machine, where its services listen: one of its own addresses, or what a
    route of its says is. Sends nothing: the kernel is asked."""
    try:
        return _type_of_route(address) in _DELIVERED_HERE
    except OSError:  # no netlink here
        return _is_sent_from_itself(address)


def _type_of_route(address: str) -> int:
    """Of the route to an address; 0 where there is none. OSError where the kernel cannot be asked."""
    family, packed = (socket.AF_INET6 if ":" in address else socket.AF_INET), ip_address(address).packed
    route = _ROUTE.pack(family, len(packed) * 8, 0, 0, 0, 0, 0, 0, 0)
    asked = route + _ATTRIBUTE.pack(_ATTRIBUTE.size + len(packed), _RTA_DST) + packed
    head = _NETLINK_MESSAGE.pack(_NETLINK_MESSAGE.size + len(asked), _RTM_GETROUTE, _NLM_F_REQUEST, 1, 0)
    with Socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as asking:
        asking.settimeout(_KERNEL_SECONDS)
        asking.send(head + asked)
        answer = asking.recv(4096)
    _, kind, *_ = _NETLINK_MESSAGE.unpack_from(answer)
    return answer[_NETLINK_MESSAGE.size + _TYPE_OF_ROUTE] if kind == _RTM_NEWROUTE else 0


def _is_sent_from_itself(address: str) -> bool:
    """True if the kernel would send to an address from that very address."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with Socket(family, socket.SOCK_DGRAM) as asking:
            asking.connect((address, _DISCARD_PORT))
            return ip_address(asking.getsockname()[0]) == ip_address(address)
    except OSError as error:
        return error.errno not in _NO_WAY_THERE


def _kind(address: IPv4Address | IPv6Address) -> str:
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return _kind(address.ipv4_mapped)
    if address.is_loopback or address.is_unspecified:
        return "a loopback address"
    if address.is_link_local:
        return "a link-local address"
    if address.is_multicast:
        return "a multicast address"
    return "a private or special address"
