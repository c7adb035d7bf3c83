"""Which addresses a webhook may have: those of the public internet, unless the operator allowed private ones. The name
of a receiver may lead to any address, also to one of this machine or of its cloud's metadata service."""

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

_EMBEDDING = IPv6Network("64:ff9b::/96")
"""Addresses behind which a translator sends to an IPv4 address (RFC 6052)."""

IpAddress = IPv4Address | IPv6Address


def is_public(address: str) -> bool:
    """Whether an IP address, and each one embedded in it, is reached over the public internet."""
    return all(each.is_global and not each.is_multicast for each in _all_of(address))


def is_usable(address: str) -> bool:
    """Whether a webhook may have an IP address if private ones are allowed: any but link-local ones, by which clouds
    give credentials to machines, and those of groups."""
    return not any(each.is_link_local or each.is_multicast or each.is_unspecified for each in _all_of(address))


def _all_of(address: str) -> Iterator[IpAddress]:
    """Yields an address, and the IPv4 addresses in an IPv6 address to which it may lead."""
    parsed = ip_address(address.partition("%")[0])
    yield parsed
    if isinstance(parsed, IPv6Address):
        embedded = IPv4Address(int(parsed) & 0xFFFFFFFF) if parsed in _EMBEDDING else None
        teredo = None if parsed.teredo is None else parsed.teredo[1]
        for each in (parsed.ipv4_mapped, parsed.sixtofour, teredo, embedded):
            if each is not None:
                yield each
