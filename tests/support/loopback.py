"""Tests talk to nothing but this machine: a look-up or a connection that would leave it fails where it is tried."""

import ipaddress
import sys

HERE = {"", "localhost", "0.0.0.0", "::"}
EVENTS = {"socket.connect": 1, "socket.sendto": 1, "socket.getaddrinfo": 0}
"""The audit events of calls that may leave the process, and the position of the argument with the address."""


class LeavesThisMachine(AssertionError):
    """A test tried to reach another machine."""


def stays_here(address: object) -> bool:
    """Whether an address, or a name to look up, is one of this machine's."""
    if isinstance(address, tuple):
        address = address[0]
    if address is None or not isinstance(address, str | bytes):
        return True
    name = address.decode() if isinstance(address, bytes) else address
    if name in HERE or name.startswith(("/", "\0")):  # a path, or an abstract name, of a Unix socket
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _watch(event: str, arguments: tuple[object, ...]) -> None:
    place = EVENTS.get(event)
    if place is not None and not stays_here(arguments[place]):
        raise LeavesThisMachine(f"{event}: {arguments[place]!r}")


def stay_here() -> None:
    """From now on nothing in this process leaves the machine. There is no way back, as for any audit hook."""
    sys.addaudithook(_watch)
