"""Examines receipts, markers, transactions, claims, checkpoints and floors for a check, and reports objects of no known
kind."""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

from arco_catalog.iceberg.errors import BadRequest, InternalError
from arco_catalog.planning.lineage_names import event_name
from arco_catalog.protocol.decisions import resolve_for_read
from arco_catalog.state import receipt
from arco_catalog.state.expiry_record import ExpiryRecord
from arco_catalog.state.fields import integer, parse_record, text
from arco_catalog.state.file_directories import parse_shard
from arco_catalog.state.floors import parse_floors
from arco_catalog.state.lineage import decode_event, read_event
from arco_catalog.state.listing import list_objects
from arco_catalog.state.marker import COLLECTED, Slot
from arco_catalog.state.metadata_claim import Claim
from arco_catalog.state.paths import Paths, commit_key, kind_in_state
from arco_catalog.state.pointer import MetadataFile
from arco_catalog.state.proposal import Proposal
from arco_catalog.state.purge_chunks import Chunk
from arco_catalog.state.registry_floor import parse_registry_floor
from arco_catalog.state.tombstone import PURGING
from arco_catalog.state.transaction import Decision
from arco_catalog.upkeep.fsck.codes import Code
from arco_catalog.upkeep.fsck.examination import Examination, Findings
from arco_catalog.upkeep.fsck.findings import Finding
from arco_catalog.upkeep.fsck.repairs import WriteReceipt
from storage_backends import Found

KNOWN = ("manifest", "registry-commit", "registry-index", "registry-value", "pointer", "task", "recovery", "feed")
"""Kinds of objects that other parts examine, and copies that a recovery made, which are not examined."""
OF_SERVICE = ("task", "marker")
"""The kinds of objects that the delegation service has."""
CATALOGS = "catalogs/"
"""The folder with the catalogs of a realm."""

_Examine = Callable[[Examination, str], Awaitable[Sequence[Finding]]]


async def examine_records(examination: Examination) -> Findings:
    """Examines all objects of the state that no other part examines, such as receipts, markers and claims, in one
    listing, but not the copies that a recovery made. Yields the findings, also for objects of no known kind. Collects
    the keys of receipts, and in a realm the directories of catalogs for later parts."""
    state = f"{examination.paths.state}/"
    singles: list[str] = []
    markers: dict[str, list[int]] = defaultdict(list)
    async for each in list_objects(examination.session.state, state):
        rest = each.key.removeprefix(state)
        if examination.is_realm and rest.startswith(CATALOGS):
            folder = state + "/".join(rest.split("/")[:2])
            examination.folders[folder] = max(each.written_ms, examination.folders.get(folder, 0))
            continue
        kind = kind_in_state(rest)
        if examination.is_service and kind not in OF_SERVICE:
            yield _unknown(each.key)
            continue
        if kind in KNOWN:
            continue
        marker, _, file = each.key.rpartition("/")
        slot = file.removesuffix(".json")
        if kind == "marker" and slot.isdecimal():
            markers[marker].append(int(slot))
        else:
            singles.append(each.key)
            if kind == "receipt":
                examination.receipts.add(each.key)

    async for finding in examination.each(singles, partial(_examine, examination)):
        yield finding
    async for finding in examination.each(markers.items(), lambda item: _examine_marker(examination, *item)):
        yield finding


def _unknown(key: str) -> Finding:
    """Returns the finding for an object with a key that no version of the program writes in a state of this sort: a
    catalog's, a realm's or a delegation service's."""
    return Finding(
        Code.OBJECT_UNKNOWN,
        key,
        "no catalog, realm or delegation service has an object with such a key at this place",
    )


def _is_report(paths: Paths, key: str) -> bool:
    """Whether this may be the key of a report that an engine has sent. A report's content is not examined."""
    return key.startswith(paths.reports) and key.endswith(".json") and paths.read_report_day(key) is not None


async def _examine(examination: Examination, key: str) -> Sequence[Finding]:
    """Reads the object at a key, and returns the findings about it, by the kind of record that the key has. Reports,
    requests of scans and late marks are not read, and have no finding."""
    paths = examination.paths
    looks: Mapping[str, _Examine] = {
        paths.events: _examine_receipt,
        paths.transactions: _examine_transaction,
        paths.metadata_claims: _examine_claim,
        paths.registry_floor: _readable(Code.FLOOR_UNREADABLE, parse_registry_floor),
        paths.collector: _readable(Code.FLOOR_UNREADABLE, parse_floors),
        paths.all_file_directories: _readable(Code.CHECKPOINT_UNREADABLE, parse_shard),
        paths.all_purge_chunks: _readable(Code.CHECKPOINT_UNREADABLE, lambda key, found: Chunk.parse(found.body, key)),
        paths.all_expiry_records: _readable(
            Code.CHECKPOINT_UNREADABLE, lambda key, found: ExpiryRecord.parse(found.body, key)
        ),
        paths.operational: _readable(Code.CHECKPOINT_UNREADABLE, lambda key, found: parse_record(found.body, key)),
        paths.proposals: _readable(Code.PROPOSAL_UNREADABLE, lambda key, found: Proposal.parse(found.body, key)),
        paths.bell: _readable(Code.PROPOSAL_UNREADABLE, lambda key, found: text(parse_record(found.body, key), "id")),
        paths.page_key: _readable(
            Code.PAGE_KEY_UNREADABLE, lambda key, found: text(parse_record(found.body, key), "key")
        ),
    }
    look = next((look for prefix, look in looks.items() if key.startswith(prefix)), None)
    if paths.read_late_mark(key) is not None or _is_report(paths, key) or key.startswith(paths.plan_requests):
        return []
    if look is None or not key.endswith(".json"):
        return [_unknown(key)]
    return await look(examination, key)


async def _examine_receipt(examination: Examination, key: str) -> Sequence[Finding]:
    """Returns the findings about a receipt: its form and key, and of a committed one, that the metadata file that it
    replaced is not current, and has a receipt where one must exist: not a moment after the commit, for a registered
    file, without a readable pointer, in a purge, or after a collection. An OpenLineage event at the key is examined as
    such. There are no findings about an object that was deleted since the listing."""
    if examination.paths.is_lineage_event(key):
        return await _examine_lineage_event(examination, key)
    found = await examination.read(key)
    if found is None:
        return []
    try:
        document = receipt.parse(found.body, key)
        entity, location = text(document, "entity"), text(document, "metadata_location")
        name, ms = commit_key(entity, location), integer(document, "metadata_ms")
        base = receipt.base_of(document)
    except InternalError as error:
        return [Finding(Code.RECEIPT_UNREADABLE, key, error.message)]
    stage = receipt.COMMITTED if f"/{receipt.COMMITTED}/" in key else receipt.PENDING
    expected = {receipt.COMMITTED: "IcebergCommitCommitted", receipt.PENDING: "IcebergCommitPending"}[stage]
    if key != examination.paths.receipt(stage, name, ms) or document.get("type") != expected:
        description = f"the object is the receipt of {location} of entity {entity}, and has the key of another receipt"
        return [Finding(Code.RECEIPT_FOREIGN, key, description)]
    pointer = examination.current.get(entity)
    if stage == receipt.PENDING or base is None or pointer is None:
        return []
    if pointer.metadata.location == base.location and await _still_current(examination, entity, base.location):
        description = f"the pointer names {base.location}, which {location} replaced"
        return [Finding(Code.POINTER_OLDER, examination.paths.pointer(entity), description)]
    settled = found.now_ms - found.written_ms > examination.settling_ms
    if not settled or base.location == pointer.registered_from or examination.relations[entity].state == PURGING:
        return []
    return await _examine_replaced(examination, entity, base)


async def _examine_lineage_event(examination: Examination, key: str) -> Sequence[Finding]:
    """Returns a finding if an OpenLineage event can't be read, or has another name than the one of its contents."""
    found = await examination.read(key)
    if found is None:
        return []
    try:
        stored = decode_event(found.body, key)
        name = event_name(found.body, read_event(stored.event), stored.principal)
    except (InternalError, BadRequest) as error:
        return [Finding(Code.RECEIPT_UNREADABLE, key, error.message)]
    if key.endswith(f"/{name}.json"):
        return []
    return [Finding(Code.RECEIPT_FOREIGN, key, "the name is that of another OpenLineage event than the stored one")]


async def _examine_replaced(examination: Examination, entity: str, file: MetadataFile) -> Sequence[Finding]:
    """Returns a finding if a metadata file that is no longer current has no committed receipt, and the receipt can't
    have been collected."""
    path = examination.paths.receipt(receipt.COMMITTED, commit_key(entity, file.location), file.ms)
    if path in examination.receipts or await examination.read(path) is not None:
        return []
    if await examination.may_be_collected(entity, file):
        return []
    description = f"entity {entity}: {file.location}"
    return [Finding(Code.RECEIPT_MISSING, path, description, WriteReceipt(entity, file))]


async def _still_current(examination: Examination, entity: str, location: str) -> bool:
    """Whether the pointer of an entity, read anew, names the metadata file at `location` as the current one."""
    state = examination.session.state
    pointer = await state.pointer(entity)
    return pointer is not None and (await resolve_for_read(state, pointer)).metadata.location == location


async def _examine_transaction(examination: Examination, key: str) -> Sequence[Finding]:
    """Returns a finding if the object of a transaction can't be read, is of another transaction, or is undecided though
    its lease has expired."""
    found = await examination.read(key)
    if found is None:
        return []
    try:
        decision = Decision.parse(found, key)
        named, status = text(decision.document, "transaction"), decision.status
    except InternalError as error:
        return [Finding(Code.TRANSACTION_UNREADABLE, key, error.message)]
    if key != examination.paths.transaction(named):
        description = f"the object is the decision of transaction {named}, and has the key of another one"
        return [Finding(Code.TRANSACTION_FOREIGN, key, description)]
    if status not in ("pending", "committed", "aborted"):
        return [
            Finding(
                Code.TRANSACTION_UNREADABLE, key, f"the decision of the transaction has an unknown status {status!r}"
            )
        ]
    if decision.expired:
        return [
            Finding(
                Code.TRANSACTION_UNDECIDED,
                key,
                f"the transaction is undecided, and was written last {decision.age_ms // 1000:,} s ago: the next write "
                "of one of the tables in it ends it without a commit",
            )
        ]
    return []


async def _examine_claim(examination: Examination, key: str) -> Sequence[Finding]:
    """Returns a finding if the claim on a metadata file can't be read, has an unknown value, or is of another file."""
    found = await examination.read(key)
    if found is None:
        return []
    try:
        document = parse_record(found.body, key)
        file, claim = text(document, "file"), text(document, "claim")
    except InternalError as error:
        return [Finding(Code.CLAIM_UNREADABLE, key, error.message)]
    if claim not in set(Claim):
        return [Finding(Code.CLAIM_UNREADABLE, key, f"the claim of a metadata file has an unknown value {claim!r}")]
    if key == examination.paths.metadata_claim(file):
        return []
    description = f"the object claims the metadata file {file}, and has the key of another claim"
    return [Finding(Code.CLAIM_FOREIGN, key, description)]


def _readable(code: Code, parse: Callable[[str, Found], object]) -> _Examine:
    """Returns the examination of objects that only need to be readable: it has a finding with this code if `parse`
    raises `InternalError`."""

    async def examine(examination: Examination, key: str) -> Sequence[Finding]:
        found = await examination.read(key)
        try:
            if found is not None:
                parse(key, found)
        except InternalError as error:
            return [Finding(code, key, error.message)]
        return []

    return examine


async def _examine_marker(examination: Examination, marker: str, numbers: Sequence[int]) -> Sequence[Finding]:
    """Examines the slots of one marker, `numbers` being those in the listing: every slot up to the greatest must exist,
    be readable and fit the one before it. Ends, without a finding for a missing slot, once the greatest slot no longer
    exists, since a collection is deleting the marker. A final slot with the operation of a registry commit that may
    have become HEAD proves that it did, so HEAD is an older commit: that is a finding, too."""
    findings: list[Finding] = []
    before: Slot | None = None
    for number in range(max(numbers) + 1):
        key = f"{marker}/{number}.json"
        found = await examination.read(key)
        if found is None:
            if await examination.read(f"{marker}/{max(numbers)}.json") is None:
                break  # the collector is at it: slots go from the last to the first
            findings.append(
                Finding(
                    Code.MARKER_GAP, key, f"this slot of a marker is missing, and the later slot {max(numbers)} exists"
                )
            )
            before = None
            continue
        try:
            slot = Slot.parse(found, key)
        except InternalError as error:
            findings.append(Finding(Code.MARKER_UNREADABLE, key, error.message))
            before = None
            continue
        if before is not None and _is_foreign(before, slot):
            findings.append(
                Finding(
                    Code.MARKER_FOREIGN,
                    key,
                    f"the slot can't follow the one before, which is final or not of the attempt {slot.attempt}",
                )
            )
        commit = examination.unconfirmed.get(slot.attempt) if slot.final else None
        if commit is not None and await examination.head_stands():
            description = f"{key} has the answer of commit {commit}, a child of HEAD: choose that commit"
            findings.append(Finding(Code.MANIFEST_OLDER, examination.paths.manifest, description))
        before = slot
    return findings


def _is_foreign(before: Slot, slot: Slot) -> bool:
    """Whether `slot` can't be the slot that follows `before` in a marker: nothing follows a slot with a final answer,
    and a final answer is of the same attempt as the slot before it, unless a collection has closed the marker."""
    if before.final:
        return True
    return slot.final and slot.answer != COLLECTED and slot.attempt != before.attempt
