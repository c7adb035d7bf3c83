"""Begins the plan of a table's scan, and goes on with one that any process began. The catalog stores nothing of a plan
but the request, and only one that is too long for a token, besides an index of many delete files, which plans share
(docs/design/scan-planning.md)."""

import hashlib
from collections.abc import Callable
from functools import partial
from typing import Final, TypeVar

from arco_catalog.iceberg.errors import BadRequest, NoSuchPlanId, NoSuchPlanTask, Unsupported
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.iceberg.scan_request import PlanRequest, Scan
from arco_catalog.operations.load import load_current
from arco_catalog.operations.scans.delete_files import DeleteFiles
from arco_catalog.operations.scans.manifest_source import ManifestSource
from arco_catalog.operations.scans.plan_turns import ANSWER_MEMORY, SENT_WEIGHT, TURN_BYTES, plan_turns
from arco_catalog.operations.scans.planner import PartPlan, Planner, scan_filter
from arco_catalog.operations.scans.scan_table import ScanTable, StateNotFound, requested, table_of
from arco_catalog.operations.scans.tokens import (
    WHOLE,
    InvalidToken,
    Range,
    Token,
    pack_scan,
    read_token,
    unpack_scan,
)
from arco_catalog.planning.answers import TableState
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.request_stats import ScanCounts
from arco_catalog.state.index import Namespace
from arco_catalog.state.worker_threads import off_loop
from storage_backends.lazy_dataclass import dataclass

T = TypeVar("T")

DAY_S: Final = 24 * 3600
COMPRESSION: Final = 300
"""Bytes of a request for each of its bytes in a token: a thread reads one that may be longer than it should be for the
event loop."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The answer to a request for a plan, or for one of its tasks: the state of the table, the token of the plan, and
    what was planned."""

    state: TableState
    token: Token
    planned: PartPlan

    @property
    def plan_tasks(self) -> list[str]:
        """The plan tasks, as clients get them."""
        return self.token.tasks(self.planned.parts)


async def begin(session: Session, namespace: Namespace, name: str, request: PlanRequest) -> Plan:
    """Begins the plan of a scan: returns the first tasks, and stores the request if it is too long for a token. Raises
    the errors of `load_table` and `scan_of`, `BadRequest` for a filter that can't be read or does not fit the schema,
    for a snapshot with a schema that the table no longer has, and for a request that is too long to be stored, the
    errors of `Planner.plan`, and then `Unsupported` for such a request in a read-only catalog."""
    state, source = await _loaded(session, namespace, name)
    try:
        scan, table = await _parsed(session, state, partial(requested, request))
    except StateNotFound as gone:
        raise BadRequest(f"The scan can't be planned with use-snapshot-schema, so plan it without: {gone}") from None
    now_s = session.now_ms() // 1000
    size = session.request.body_bytes
    planner = await _planner(session, state, source, table, scan, size)
    packed = await off_loop(size, partial(pack_scan, scan, now_s // DAY_S))
    token = Token(state.entity, now_s, scan.snapshot_id, packed)
    planned = await _planned(session, source, planner, WHOLE)
    if token.is_stored:
        await _store(session, packed)
    return Plan(state, token, planned)


async def resume(session: Session, namespace: Namespace, name: str, plan_id: str) -> Plan:
    """Plans the scan of a plan's id again from its beginning, and returns the plan as `begin` did. Raises
    `NoSuchPlanId` for an id that is not valid for this table, or not any more, and the errors of `load_table` and
    `Planner.plan`."""
    try:
        return await _resume(session, namespace, name, plan_id, is_task=False)
    except InvalidToken as invalid:
        raise NoSuchPlanId(f"Plan does not exist, so it was not fetched: {invalid}") from None


async def fetch(session: Session, namespace: Namespace, name: str, plan_task: str) -> Plan:
    """Plans the part of a scan that a plan task stands for: returns the tasks of files, and further plan tasks. Raises
    `NoSuchPlanTask` for one that is not valid for this table, or not any more, and the errors of `load_table` and
    `Planner.plan`."""
    try:
        return await _resume(session, namespace, name, plan_task, is_task=True)
    except InvalidToken as invalid:
        raise NoSuchPlanTask(f"Plan task does not exist: {invalid}") from None


async def _resume(session: Session, namespace: Namespace, name: str, text: str, *, is_task: bool) -> Plan:
    """Plans the part of a scan for a token that an earlier plan returned: a plan task's part if `is_task`, else the
    whole scan of a plan id. Raises `InvalidToken`, also if the table does not have the snapshot or schema of the scan
    any more, and the errors of `load_table` and `Planner.plan`."""
    # First: an error of the token would reveal to everybody that the table exists.
    state, source = await _loaded(session, namespace, name)
    received = read_token(text)
    received.check(state.entity, session.now_ms() // 1000, is_task=is_task)
    packed = received.request if received.digest is None else await _stored(session, received.digest)
    size = COMPRESSION * len(packed)
    scan = await off_loop(size, partial(unpack_scan, packed, received.snapshot_id))
    try:
        table = await _parsed(session, state, partial(table_of, scan))
        planner = await _planner(session, state, source, table, scan, size)
    except (StateNotFound, BadRequest) as error:
        raise InvalidToken(str(error)) from None
    planned = await _planned(session, source, planner, received.range or WHOLE)
    token = Token(received.entity, received.issued_s, received.snapshot_id, packed)
    return Plan(state, token, planned)


async def _planner(
    session: Session, state: TableState, source: ManifestSource, table: ScanTable, scan: Scan, size: int
) -> Planner:
    """Returns the planner of a scan of about `size` bytes, whose filter is compiled outside the event loop if that or
    the table's metadata is long: schemas and specs are in it. Raises `BadRequest` for a filter that can't be read, or
    does not fit the schema."""
    size += len(state.metadata)
    of_scan = await off_loop(size, partial(scan_filter, scan, table))
    return Planner(source, table, scan, of_scan, size, partial(DeleteFiles, session, state.entity, source))


async def _planned(session: Session, source: ManifestSource, planner: Planner, part: Range) -> PartPlan:
    """Plans a part of a scan in its turn, and counts it, and what `source` read for it, in the request's statistics.
    Raises the errors of `Planner.plan`, and `OutOfMemory`."""
    with plan_turns().hold(session.hold.owner) as turn:
        await turn.take(TURN_BYTES)
        taken = await session.hold.take(ANSWER_MEMORY)
        planned = await planner.plan(part)
    taken.shrink(SENT_WEIGHT * planned.tasks.size)
    session.stats.scan = ScanCounts(planned.tasks.files, planned.manifests, planned.pruned, source.hits, source.misses)
    return planned


async def _loaded(session: Session, namespace: Namespace, name: str) -> tuple[TableState, ManifestSource]:
    """Returns the state of a table, and what reads its manifests: where access is restricted, only in the table's own
    locations, because a writer of this table could name the manifests of another one. Raises the errors of
    `load_table`."""
    found = await load_current(session, namespace, name, "table")
    return found.answer, ManifestSource(session, found.entry.locations if session.is_restricted else None)


async def _parsed(session: Session, state: TableState, use: Callable[[JsonObject], T]) -> T:
    """Parses the metadata of a table, and returns the result of `use` for the document, which may be in a worker
    thread."""
    return await session.files.parse(state.metadata_location, state.metadata, use)


async def _store(session: Session, packed: bytes) -> None:
    """Stores the compressed bytes of a request under their hash. Raises `Unsupported` in a read-only catalog."""
    if session.settings.read_only_because is not None:
        raise Unsupported(
            "The filter of this scan, with the columns of stats-fields, is too long for a plan of a catalog that is "
            "read-only: use a shorter one, or let the client plan its scans (scan-planning-mode=client)"
        )
    await session.state.create(session.state.paths.plan_request(hashlib.sha256(packed).hexdigest()), packed)


async def _stored(session: Session, digest: str) -> bytes:
    """Returns the compressed bytes of the stored request with this digest. Raises `InvalidToken` if they no longer
    exist, or have another digest."""
    found = await session.state.read(session.state.paths.plan_request(digest))
    if found is None or hashlib.sha256(found.body).hexdigest() != digest:
        raise InvalidToken("the request of the plan is no longer stored: plan the scan again")
    return found.body
