"""Clients that append rows to branches as engines do, with manifests and lists, so that the catalog can rebase their
commits (docs/design/appends.md); and those beside them that make branches and expire snapshots."""

from typing import Any, Final, cast

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state.fields import mapping
from storage_backends import Found, ObjectStore, Version
from tests.simulation.bucket import Stored
from tests.simulation.programs.requests import Request
from tests.simulation.world import World
from tools.support.appended_files import REBASE, Lake

MAIN: Final = "main"
AUDIT: Final = "audit"
MERGE: Final[dict[str, str]] = {}
"""The summary of a MERGE that has matched nothing: its commit must be refused once it has lost."""
KAFKA: Final = {**REBASE, "kafka.connect.commit-id": "7"}
"""That of a coordinator of Kafka Connect, which recognises its own commits."""
_KINDS: Final = ((MAIN, REBASE), (AUDIT, REBASE), (MAIN, MERGE), (MAIN, KAFKA))
APPENDS: Final = len(_KINDS)
"""The choices of an append."""


def branch_of(request: Request) -> str:
    """The branch to which a request appends."""
    return _KINDS[request.choice][0]


def may_be_rebased(request: Request) -> bool:
    """Whether an append requests to be rebased, and relies on no conflict."""
    return request.kind == "add-rows" and _KINDS[request.choice][1] == REBASE


class _Folder:
    """The files of tables, as engines write and read them: at once, whatever happens to the catalog's calls."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def put(self, key: str, body: bytes, when: object) -> None:
        """Writes a file."""
        self._world.fill({key: Stored(body, Version(key), self._world.runtime.now_ms())})

    async def get(self, key: str) -> Found:
        """Reads a file, which must exist."""
        body = self._world.peek(key)
        assert body is not None, key
        return Found(body, Version(key), 0, 0)


async def append_body(world: World, request: Request, base: JsonObject, number: int) -> JsonObject | None:
    """The commit of an append of one row, on a table as it was loaded, with its files written. None if the table lacks
    the branch."""
    branch, summary = _KINDS[request.choice]
    if branch != MAIN and branch not in mapping(base, "refs"):
        return None
    lake = Lake(cast(ObjectStore, _Folder(world)))
    await lake.write(f"{base['location']}/data/{number}.parquet", b"a row")
    return cast(JsonObject, await lake.append(base, number, branch=branch, summary=summary))


async def compaction_body(world: World, base: JsonObject, number: int) -> JsonObject | None:
    """The commit that puts all rows of main into one manifest, with its files written. None if there are none, or if
    rows have ids."""
    document: Any = base
    if MAIN not in mapping(base, "refs") or document["format-version"] != 2:
        return None
    lake = Lake(cast(ObjectStore, _Folder(world)))
    return cast(JsonObject, await lake.compact(base, number))


def branch_updates(base: JsonObject) -> list[Any]:
    """The updates that make a branch of the present snapshot; none where there is one already, or no snapshot."""
    refs: Any = mapping(base, "refs")
    if MAIN not in refs or AUDIT in refs:
        return []
    ref = {"type": "branch", "ref-name": AUDIT, "snapshot-id": refs[MAIN]["snapshot-id"]}
    return [{"action": "set-snapshot-ref", **ref}]


def expiry_updates(base: JsonObject) -> list[Any]:
    """The updates that remove all snapshots but those of branches; none where there are no others."""
    document: Any = base
    heads = {ref["snapshot-id"] for ref in document.get("refs", {}).values()}
    old = [each["snapshot-id"] for each in document.get("snapshots", []) if each["snapshot-id"] not in heads]
    return [{"action": "remove-snapshots", "snapshot-ids": old}] if old else []
