"""Compares the event feed with the receipts and the registry's chain, with what clients know, and with what a consumer
and a receiver got (docs/design/events.md, docs/design/delivery.md)."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.events import event_of
from arco_catalog.operations.feed import read_feed
from arco_catalog.protocol.catalog import Session
from arco_catalog.state.feed import FeedRecord
from arco_catalog.state.fields import mapping, objects, optional_text, text
from tests.serve.event_receiver import EventReceiver
from tests.serve.feed_clients import FeedCrowd

MAX_RECORDS = 1_000_000


@dataclass(frozen=True)
class WholeFeed:
    """The whole feed, and what belongs into it: the keys of the committed receipts, and the ids of the registry's
    operations, oldest first."""

    records: Sequence[FeedRecord]
    receipts: frozenset[str]
    operations: Sequence[str]

    @property
    def is_whole(self) -> bool:
        """Whether the feed has as many commits as there are receipts, and ends where the registry's chain does."""
        entered = [record.id for record in self.records if record.kind == "operation"]
        commits = sum(record.kind == "commit" for record in self.records)
        return entered[-1:] == self.operations[-1:] and commits >= len(self.receipts)

    @property
    def events(self) -> list[tuple[str, int]]:
        """The ids and numbers of the events."""
        made = [(record, event_of(record)) for record in self.records]
        return [(text(event, "event-id"), record.number) for record, event in made if event is not None]


async def read_all(session: Session) -> WholeFeed:
    """Reads the feed, the names of all receipts, and the registry's history."""
    state = session.state
    records: list[FeedRecord] = []
    token = None
    while len(records) < MAX_RECORDS:
        page = await read_feed(state, token, 1_000)
        records += page.records
        token = page.token
        if page.is_end:
            break
    keys: set[str] = set()
    listed = await state.store.list(state.paths.events)
    while True:
        keys |= {entry.key for entry in listed.entries if "/iceberg/committed/" in entry.key}
        if listed.after is None:
            break
        listed = await state.store.list(state.paths.events, listed.after)
    return WholeFeed(
        records, frozenset(key.rpartition("/")[2].removesuffix(".json") for key in keys), await _chain(session)
    )


async def _chain(session: Session) -> list[str]:
    commit = (await session.state.head()).document
    found: list[str] = []
    while True:
        found[:0] = [text(each, "id") for each in objects(commit, "operations")]
        if not commit.get("parent"):
            return found
        commit = (await session.state.registry_commit(text(commit, "parent"))).document


def check_feed(feed: WholeFeed) -> None:
    """The feed has each commit that has a receipt once, and each operation since its beginning once, in the order of
    the chains, without a gap."""
    records = feed.records
    assert [record.number for record in records] == [*range(1, len(records) + 1)], "the numbers have a gap"
    assert {record.kind for record in records} <= {"begin", "commit", "operation"}, "there is a gap or a restore"
    times = Counter(record.id for record in records if record.id)
    assert not [each for each, number in times.items() if number > 1], "a change is in the feed twice"
    entered = [record.id for record in records if record.kind == "operation"]
    assert entered == feed.operations[len(feed.operations) - len(entered) :], (
        "the operations are not those of the chain"
    )
    commits = {str(record.details["commit_key"]) for record in records if record.kind == "commit"}
    missing, surplus = feed.receipts - commits, commits - feed.receipts
    assert not missing, f"{len(missing)} commits with receipts are not in the feed"
    assert not surplus, f"{len(surplus)} commits in the feed have no receipt"
    last: dict[str | None, str] = {}
    for record in records:
        if record.file is not None:
            before = optional_text(record.details, "previous_metadata_location")
            known = last.get(record.entity)
            assert before == known or (known is None and record.entity in _registered(feed)), (
                f"{record.number} follows {before}, and the feed has {known}"
            )
            last[record.entity] = record.file.location


def _registered(feed: WholeFeed) -> frozenset[str | None]:
    """The tables that were registered, whose first commit replaces a file of another table."""
    return frozenset(record.entity for record in feed.records if record.details.get("kind") == "register-table")


def check_clients(feed: WholeFeed, crowd: FeedCrowd) -> None:
    """What was acknowledged is in the feed as often as it should be, what was refused is not, and nothing else is."""
    commits, operations = Counter[str](), Counter[tuple[str, str]]()
    for record in feed.records:
        token = _client(record.details)
        if record.kind == "commit":
            commits[token] += 1
        elif record.kind == "operation":
            operations[token, text(record.details, "kind")] += 1
    assert {*commits} <= {request.token for request in crowd.requests}, "there are commits without a request"
    for request in crowd.requests:
        assert request.acknowledged or request.refused, f"no definite answer: {request}"
        expected = crowd.commits[request.token] if request.acknowledged else 0
        assert commits[request.token] == expected, f"{commits[request.token]} commits in the feed of {request}"
        kind = crowd.operations.get(request.token)
        if kind is not None:
            assert operations[request.token, kind] == request.acknowledged, f"operations in the feed of {request}"


def _client(details: JsonObject) -> str:
    """The name of the client that made a change."""
    return str(mapping(details, "source").get("client_info"))


def check_consumer(feed: WholeFeed, got: Sequence[JsonObject]) -> None:
    """A consumer got each event once, in the order of the feed."""
    ids, expected = [text(each, "event-id") for each in got], [name for name, _ in feed.events]
    missing, twice = {*expected} - {*ids}, len(ids) - len({*ids})
    assert not missing, f"the consumer lacks {len(missing)} events"
    assert not twice, f"the consumer has {twice} events twice"
    assert ids == expected, "the consumer has events in another order"


def check_receiver(feed: WholeFeed, receiver: EventReceiver) -> None:
    """A receiver got each event at least once, and those of the feed alone, in its order where repetitions are left
    out."""
    first, expected = [*dict.fromkeys(receiver.taken)], feed.events
    missing = {*expected} - {*first}
    assert not missing, f"the receiver lacks {len(missing)} events"
    assert first == expected, "the receiver has events in another order"
