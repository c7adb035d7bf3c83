"""Limits the connections of one process, and chooses which one to close when there are too many."""

import resource
from collections.abc import Callable
from typing import Protocol

from arco_catalog.cli.errors import CliError

KEPT_FOR_OTHERS = 128
"""Descriptors that connections leave to the store, its files and locks, and the process itself. A local store has
sixteen threads with up to five at a time each, S3 has 64 connections."""
FEWEST = 16
"""Connections without which serving makes no sense."""
MAX_KEPT_BYTES = 4 << 20
"""Bytes that all connections together may have sent of heads that are not complete, or wait behind other requests: in
memory they are up to 26 times as many."""
IDLE_SECONDS = 5.0
"""How long a connection that has been used is idle before it makes room for another. A client that sends just then
does not learn whether its request arrived, so the new ones wait that long in the system's queue."""


class Member(Protocol):
    """A connection."""

    @property
    def kept_bytes(self) -> int: ...

    def cut(self) -> None: ...


class Crowd:
    """At most so many connections. To make room, those are cut that have never completed a request's head, the oldest
    first; then those that have been idle longest; and never one with a request under way."""

    def __init__(self, most: int, clock: Callable[[], float], most_kept_bytes: int = MAX_KEPT_BYTES) -> None:
        self.most = most
        self.kept_bytes = 0
        self._clock = clock
        self._most_kept_bytes = most_kept_bytes
        self._here = 0
        self._leaving: set[Member] = set()
        self._new: dict[Member, None] = {}
        self._idle: dict[Member, float] = {}
        self.when_one_leaves: Callable[[], None] = lambda: None

    @property
    def full(self) -> bool:
        """Whether another would be one too many."""
        return self._here >= self.most

    def expect(self) -> None:
        """One more has been accepted: it counts from now on."""
        self._here += 1

    def lost(self) -> None:
        """One that was accepted did not become a connection."""
        self._here -= 1
        self.when_one_leaves()

    def came(self, member: Member) -> None:
        """Its first request may begin."""
        self._new[member] = None

    def busy(self, member: Member) -> None:
        """It has a request under way."""
        self._new.pop(member, None)
        self._idle.pop(member, None)

    def idle(self, member: Member) -> None:
        """Its request is answered, and no other has come."""
        if member not in self._leaving:
            self._idle[member] = self._clock()

    def left(self, member: Member) -> None:
        """It is no more."""
        self.busy(member)
        self._leaving.discard(member)
        self.lost()

    def make_room(self) -> bool:
        """Cuts one connection, unless one is leaving already. False if none may be cut now."""
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
        """Closes the connection with the most buffered bytes if the total exceeds the limit. `member` just sent."""
        leaving = sum(each.kept_bytes for each in self._leaving)
        if self.kept_bytes - leaving > self._most_kept_bytes:
            waiting = [each for each in (*self._new, *self._idle) if each.kept_bytes]
            self._cut(max(waiting, key=lambda each: each.kept_bytes, default=member))

    def _cut(self, member: Member) -> None:
        self.busy(member)
        self._leaving.add(member)
        member.cut()


def most_connections(wanted: int) -> int:
    """How many connections there may be, at most as many as `wanted`: raises the process's own limit of descriptors as
    far as it needs and may. Raises `CliError` if that leaves too few."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted + KEPT_FOR_OTHERS
    if soft != resource.RLIM_INFINITY and soft < needed and soft != hard:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    most = wanted if soft == resource.RLIM_INFINITY else min(wanted, soft - KEPT_FOR_OTHERS)
    if most < min(wanted, FEWEST):
        raise CliError(
            f"the limit of open files is {soft}: arco serve needs at least {KEPT_FOR_OTHERS + FEWEST}, "
            f"{KEPT_FOR_OTHERS} of them for the store; raise it with ulimit -n"
        )
    return most
