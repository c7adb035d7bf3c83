"""Every object that a busy little catalog leaves, by the role that it has, and the ways to damage it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from arco_catalog.iceberg import table
from arco_catalog.iceberg.json import loads
from arco_catalog.protocol.catalog import Settings
from arco_catalog.protocol.lookup import entries_in
from arco_catalog.state.commit_record import CommitRecord
from arco_catalog.state.entries import NamespaceEntry
from arco_catalog.state.fields import mapping, text
from arco_catalog.state.index import Index
from arco_catalog.state.paths import Paths, record_kind
from arco_catalog.state.pointer import Pointer
from arco_catalog.state.task import ENDED, Task
from arco_catalog.state.tombstone import PURGED, PURGING
from arco_catalog.upkeep.fsck.check import check
from arco_catalog.upkeep.fsck.codes import Code
from arco_catalog.upkeep.fsck.examination import Examination, Relation
from arco_catalog.upkeep.fsck.files import Scope
from storage_backends import (
    ANY,
    Cursor,
    Deleted,
    Found,
    Missing,
    ObjectStore,
    Outcome,
    Page,
    Unchanged,
    Version,
    When,
)
from storage_backends.memory import MemoryStore
from tests.support.fake_runtime import FakeRuntime
from tests.upkeep.fsck.conftest import StoredCatalog
from tools.support.catalog_fixture import CatalogFixture

PATHS = Paths("wh")
PLACE = "memory:///"

Roles = Mapping[str, str]


async def _history(stored: StoredCatalog) -> set[str]:
    """The commits that were HEAD."""
    state = stored.fixture.another().session().state
    listing: CommitRecord = await state.head()
    found = {commit for commit, _ in listing.recent()}
    while listing.before is not None:
        listing = await state.registry_commit(listing.before)
        found |= {commit for commit, _ in listing.recent()}
    return found


async def roles(stored: StoredCatalog) -> Roles:
    """The role of every object that is stored, by its key."""
    examination = Examination(stored.fixture.another().session())
    assert [each async for each in check(examination)] == []
    head = loads(await stored.body(PATHS.manifest))
    assert isinstance(head, dict)
    history = await _history(stored)
    refs = {ref.id for ref in Index.parse(mapping(head, "index")).directory.refs}
    state = stored.fixture.another().session().state
    index = (await state.head()).index
    values = {NamespaceEntry(entry).value async for _, entry in entries_in(state, index, "namespace\n")}
    files = await _files(stored, examination)
    found: dict[str, str] = {}
    for key in stored.store.keys(""):
        name = key.rpartition("/")[2].removesuffix(".json")
        match record_kind(key):
            case "manifest":
                found[key] = "HEAD"
            case "registry-commit" if name not in history:
                found[key] = "commit object that never was HEAD"
            case "registry-commit":
                found[key] = "HEAD's commit object" if name == head["id"] else "commit object"
            case "registry-index":
                found[key] = "segment of HEAD's index" if name in refs else "segment that was replaced"
            case "registry-value":
                used = name in values
                found[key] = "properties of a namespace" if used else "properties that were replaced"
            case "pointer":
                found[key] = _of(examination.relations[name], "pointer")
            case "marker":
                found[key] = "marker's last slot" if name == "1" else "marker's earlier slot"
            case "receipt":
                document = loads(await stored.body(key))
                assert isinstance(document, dict)
                stage = "committed" if "/committed/" in key else "pending"
                found[key] = _of(examination.relations[text(document, "entity")], f"{stage} receipt")
            case "transaction":
                found[key] = "transaction's decision"
            case "operational":
                found[key] = "log of walks"
            case "purge":
                found[key] = "chunk of a purge's inventory"
            case "task":
                found[key] = await _task_role(stored, key)
            case "metadata":
                found[key] = files[key]
            case _:
                found[key] = "claim on a file"
    return found


def _of(relation: Relation, what: str) -> str:
    return f"{what} of a table that is {relation.state}" if relation.state in (PURGING, PURGED) else what


async def _task_role(stored: StoredCatalog, key: str) -> str:
    if key.startswith(PATHS.open_tasks):
        return "hint"
    task = Task.parse(await stored.body(key), key)
    versions = stored.store.keys(PATHS.task(task.id))
    last = Task.parse(await stored.body(PATHS.task_version(task.id, len(versions))), key)
    of = "a task that has ended" if last.status in ENDED else "a task"
    if task.number == len(versions):
        return f"last version of {of}"
    return f"{'first' if task.number == 1 else 'further'} version of {of}"


async def _files(stored: StoredCatalog, examination: Examination) -> Mapping[str, str]:
    """The roles of files of tables and views."""
    found: dict[str, str] = {}
    for key in stored.store.keys("wh/warehouse/"):
        relation = next(
            each
            for each in examination.relations.values()
            for location in sorted(each.locations, key=len, reverse=True)
            if f"{PLACE}{key}".startswith(f"{location}/")
        )
        found[key] = _of_state(relation, _kind_of_file(key))
    for entity, pointer in examination.current.items():
        if examination.relations[entity].state == PURGING:
            continue
        file = pointer.metadata.location
        document = loads(await stored.body(file.removeprefix(PLACE)))
        assert isinstance(document, dict)
        found[file.removeprefix(PLACE)] = "current metadata file"
        if examination.relations[entity].kind == "table":
            for listed in table.manifest_lists(document):
                found[listed.removeprefix(PLACE)] = _list_role(examination.relations[entity])
    return found


def _kind_of_file(key: str) -> str:
    if key.endswith(".metadata.json"):
        return "earlier metadata file"
    if key.endswith("-m0.avro"):
        return "manifest"
    return "statistics file" if key.endswith(".puffin") else "data file"


def _of_state(relation: Relation, what: str) -> str:
    return what if relation.state == "live" else f"file of a table that is {relation.state}"


def _list_role(relation: Relation) -> str:
    return "manifest list" if relation.state == "live" else "manifest list of a dropped table"


async def ways(stored: StoredCatalog, known: Roles, key: str, way: str) -> Sequence[tuple[str, bytes | None]]:
    """What an object may hold after it was damaged in a way, None where it is gone; each with the role that it has
    then. Nothing if it can't be damaged so: it is empty, never had another content, or is the only one of its role."""
    body, role = await stored.body(key), known[key]
    match way:
        case "gone":
            return [(role, None)]
        case "cut":
            return [(role, body[: len(body) // 2])] if body else []
        case "older":
            before = [each for each in stored.bodies[key][:-1] if each != body][-3:]
            return [(_role_of_older(role, body, each), each) for each in before]
    if role == "HEAD":
        return [(role, await _head_of_another())]
    others = [other for other in known if other != key and record_kind(other) == record_kind(key)]
    alike = sorted(others, key=lambda other: known[other] != role)
    bodies = [await stored.body(other) for other in alike[:10]]
    if role == "manifest":  # another one is found by its length alone
        bodies = [each for each in bodies if len(each) != len(body)]
    return [(role, each) for each in bodies if each != body][:1]


async def _head_of_another() -> bytes:
    """HEAD of another catalog."""
    clock = FakeRuntime()
    clock.ms += 1  # ids of its own
    other = CatalogFixture(MemoryStore(), clock, Settings("wh"))
    await other.namespace("theirs")
    found = await other.store.get(PATHS.manifest)
    assert isinstance(found, Found)
    return found.body


def _role_of_older(role: str, body: bytes, older: bytes) -> str:
    """The role of an older version: a pointer that names the same file has lost nothing."""
    if not role.startswith("pointer") or role.endswith(PURGED):
        return role
    file, earlier = _named(body), _named(older)
    return "pointer, older only by a mark, a fence or an intent" if file == earlier else role


def _named(pointer: bytes) -> str:
    """The file that a pointer names, as its intent leaves it: all transactions here have committed."""
    parsed = Pointer.parse(pointer, Version(""), "a pointer")
    return parsed.resolved(committed=True).metadata.location


class DamagedObject(ObjectStore):
    """A store in which one object holds something else, or is gone. Nothing can be written."""

    def __init__(self, store: ObjectStore, key: str, body: bytes | None) -> None:
        self._store = store
        self._key = key
        self._body = body

    async def get(self, key: str, if_changed_from: Version | None = None) -> Found | Unchanged | Missing:
        found = await self._store.get(key, if_changed_from if key != self._key else None)
        if key != self._key or not isinstance(found, Found):
            return found
        if self._body is None:
            return Missing(found.now_ms)
        return replace(found, body=self._body, version=Version("damaged"))

    async def get_range(self, key: str, start: int, length: int) -> Found | Missing:
        found = await self.get(key)
        if not isinstance(found, Found):
            return Missing(found.now_ms)
        return replace(found, body=found.body[start : start + length])

    async def put(self, key: str, body: bytes, when: When) -> Outcome:
        raise AssertionError(f"a check writes {key}")

    async def delete(self, key: str, when: When = ANY) -> Outcome:
        raise AssertionError(f"a check deletes {key}")

    async def delete_many(self, keys: Sequence[str]) -> Deleted:
        raise AssertionError(f"a check deletes {keys}")

    async def list(self, prefix: str, after: Cursor | None = None) -> Page:
        page = await self._store.list(prefix, after)
        left = [each for each in page.entries if self._body is not None or each.key != self._key]
        size = len(self._body or b"")
        return replace(page, entries=[replace(each, size=size) if each.key == self._key else each for each in left])

    async def close(self) -> None:
        return None


async def diagnosed(stored: StoredCatalog, key: str, body: bytes | None) -> frozenset[Code]:
    """Returns the codes that a check with `--data` reports while an object has this body."""
    fixture = replace(stored.fixture, store=DamagedObject(stored.store, key, body))
    return frozenset([each.code async for each in check(Examination(fixture.session()), Scope())])
