"""Examines tables and views for a check: their pointers, the metadata files that these name, and the manifest lists of
their snapshots."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from arco_catalog.iceberg import table
from arco_catalog.iceberg.errors import BadRequest, InternalError, MetadataTooLarge, NotFound
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.iceberg.parsing import UnreadableMetadata
from arco_catalog.planning.kinds import TABLES, VIEWS
from arco_catalog.protocol.concurrency import batches, gather
from arco_catalog.protocol.decisions import read_decision, resolve_for_read
from arco_catalog.state import receipt
from arco_catalog.state.fields import optional_text
from arco_catalog.state.listing import list_objects
from arco_catalog.state.paths import commit_key
from arco_catalog.state.pointer import MetadataFile, Pointer
from arco_catalog.state.tombstone import PURGED, PURGING
from arco_catalog.upkeep.fsck.codes import Code
from arco_catalog.upkeep.fsck.examination import AT_ONCE, Examination, Findings, Relation
from arco_catalog.upkeep.fsck.findings import Finding
from arco_catalog.upkeep.fsck.repairs import ClaimFile, WriteReceipt
from storage_backends import Found

SEMANTICS = {"table": TABLES, "view": VIEWS}


async def examine_relations(examination: Examination) -> Findings:
    """Examines the tables and views that the registry names. If all entries of the index could be read, also searches
    the pointers for old ones of entities that it does not name. Yields the findings."""
    async for finding in examination.each(examination.relations.values(), partial(_examine, examination)):
        yield finding
    if not examination.entries_read:  # else what leads to a pointer may be an entry that can't be read
        return
    prefix = examination.paths.pointers
    before_ms = examination.session.now_ms() - examination.settling_ms
    async for each in list_objects(examination.session.state, prefix):
        entity = each.key.removeprefix(prefix).removesuffix(".json")
        known = entity in examination.relations or entity in examination.intended
        if not known and each.written_ms < before_ms:
            yield Finding(
                Code.POINTER_STRAY,
                each.key,
                "no name and no dropped table leads to this pointer, since a create or registration did not finish",
            )


async def _examine(examination: Examination, relation: Relation) -> Sequence[Finding]:
    """Returns the findings about one table or view: the pointer, the metadata file, the claim of a registration, and
    the receipt unless the pointer was written just now or names the registered file. A purged one has no objects any
    more; of one that is being purged, only the pointer is examined. Adds a readable pointer to
    `examination.current`."""
    if relation.state == PURGED:
        return []
    key = examination.paths.pointer(relation.entity)
    found = await examination.read(key)
    if found is None:
        return [Finding(Code.POINTER_MISSING, key, relation.called)]
    try:
        pointer = Pointer.parse(found.body, found.version, key)
        kind = optional_text(pointer.document, "type")
        if pointer.entity != relation.entity or kind != relation.kind:
            text = f"{relation.called}; its pointer is of {kind} {pointer.entity}"
            return [Finding(Code.POINTER_FOREIGN, key, text)]
        undecidable = await _undecidable(examination, pointer)
        pointer = await resolve_for_read(examination.session.state, pointer)
        file = pointer.metadata
    except InternalError as error:
        return [Finding(Code.POINTER_UNREADABLE, key, f"{relation.called}: {error.message}")]
    examination.current[relation.entity] = pointer
    if relation.state == PURGING:
        return []
    findings = [*undecidable, *await _examine_file(examination, relation, pointer)]
    if pointer.registered_from is not None:
        findings += await _examine_claim(examination, relation, pointer.registered_from)
    if found.now_ms - found.written_ms > examination.settling_ms and pointer.registered_from != file.location:
        findings += await _examine_receipt(examination, relation, file)
    return findings


async def _undecidable(examination: Examination, pointer: Pointer) -> Sequence[Finding]:
    """Returns a finding if the intent on a pointer belongs to a transaction without a decision object. The pointer is
    read again before, since another process may have settled the intent, and deleted the decision after that."""
    state, transaction = examination.session.state, pointer.intent
    if transaction is None or await read_decision(state, transaction) is not None:
        return []
    again = await state.pointer(pointer.entity)
    if again is None or again.intent != transaction:
        return []
    text = f"{state.paths.pointer(pointer.entity)} waits for the transaction"
    return [Finding(Code.TRANSACTION_MISSING, state.paths.transaction(transaction), text)]


async def _examine_file(examination: Examination, relation: Relation, pointer: Pointer) -> list[Finding]:
    """Returns the findings about the metadata file that a pointer names: it must exist, be readable and in reach, and
    fit the pointer, and the manifest lists that it names must exist."""
    location, session = pointer.metadata.location, examination.session
    examination.examined += 1
    try:
        found = await session.files.extract(location, partial(_summarize, relation))
    except UnreadableMetadata as error:
        return [Finding(Code.METADATA_UNREADABLE, location, f"{relation.called}: {error.message}")]
    except (BadRequest, MetadataTooLarge) as error:
        return [Finding(Code.METADATA_OUT_OF_REACH, location, f"{relation.called}: {error.message}")]
    except NotFound as error:
        there = await _is_there(examination, location)
        code = Code.METADATA_UNREADABLE if there else Code.METADATA_MISSING
        return [Finding(code, location, f"{relation.called}: {error.message}")]
    finally:
        session.files.forget(location)
    if isinstance(found, str):
        return [Finding(Code.METADATA_FOREIGN, location, found)]
    differs = [name for name, value in found.summary.items() if pointer.document.get(name, value) != value]
    if relation.kind == "table" and found.updated_ms != pointer.metadata.ms:
        differs.append("last-updated-ms")
    if differs:
        text = f"{relation.called}: the metadata file differs from its pointer in {', '.join(differs)}"
        return [Finding(Code.METADATA_FOREIGN, location, text)]
    return await _examine_manifest_lists(examination, relation, found.manifest_lists)


@dataclass(frozen=True, slots=True)
class _MetadataSummary:
    """The fields of a metadata file that an examination compares, without any array or object of the document."""

    summary: JsonObject
    updated_ms: JsonValue
    manifest_lists: Sequence[str]


def _summarize(relation: Relation, document: JsonObject) -> _MetadataSummary | str:
    """Returns the summary of a relation's metadata, or a sentence why the document is no metadata of the relation's
    kind."""
    try:
        summary = SEMANTICS[relation.kind].summary(document)
    except (KeyError, TypeError, AttributeError) as error:  # a view's file where a table's should be, say
        return f"{relation.called}: it is no metadata of a {relation.kind} ({type(error).__name__}: {error})"
    lists = [*table.manifest_lists(document)] if relation.kind == "table" else []
    return _MetadataSummary(summary, document.get("last-updated-ms"), lists)


async def _examine_claim(examination: Examination, relation: Relation, file: str) -> list[Finding]:
    """Returns a finding if the claim of a registration is missing. The contents of claims are examined with all other
    records."""
    key = examination.paths.metadata_claim(file)
    found = await examination.read(key)
    return (
        []
        if found is not None
        else [Finding(Code.CLAIM_MISSING, key, f"{relation.called}: {file}", ClaimFile(relation.entity, file))]
    )


async def _is_there(examination: Examination, location: str) -> bool:
    """Whether a file exists at `location`; its content is not read. For a metadata file that the reader reported as
    missing, since it reports a corrupt compressed file as missing too."""
    return await examination.session.files.exists(location)


async def _examine_manifest_lists(examination: Examination, relation: Relation, lists: Sequence[str]) -> list[Finding]:
    """Returns a finding for each of these manifest lists that does not exist. One outside of all stores of this catalog
    can't be read, and has none."""

    async def gone(location: str) -> str | None:
        examination.examined += 1
        try:
            return None if await examination.session.files.exists(location) else location
        except BadRequest:
            return None

    findings: list[Finding] = []
    for batch in batches(lists, AT_ONCE):
        missing = await gather(*map(gone, batch))
        findings += [
            Finding(Code.MANIFEST_LIST_MISSING, location, relation.called)
            for location in missing
            if location is not None
        ]
    return findings


async def _examine_receipt(examination: Examination, relation: Relation, file: MetadataFile) -> list[Finding]:
    """Returns a finding with a repair if a metadata file has no committed receipt, unless a collection may have deleted
    it."""
    key = commit_key(relation.entity, file.location)
    path = examination.paths.receipt(receipt.COMMITTED, key, file.ms)
    examination.examined += 1
    found = await examination.session.state.store.get(path)
    if isinstance(found, Found) or await examination.may_be_collected(relation.entity, file):
        return []
    repair = WriteReceipt(relation.entity, file)
    return [Finding(Code.RECEIPT_MISSING, path, f"{relation.called}: {file.location}", repair)]
