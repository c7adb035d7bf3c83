"""Records beside the registry and the pointers: receipts, markers, transactions, claims, checkpoints; and what is none
of these."""

from collections import defaultdict
from collections.abc import Sequence

from arco_catalog.iceberg.errors import InternalError
from arco_catalog.operations.fsck.examination import Examination, Findings
from arco_catalog.operations.fsck.findings import Code, Finding
from arco_catalog.state import receipt
from arco_catalog.state.fields import integer, parse_record, text
from arco_catalog.state.marker import Slot
from arco_catalog.state.metadata_claim import Claim
from arco_catalog.state.paths import commit_key, record_kind
from arco_catalog.state.pointer import Pointer
from arco_catalog.state.transaction import Decision

KNOWN = ("manifest", "registry-commit", "registry-index", "registry-value", "page-key", "pointer")
"""Kinds of objects that are looked at elsewhere."""


async def examine_records(examination: Examination) -> Findings:
    """All findings about them, in one listing of the state folder."""
    state = f"{examination.paths.state}/"
    singles: list[str] = []
    markers: dict[str, list[int]] = defaultdict(list)
    async for each in examination.listed(state):
        kind = record_kind(each.key)
        if kind in KNOWN:
            continue
        marker, _, file = each.key.rpartition("/")
        slot = file.removesuffix(".json")
        if kind == "marker" and slot.isdecimal():
            markers[marker].append(int(slot))
        else:
            singles.append(each.key)

    async def look(key: str) -> Sequence[Finding]:
        return await _examine(examination, key)

    async def look_at_marker(item: tuple[str, list[int]]) -> Sequence[Finding]:
        return await _examine_marker(examination, *item)

    async for finding in examination.each(singles, look):
        yield finding
    async for finding in examination.each(markers.items(), look_at_marker):
        yield finding


async def _examine(examination: Examination, key: str) -> Sequence[Finding]:
    paths = examination.paths
    looks = {
        paths.events: _examine_receipt,
        paths.transactions: _examine_transaction,
        paths.metadata_claims: _examine_claim,
        paths.operational: _examine_checkpoint,
    }
    look = next((look for prefix, look in looks.items() if key.startswith(prefix)), None)
    if look is None or not key.endswith(".json"):
        return [Finding(Code.OBJECT_UNKNOWN, key, "nothing in this catalog is called so")]
    return await look(examination, key)


async def _examine_receipt(examination: Examination, key: str) -> Sequence[Finding]:
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
    said = {receipt.COMMITTED: "IcebergCommitCommitted", receipt.PENDING: "IcebergCommitPending"}[stage]
    if key != examination.paths.receipt(stage, name, ms) or document.get("type") != said:
        return [Finding(Code.RECEIPT_FOREIGN, key, f"it is the receipt of {location} of entity {entity}")]
    replaced = stage == receipt.COMMITTED and base is not None and examination.current.get(entity) == base.location
    if replaced and await _still_current(examination, entity, base.location if base is not None else ""):
        pointer = examination.paths.pointer(entity)
        return [Finding(Code.POINTER_OLDER, pointer, f"it names {base and base.location}, which {location} replaced")]
    return []


async def _still_current(examination: Examination, entity: str, location: str) -> bool:
    """Whether a pointer, read after the receipt, still names a file."""
    key = examination.paths.pointer(entity)
    found = await examination.read(key)
    return found is not None and Pointer.parse(found.body, found.version, key).metadata.location == location


async def _examine_transaction(examination: Examination, key: str) -> Sequence[Finding]:
    found = await examination.read(key)
    if found is None:
        return []
    try:
        decision = Decision.parse(found, key)
        named, status = text(decision.document, "transaction"), decision.status
    except InternalError as error:
        return [Finding(Code.TRANSACTION_UNREADABLE, key, error.message)]
    if key != examination.paths.transaction(named):
        return [Finding(Code.TRANSACTION_FOREIGN, key, f"it is the decision of {named}")]
    if status not in ("pending", "committed", "aborted"):
        return [Finding(Code.TRANSACTION_UNREADABLE, key, f"it has an unknown status {status!r}")]
    if decision.expired:
        return [Finding(Code.TRANSACTION_UNDECIDED, key, f"last written {decision.age_ms // 1000:,} s ago")]
    return []


async def _examine_claim(examination: Examination, key: str) -> Sequence[Finding]:
    found = await examination.read(key)
    if found is None:
        return []
    try:
        document = parse_record(found.body, key)
        file, said = text(document, "file"), text(document, "claim")
    except InternalError as error:
        return [Finding(Code.CLAIM_UNREADABLE, key, error.message)]
    if said not in set(Claim):
        return [Finding(Code.CLAIM_UNREADABLE, key, f"it has an unknown value {said!r}")]
    return (
        [] if key == examination.paths.metadata_claim(file) else [Finding(Code.CLAIM_FOREIGN, key, f"it is on {file}")]
    )


async def _examine_checkpoint(examination: Examination, key: str) -> Sequence[Finding]:
    found = await examination.read(key)
    try:
        if found is not None:
            parse_record(found.body, key)
    except InternalError as error:
        return [Finding(Code.CHECKPOINT_UNREADABLE, key, error.message)]
    return []


async def _examine_marker(examination: Examination, marker: str, numbers: Sequence[int]) -> Sequence[Finding]:
    """The slots of one key, from the first to the last that was listed: what is not there in between was lost."""
    findings: list[Finding] = []
    before: Slot | None = None
    for number in range(max(numbers) + 1):
        key = f"{marker}/{number}.json"
        found = await examination.read(key)
        if found is None:
            findings.append(Finding(Code.MARKER_GAP, key, f"slot {max(numbers)} is there"))
            continue
        try:
            slot = Slot.parse(found, key)
        except InternalError as error:
            findings.append(Finding(Code.MARKER_UNREADABLE, key, error.message))
            continue
        if before is not None and _is_foreign(before, slot):
            findings.append(Finding(Code.MARKER_FOREIGN, key, f"it is of attempt {slot.attempt}"))
        commit = examination.unconfirmed.get(slot.attempt) if slot.final else None
        if commit is not None:
            told = f"{key} has the answer that commit {commit} gave, which was built on it: copy that commit"
            findings.append(Finding(Code.MANIFEST_OLDER, examination.paths.manifest, told))
        before = slot
    return findings


def _is_foreign(before: Slot, slot: Slot) -> bool:
    """Whether a slot can't follow another: the last answer is given by the attempt that was made last."""
    if before.final:
        return True
    return slot.final and slot.attempt != before.attempt
