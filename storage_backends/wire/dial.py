"""Connects to a host of several addresses, some of which may not answer (Happy Eyeballs, RFC 8305).

By hand, since uvloop's `create_connection` has no `happy_eyeballs_delay`.
"""

import asyncio
import socket
from collections.abc import Callable, Sequence
from itertools import chain, zip_longest

NEXT_ADDRESS_S = 0.25
"""How long one address may take before the next is tried beside it: what the RFC recommends."""

Address = tuple[socket.AddressFamily, tuple[object, ...]]
"""A family, and what `connect` takes for it."""
Permits = Callable[[str], bool]
"""Whether connections to an IP address are permitted."""


async def connect(host: str, port: int, permits: Permits | None = None) -> socket.socket:
    """Returns a connected socket that does not block, to the first address of the host that answers, and that `permits`
    permits, if it is given. The next address is tried beside the others after `NEXT_ADDRESS_S`, or once one has failed.
    Raises `OSError` if no address answers; the attempts have no time limit of their own."""
    found = await resolve(host, port)
    permitted = found if permits is None else [each for each in found if permits(str(each[1][0]))]
    addresses = iter(interleaved(permitted))
    failure: BaseException = OSError(f"{host} has no address" + (" that is permitted" if found else ""))
    started: list[asyncio.Task[socket.socket]] = []
    running: set[asyncio.Task[socket.socket]] = set()
    try:
        while True:
            address = next(addresses, None)
            if address is not None:
                started.append(asyncio.create_task(_attempt(*address)))
                running.add(started[-1])
            elif not running:
                raise failure
            patience_s = None if address is None else NEXT_ADDRESS_S
            done, running = await asyncio.wait(running, timeout=patience_s, return_when=asyncio.FIRST_COMPLETED)
            for attempt in done:
                error = attempt.exception()
                if error is None:
                    started.remove(attempt)
                    return attempt.result()
                failure = error
    finally:
        await _give_up(started)


async def resolve(host: str, port: int) -> list[Address]:
    """Returns the addresses of a host, in the order in which the resolver prefers them. Raises `OSError` if it finds
    none."""
    # Python encodes text by rules for all languages, which take a cold start a millisecond to import.
    name = host.encode() if host.isascii() else host
    found = await asyncio.get_running_loop().getaddrinfo(name, port, type=socket.SOCK_STREAM)
    return [(socket.AddressFamily(family), address) for family, _, _, _, address in found]


def interleaved(addresses: Sequence[Address]) -> list[Address]:
    """Returns the addresses of both families in turn, that of the first address first: one that leads nowhere then
    delays by one pause, not by one for each of its addresses."""
    preferred = [each for each in addresses if each[0] == addresses[0][0]]
    others = [each for each in addresses if each[0] != addresses[0][0]]
    return [each for each in chain.from_iterable(zip_longest(preferred, others)) if each is not None]


async def _attempt(family: socket.AddressFamily, address: tuple[object, ...]) -> socket.socket:
    """Returns a socket that is connected to an address. Raises `OSError` if that fails."""
    connecting = socket.socket(family, socket.SOCK_STREAM)
    try:
        connecting.setblocking(False)
        connecting.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await asyncio.get_running_loop().sock_connect(connecting, address)
    except BaseException:
        connecting.close()
        raise
    return connecting


async def _give_up(attempts: Sequence[asyncio.Task[socket.socket]]) -> None:
    """Cancels attempts to connect, and closes the sockets of attempts that have succeeded meanwhile."""
    for attempt in attempts:
        attempt.cancel()
    for late in await asyncio.gather(*attempts, return_exceptions=True):
        if isinstance(late, socket.socket):
            late.close()
