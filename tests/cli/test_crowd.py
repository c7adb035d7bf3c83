"""Who goes when there are too many connections, by a clock that the test turns."""

import asyncio
import resource
import socket
from contextlib import ExitStack

import pytest

from arco_catalog.cli import accepting
from arco_catalog.cli.crowd import FEWEST, IDLE_SECONDS, KEPT_FOR_OTHERS, Crowd, max_connections
from arco_catalog.cli.errors import CliError
from tests.support.fake_runtime import FakeRuntime


class Connection:
    def __init__(self, crowd: Crowd, kept_bytes: int = 0) -> None:
        self.kept_bytes = kept_bytes
        self.was_cut = False
        crowd.kept_bytes += kept_bytes
        crowd.expect()
        crowd.add(self)

    def cut(self) -> None:
        self.was_cut = True


def crowd_of(limit: int) -> tuple[Crowd, FakeRuntime]:
    clock = FakeRuntime()
    return Crowd(limit, lambda: clock.ms / 1_000, max_kept_bytes=100), clock


def cut(*connections: Connection) -> list[bool]:
    return [connection.was_cut for connection in connections]


def test_it_is_full_until_one_has_left() -> None:
    crowd, _ = crowd_of(2)
    first, _second = Connection(crowd), Connection(crowd)
    assert crowd.full
    assert crowd.make_room()
    assert crowd.full
    crowd.left(first)
    assert not crowd.full


async def test_every_listener_accepts_again_once_a_connection_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accepting, "PAUSE_SECONDS", 3_600.0)
    crowd, _ = crowd_of(1)
    crowd.expect()
    made: asyncio.Queue[asyncio.Protocol] = asyncio.Queue()

    def make() -> asyncio.Protocol:
        made.put_nowait(protocol := asyncio.Protocol())
        return protocol

    with ExitStack() as stack:
        listeners = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(2)]
        acceptors = [accepting.Acceptor(listener, crowd, make) for listener in listeners]
        for listener in listeners:
            stack.enter_context(socket.create_connection(listener.getsockname()))
        for _ in range(10):
            await asyncio.sleep(0)  # a turn of the event loop: both listeners pause, since there is no room
        assert made.empty()

        for _ in listeners:
            crowd.lost()
            async with asyncio.timeout(10):
                await made.get()
        for acceptor in acceptors:
            acceptor.close()


def test_the_oldest_that_never_completed_a_head_goes_first() -> None:
    crowd, clock = crowd_of(3)
    idle, older, newer = Connection(crowd), Connection(crowd), Connection(crowd)
    crowd.busy(idle)
    crowd.idle(idle)
    clock.ms += 100_000
    assert crowd.make_room()
    assert cut(idle, older, newer) == [False, True, False]


def test_while_one_is_leaving_no_other_is_cut() -> None:
    crowd, _ = crowd_of(2)
    older, newer = Connection(crowd), Connection(crowd)
    assert [crowd.make_room(), crowd.make_room()] == [True, True]
    assert cut(older, newer) == [True, False]
    crowd.left(older)
    assert crowd.make_room()
    assert newer.was_cut


def test_one_with_a_request_under_way_is_never_cut() -> None:
    crowd, clock = crowd_of(1)
    busy = Connection(crowd)
    crowd.busy(busy)
    clock.ms += 1_000_000
    assert not crowd.make_room()
    assert not busy.was_cut


def test_who_has_been_idle_longest_goes_once_that_is_long_enough() -> None:
    crowd, clock = crowd_of(2)
    began_ms = clock.ms
    first, second = Connection(crowd), Connection(crowd)
    for connection in (second, first):
        crowd.busy(connection)
        crowd.idle(connection)
        clock.ms += 1_000
    clock.ms = began_ms + round(IDLE_SECONDS * 1_000) - 100
    assert not crowd.make_room()
    clock.ms += 100
    assert crowd.make_room()
    assert cut(first, second) == [False, True]


def test_the_sender_of_the_largest_head_is_cut_when_too_much_is_kept() -> None:
    crowd, _ = crowd_of(9)
    small, large, busy = Connection(crowd, 10), Connection(crowd, 60), Connection(crowd, 80)
    crowd.busy(busy)
    crowd.check_kept(small)
    assert cut(small, large, busy) == [False, True, False]
    crowd.check_kept(small)
    assert cut(small, large, busy) == [False, True, False], "with the one that leaves it is little enough"


def test_who_sends_goes_if_there_is_no_other() -> None:
    crowd, _ = crowd_of(9)
    busy = Connection(crowd, 101)
    crowd.busy(busy)
    crowd.check_kept(busy)
    assert busy.was_cut


def test_one_that_is_cut_as_its_request_ends_is_not_idle() -> None:
    crowd, clock = crowd_of(9)
    busy = Connection(crowd, 101)
    crowd.busy(busy)
    crowd.check_kept(busy)
    crowd.idle(busy)
    crowd.left(busy)
    clock.ms += 1_000_000
    assert not crowd.make_room()


@pytest.mark.parametrize(
    ("limits", "wanted", "limit", "raised_to"),
    [
        ((1024, 4096), 512, 512, None),
        ((256, 256), 512, 256 - KEPT_FOR_OTHERS, None),
        ((256, 4096), 512, 512, 512 + KEPT_FOR_OTHERS),
        ((256, 400), 512, 400 - KEPT_FOR_OTHERS, 400),
        ((256, resource.RLIM_INFINITY), 512, 512, 512 + KEPT_FOR_OTHERS),
        ((resource.RLIM_INFINITY, resource.RLIM_INFINITY), 512, 512, None),
        ((256, 256), 3, 3, None),
    ],
)
def test_connections_leave_descriptors_to_the_store(
    limits: tuple[int, int], wanted: int, limit: int, raised_to: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    report: list[int] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits)
    monkeypatch.setattr(resource, "setrlimit", lambda _, to: report.append(to[0]))

    assert max_connections(wanted) == limit
    assert report == ([] if raised_to is None else [raised_to])


def test_too_few_descriptors_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    few = KEPT_FOR_OTHERS + FEWEST - 1
    monkeypatch.setattr(resource, "getrlimit", lambda _: (few, few))

    with pytest.raises(CliError, match=f"the limit of open files is {few}"):
        max_connections(512)
