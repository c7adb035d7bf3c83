"""Limits the number of connections of one server process and the bytes that they buffer, and chooses which one to close
when there are too many."""

import resource
from collections.abc import Callable
from typing import Literal, Protocol

from arco_catalog.cli.errors import CliError

KEPT_FOR_OTHERS = 128
"""Descriptors that connections leave to the store, its files and locks, and the process itself. A local store has
sixteen threads with up to five at a time each, S3 has 64 connections."""
FEWEST = 16
"""Minimum number of connections with which a server starts."""
MAX_KEPT_BYTES = 4 << 20
"""Maximum number of bytes that all connections together buffer: incomplete request heads, and requests that wait behind
another. In memory they take up to 26 times as much."""
IDLE_SECONDS = 5.0
"""A used connection is closed for another only after this time without a request. A client that sends while its
connection is closed can't know whether the request arrived, so new connections rather wait in the kernel's queue."""


RefusalReason = Literal["malformed", "head-too-large", "head-too-slow", "pipelined", "buffers-full"]
"""Why a connection refused a request that the app never got: it is not HTTP; its target and headers are too large, or
took too long; too many requests waited behind another; all connections together buffered too much."""


class Member(Protocol):
    """A connection, as `Crowd` sees it: `kept_bytes` is how many bytes it buffers, and `cut` closes it at once."""

    @property
    def kept_bytes(self) -> int:
        """Bytes that the connection holds in memory: incomplete heads, and waiting requests."""
        ...

    def cut(self) -> None:
        """Closes the connection at once, even while a request is under way."""
        ...


class Crowd:
    """The connections of one server process, of which there are at most `limit`. To make room for another, the oldest
    one that has never completed a request's head is cut; if there is none, the one that has been idle longest, but for
    `IDLE_SECONDS` at least. A connection with a request under way is never cut to make room, only when all together
    buffer more than `max_kept_bytes`."""

    def __init__(self, limit: int, clock: Callable[[], float], max_kept_bytes: int = MAX_KEPT_BYTES) -> None:
        self.limit = limit
        self.kept_bytes = 0
        self._clock = clock
        self._max_kept_bytes = max_kept_bytes
        self._count = 0
        self._leaving: set[Member] = set()
        self._new: dict[Member, None] = {}
        self._idle: dict[Member, float] = {}
        self.when_one_leaves: list[Callable[[], None]] = []
        self.when_size_changes: Callable[[int], None] = lambda count: None
        """Gets the number of connections whenever that changes."""
        self.when_one_is_refused: Callable[[RefusalReason], None] = lambda reason: None
        """Gets the reason for each request that a connection has refused, and for a connection that is cut since too
        many bytes are buffered."""

    @property
    def full(self) -> bool:
        """Whether one more connection would exceed the limit of the process."""
        return self._count >= self.limit

    def expect(self) -> None:
        """Counts one more connection of the process, which was accepted, and calls `when_size_changes`. `add` follows
        when the connection has a protocol, after the TLS handshake."""
        self._count += 1
        self.when_size_changes(self._count)

    def lost(self) -> None:
        """Counts one connection of the process less: an accepted socket was closed, before or after `add`. Calls
        `when_size_changes` and `when_one_leaves`."""
        self._count -= 1
        self.when_size_changes(self._count)
        for resume in self.when_one_leaves:
            resume()

    def add(self, member: Member) -> None:
        """Records a connection that has sent no complete head of a request yet. Until it does, it may be cut to make
        room."""
        self._new[member] = None

    def busy(self, member: Member) -> None:
        """Records that the connection has a request under way, so that it is not cut to make room for another."""
        self._new.pop(member, None)
        self._idle.pop(member, None)

    def idle(self, member: Member) -> None:
        """Records that the connection has no request since now, unless it is being cut."""
        if member not in self._leaving:
            self._idle[member] = self._clock()

    def left(self, member: Member) -> None:
        """Removes a connection that was closed, and counts one less, by which `when_size_changes` and `when_one_leaves`
        are called."""
        self.busy(member)
        self._leaving.discard(member)
        self.lost()

    def make_room(self) -> bool:
        """Cuts the oldest connection that has not sent a request yet, or else the one that has been idle longest, if
        that is at least `IDLE_SECONDS`. Cuts none while one that was cut is not closed yet. Returns whether room will
        be made: false if no connection may be cut."""
        if self._leaving:
            return True
        if self._new:
            self._cut(next(iter(self._new)))
            return True
        if self._idle:
            longest, since = next(iter(self._idle.items()))
            if self._clock() - since >= IDLE_SECONDS:
                self._cut(longest)
                return True
        return False

    def check_kept(self, member: Member) -> None:
        """Cuts a connection, and reports that to `when_one_is_refused`, if all that are not being cut already buffer
        more than the limit together: the new or idle one that buffers the largest number of bytes, or `member`, which
        has just sent, if no such connection buffers any."""
        leaving = sum(each.kept_bytes for each in self._leaving)
        if self.kept_bytes - leaving > self._max_kept_bytes:
            waiting = [each for each in (*self._new, *self._idle) if each.kept_bytes]
            self.when_one_is_refused("buffers-full")
            self._cut(max(waiting, key=lambda each: each.kept_bytes, default=member))

    def _cut(self, member: Member) -> None:
        """Closes the connection of a member at once. It counts as leaving, and in the number of connections, until
        `left` is called."""
        self.busy(member)
        self._leaving.add(member)
        member.cut()


def max_connections(wanted: int) -> int:
    """Returns how many connections the process may have: `wanted`, or if the limit of file descriptors is too low for
    that, the limit less `KEPT_FOR_OTHERS`. First raises the process's soft limit if necessary and possible. Raises
    `CliError` if fewer than `FEWEST` connections are possible, and fewer than `wanted`."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted + KEPT_FOR_OTHERS
    if soft != resource.RLIM_INFINITY and soft < needed and soft != hard:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    allowed = wanted if soft == resource.RLIM_INFINITY else min(wanted, soft - KEPT_FOR_OTHERS)
    if allowed < min(wanted, FEWEST):
        raise CliError(
            f"the limit of open files is {soft}, and the server needs {KEPT_FOR_OTHERS + min(wanted, FEWEST)} to "
            f"start, {KEPT_FOR_OTHERS} of them besides connections; raise the hard limit, by ulimit -n as root or in "
            "the settings of the service or container"
        )
    return allowed
