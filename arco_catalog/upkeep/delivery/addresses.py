"""Which addresses a webhook may have: those of the public internet, unless the operator allowed private ones, but never
those by which clouds serve their machines. The name of a receiver may lead to any address, also to one of this machine
or of its cloud's metadata service."""

from collections.abc import Iterator, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

_EMBEDDING = (IPv6Network("64:ff9b::/96"), IPv6Network("::/96"))
"""Addresses that have an IPv4 address at their end, to which a translator sends (RFC 6052, RFC 4291)."""
_PRIVATE = (IPv6Network("64:ff9b:1::/48"), IPv6Network("fec0::/10"))
"""Addresses that `ipaddress` counts as public: of a network's own translators (RFC 8215), and of sites (RFC 3879)."""
_OF_CLOUDS = (IPv4Network("168.63.129.16/32"), IPv6Network("fd00:ec2::/32"), IPv6Network("fd20:ce::/32"))
"""Addresses, none of them link-local, by which Azure, AWS and Google Cloud serve their machines."""

IpAddress = IPv4Address | IPv6Address


def is_public(address: str) -> bool:
    """Whether an IP address, and each IPv4 address embedded in it, is reached over the public internet, and may be that
    of a webhook at all (`is_usable`)."""
    return is_usable(address) and all(each.is_global and not _is_in(each, _PRIVATE) for each in _all_of(address))


def is_usable(address: str) -> bool:
    """Whether a webhook may have an IP address if private ones are allowed: any but link-local and other ones by which
    clouds give credentials to machines, multicast ones, the unspecified one, and IPv6 addresses in which such an IPv4
    address is embedded."""
    return not any(
        each.is_link_local or each.is_multicast or each.is_unspecified or _is_in(each, _OF_CLOUDS)
        for each in _all_of(address)
    )


def _is_in(address: IpAddress, networks: Sequence[IPv4Network | IPv6Network]) -> bool:
    """Whether an address is in one of these networks."""
    return any(address in network for network in networks)


def _all_of(address: str) -> Iterator[IpAddress]:
    """Yields an address without its zone, and the IPv4 addresses that are embedded in an IPv6 address, to which it may
    lead."""
    parsed = ip_address(address.partition("%")[0])
    yield parsed
    if isinstance(parsed, IPv6Address):
        # ::1 is the machine itself, and embeds nothing
        embeds = _is_in(parsed, _EMBEDDING) and not parsed.is_loopback
        embedded = IPv4Address(int(parsed) & 0xFFFFFFFF) if embeds else None
        teredo = None if parsed.teredo is None else parsed.teredo[1]
        for each in (parsed.ipv4_mapped, parsed.sixtofour, teredo, embedded):
            if each is not None:
                yield each
