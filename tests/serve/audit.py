"""Compares the answers to clients with the records of the store: metadata logs, receipts, and the registry's
history."""

import os
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from arco_catalog.iceberg.json import JsonObject, loads
from arco_catalog.operations.open import build_catalog
from arco_catalog.operations.receipts import receipts
from arco_catalog.protocol.access import ALLOW_ALL
from arco_catalog.protocol.catalog import Session, Settings
from arco_catalog.protocol.operation_request import OperationRequest
from arco_catalog.state import receipt
from arco_catalog.state.fields import integer, mapping, sequence, text
from arco_catalog.state.index import relations_in
from arco_catalog.state.paths import commit_key
from arco_catalog.state.runtime import SystemRuntime
from storage_backends import Found
from storage_backends.open import open_store
from tests.serve.writers import LAST, NAMESPACE, PERMANENT, Request
from tools.support.arco_server import WAREHOUSE

READING_MS = 60_000


@dataclass(frozen=True)
class Version:
    """One metadata file of a table's log, made by the request `token`."""

    location: str
    document: JsonObject

    @property
    def token(self) -> str:
        return text(mapping(self.document, "properties"), LAST)


@dataclass(frozen=True)
class Operation:
    """One operation of the registry's history, made by the request `token`."""

    kind: str
    token: str
    detail: JsonObject

    @property
    def entity(self) -> str:
        return text(self.detail, "entity")

    @property
    def name(self) -> str:
        return text(self.detail, "name")


@dataclass(frozen=True)
class History:
    """All that happened, oldest first: registry operations, and each created entity's metadata log."""

    operations: Sequence[Operation]
    logs: Mapping[str, Sequence[Version]]
    names: Mapping[str, str]
    """Which entity each name means in the end."""


@asynccontextmanager
async def reading(url: str) -> AsyncIterator[Session]:
    """A look at the store by none of the servers."""
    store, runtime = open_store(url, os.environ), SystemRuntime()
    try:
        catalog = build_catalog(Settings(WAREHOUSE), store, url, (), runtime)
        yield catalog.session(
            OperationRequest("GET", "/", "", None, "auditor", {}, runtime.now_ms() + READING_MS), ALLOW_ALL
        )
    finally:
        await store.close()


async def read_history(session: Session) -> History:
    """Walks back from HEAD along the registry's commits, and from each pointer along its metadata log."""
    head = await session.state.head()
    found: list[Operation] = []
    commit = head.document
    while True:
        found[:0] = [_operation(each) for each in sequence(commit, "operations") if isinstance(each, dict)]
        if not commit.get("parent"):
            break
        commit = (await session.state.registry_commit(text(commit, "parent"))).document
    operations = [each for each in found if each.kind.endswith("-table")]
    logs = {each.entity: await _log(session, each.entity) for each in operations if each.kind == "create-table"}
    level = relations_in((NAMESPACE,))
    names = {key.removeprefix(level): text(entry, "entity") for key, entry in head.index.scan(level)}
    return History(operations, logs, names)


def _operation(stored: JsonObject) -> Operation:
    client = mapping(stored, "source").get("client_info")
    return Operation(text(stored, "kind"), str(client), stored)


async def _log(session: Session, entity: str) -> list[Version]:
    pointer = await session.state.pointer(entity)
    assert pointer is not None, f"{entity} was created and has no pointer"
    versions: list[Version] = []
    location = pointer.metadata.location
    while True:
        document = loads(await session.files.read(location))
        assert isinstance(document, dict)
        versions.append(Version(location, document))
        log = sequence(document, "metadata-log")
        if not log:
            return versions[::-1]
        last = log[-1]
        assert isinstance(last, dict)
        location = text(last, "metadata-file")


def check_answers(history: History, requests: Iterable[Request]) -> None:
    """What was acknowledged happened exactly once, what was refused never, and nothing else did."""
    sent = {request.token: request for request in requests}
    happened = Counter(operation.token for operation in history.operations)
    happened.update(version.token for log in history.logs.values() for version in log[1:])
    unasked = set(happened) - set(sent)
    assert not unasked, f"something happened without a request: {unasked}"
    for request in sent.values():
        times = happened[request.token]
        assert request.acknowledged or request.refused, f"no definite answer: {request}"
        assert times == request.acknowledged, f"happened {times} times: {request}"
        assert request.acknowledged or request.may_fail, f"refused for no reason: {request}"


def check_tables(history: History, requests: Iterable[Request]) -> None:
    """Tables hold what their logs say, from their creation on, and nothing came after a drop was answered."""
    sent = {request.token: request for request in requests}
    for operation in history.operations:
        log = history.logs[operation.entity]
        if operation.kind == "create-table":
            assert log[0].token == operation.token
        if operation.kind == "drop-table":
            answered = sent[operation.token].ended
            assert all(sent[version.token].began < answered for version in log), f"a commit after {operation}"
    for log in history.logs.values():
        appended = {sent[version.token].snapshot for version in log} - {None}
        kept = {
            integer(each, "snapshot-id") for each in sequence(log[-1].document, "snapshots") if isinstance(each, dict)
        }
        assert kept == appended


def check_names(history: History) -> None:
    """Every operation was possible when it was made, and together they lead to the names that there are."""
    live: dict[str, str] = {}
    for operation in history.operations:
        match operation.kind:
            case "create-table":
                assert operation.name not in live, f"created over another: {operation}"
                live[operation.name] = operation.entity
            case "drop-table":
                assert live.pop(operation.name, None) == operation.entity, f"dropped what was not there: {operation}"
            case "rename-table":
                assert live.pop(operation.name, None) == operation.entity, f"renamed what was not there: {operation}"
                renamed = text(mapping(operation.detail, "to"), "name")
                assert renamed not in live, f"renamed over another: {operation}"
                live[renamed] = operation.entity
            case kind:
                raise AssertionError(f"there is no request for {kind}")
    assert live == history.names
    assert set(PERMANENT) <= set(live)


async def check_receipts(session: Session, history: History) -> None:
    """Each metadata file that became current has its receipts, and no other has a committed one."""
    committed: set[str] = set()
    for entity, log in history.logs.items():
        for version in log:
            key = commit_key(entity, version.location)
            committed.add(f"{key}.json")
            pending, done = [
                await session.state.store.get(
                    session.state.paths.receipt(stage, key, integer(version.document, "last-updated-ms"))
                )
                for stage in (receipt.PENDING, receipt.COMMITTED)
            ]
            assert isinstance(pending, Found), f"no receipt of {version.location}"
            pending_receipt = receipt.parse(pending.body, key)
            assert mapping(pending_receipt, "source")["client_info"] == version.token
            if isinstance(done, Found):
                assert done.body == receipt.encode(receipt.committed(pending_receipt))
    async for key in _keys(session, f"{session.state.paths.state}/events/"):
        assert "/committed/" not in key or key.rpartition("/")[2] in committed, f"{key} of what never became current"
    for name, entity in history.names.items():
        listed = [text(each, "metadata_location") for each in await receipts(session, (NAMESPACE,), name)]
        assert listed == [version.location for version in reversed(history.logs[entity])]


async def _keys(session: Session, prefix: str) -> AsyncIterator[str]:
    page = await session.state.store.list(prefix)
    while True:
        for entry in page.entries:
            yield entry.key
        if page.after is None:
            return
        page = await session.state.store.list(prefix, page.after)


async def count_takeovers(session: Session) -> int:
    """How many markers hold more than one attempt and an answer."""
    return len(
        [key async for key in _keys(session, f"{session.state.paths.state}/iceberg_idempotency/") if "/2." in key]
    )
