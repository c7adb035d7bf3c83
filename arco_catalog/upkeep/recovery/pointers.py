"""Finds the metadata file of a lost pointer in the receipts of the entity, and rebuilds the pointer.

The file of a committed receipt was current, and so was the base of any receipt, since a commit is planned on the
current file. The newest of these files has the greatest time, because times increase along an entity's files. A pending
receipt with that file as its base is of a commit that may have applied. A record that was written after the
compare-and-swap proves that it did.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from arco_catalog.iceberg.errors import CatalogError, InternalError, NotFound
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.operations.history import history
from arco_catalog.planning.kinds import TABLES, VIEWS
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.decisions import abort_if_undecided, read_decision
from arco_catalog.state import receipt
from arco_catalog.state.entries import purge_began
from arco_catalog.state.fields import integer, mapping, objects, optional_text, sequence, text
from arco_catalog.state.listing import list_objects
from arco_catalog.state.pointer import RECENT_MOVES, MetadataFile, Pointer
from arco_catalog.state.registry import RegistryState
from arco_catalog.upkeep.recovery.reading import final_answers, read_all

SEMANTICS = {"table": TABLES, "view": VIEWS}


@dataclass(frozen=True, slots=True)
class LostPointer:
    """A table or view without a readable pointer: its entry in the registry, and the operation that dropped it, if
    any."""

    entity: str
    name: str
    entry: JsonObject
    dropped_by: str | None


@dataclass(frozen=True, slots=True)
class Commit:
    """The commit of a table or view that one receipt describes, or of which only the metadata file is known, without
    a receipt. `evidence` is the proof that its metadata file was current; None if there is none."""

    file: MetadataFile
    base: MetadataFile | None = None
    attempt: str | None = None
    source: JsonValue = None
    evidence: str | None = None

    def to_json(self) -> JsonObject:
        """Returns the fields of a commit that a report of the search shows."""
        return {
            "metadata_location": self.file.location,
            "metadata_ms": self.file.ms,
            "attempt": self.attempt,
            "evidence": self.evidence,
        }


@dataclass(frozen=True, slots=True)
class PointerSearch:
    """The result of the search for a lost pointer: the commits with metadata files that were current (`made`, the
    newest first), commits on the newest of them that may have applied (`leaves`), and the file from which the entity
    was registered, None if the history has no such registration."""

    lost: LostPointer
    made: Sequence[Commit] = ()
    leaves: Sequence[Commit] = ()
    registered: str | None = None

    @property
    def candidates(self) -> Sequence[Commit]:
        """The commits with a metadata file that may have been the last current one of the entity."""
        return [*self.made[:1], *self.leaves]

    @property
    def certain(self) -> Commit | None:
        """The commit with the metadata file that is proven to be the last current one of the entity; None if no commit,
        or more than one, is."""
        proven = [leaf for leaf in self.leaves if leaf.evidence is not None]
        if len(proven) == 1:
            return proven[0]
        return self.made[0] if self.made and not self.leaves else None


@dataclass
class _Receipts:
    """The commits in the receipts of one entity, by their metadata files."""

    committed: dict[str, Commit] = field(default_factory=dict)
    pending: dict[str, Commit] = field(default_factory=dict)


async def find_pointers(
    session: Session, registry: RegistryState, lost: Collection[LostPointer]
) -> Sequence[PointerSearch]:
    """Searches the receipts, in one listing, for the metadata files of all these lost pointers. Returns the result for
    each. Raises `StoreError`, and `InternalError` for a receipt that can't be read."""
    if not lost:
        return []
    receipts = await _read_receipts(session, {each.entity for each in lost})
    registered = await _registrations(session, registry, {each.entity for each in lost})
    found = [await _search(session, each, receipts[each.entity], registered.get(each.entity)) for each in lost]
    leaves = [leaf for each in found for leaf in each.leaves]
    attempts = {leaf.attempt for leaf in leaves if leaf.attempt is not None}
    answers = await final_answers(session.state, attempts, min((leaf.file.ms for leaf in leaves), default=0))
    return [replace(each, leaves=[_with_answer(each, leaf, answers) for leaf in each.leaves]) for each in found]


async def _read_receipts(session: Session, entities: Collection[str]) -> Mapping[str, _Receipts]:
    """Reads all receipts, and returns the commits of these entities in them, by entity. Raises `InternalError` for a
    receipt that can't be read."""
    found = {entity: _Receipts() for entity in entities}
    paths = session.state.paths
    keys = [each.key async for each in list_objects(session.state, paths.events) if paths.is_receipt(each.key)]
    async for key, stored in read_all(session.state, keys):
        document = receipt.parse(stored.body, key)
        of = found.get(text(document, "entity"))
        if of is None:
            continue
        file = MetadataFile(text(document, "metadata_location"), integer(document, "metadata_ms"))
        attempt, base = optional_text(document, "attempt"), receipt.base_of(document)
        if f"/{receipt.COMMITTED}/" in key:
            of.committed[file.location] = Commit(
                file, base, attempt, document.get("source"), "it has a committed receipt"
            )
        else:
            of.pending[file.location] = Commit(file, base, attempt, document.get("source"))
    return found


async def _registrations(session: Session, registry: RegistryState, entities: Collection[str]) -> Mapping[str, str]:
    """Returns the metadata files from which these entities were registered, by entity, by the history of the registry
    as far as it is stored. An entity without such a registration is left out."""
    found: dict[str, str] = {}
    async for operation in history(session, newest=registry):
        entity, file = optional_text(operation, "entity"), optional_text(operation, "metadata_location")
        if entity in entities and file is not None and str(operation.get("kind")).startswith("register-"):
            found[str(entity)] = file
    return found


async def _search(session: Session, lost: LostPointer, receipts: _Receipts, registered: str | None) -> PointerSearch:
    """Returns the search for the file of a lost pointer: the commits of the entity that these receipts prove to have
    applied, newest first, and the pending ones that may have applied after the newest of them. If only one file of the
    entity is known, it is the only one that applied. `registered` is the file from which the entity was registered,
    None if it was not."""
    made = dict(receipts.committed)
    for each in [*receipts.committed.values(), *receipts.pending.values()]:
        if each.base is not None and each.base.location not in made:
            known = receipts.pending.get(each.base.location) or Commit(each.base)
            made[each.base.location] = replace(known, evidence="a later commit was planned on it")
    if registered is not None and registered not in made:
        file = MetadataFile(registered, await _ms(session, lost, registered))
        made[registered] = Commit(file, evidence="the entity was registered from it")
    newest = max(made.values(), key=lambda each: each.file.ms, default=None)
    leaves = [
        each
        for each in receipts.pending.values()
        if each.file.location not in made
        and (each.base.location if each.base is not None else None)
        == (newest.file.location if newest is not None else None)
    ]
    decided = [await _resolve(session, leaf) for leaf in leaves]
    first = _only_file(decided, newest)
    if first is not None:
        return PointerSearch(lost, [first], [], registered)
    ordered = sorted(made.values(), key=lambda each: each.file.ms, reverse=True)
    return PointerSearch(lost, ordered, [each for each in decided if each is not None], registered)


def _only_file(leaves: Iterable[Commit | None], newest: Commit | None) -> Commit | None:
    """Returns the only commit of an entity, with evidence: since the registry names the entity, its file was current.
    Returns None if another file is known to have been current (`newest`), or if `leaves` has not exactly one commit."""
    commits = [leaf for leaf in leaves if leaf is not None]
    if newest is None and len(commits) == 1:
        return replace(commits[0], evidence="the registry names the entity, and it has no other file")
    return None


async def _resolve(session: Session, leaf: Commit) -> Commit | None:
    """Returns a commit by a transaction with the decision to commit as evidence; None if the transaction was aborted. A
    commit without a decided transaction is returned as it is."""
    decision = None if leaf.attempt is None else await read_decision(session.state, leaf.attempt)
    if decision is None or decision.status == "pending":
        return leaf
    if decision.status == "committed":
        return replace(leaf, evidence=f"transaction {leaf.attempt} committed")
    return None


def _with_answer(search: PointerSearch, leaf: Commit, answers: Mapping[str, JsonObject]) -> Commit:
    """Returns a commit with evidence if a final slot of a marker has the answer to its attempt, and if that names the
    lost pointer's entity and the commit's metadata file; else the commit unchanged. `answers` has the answers in final
    slots by attempt."""
    answer = answers.get(leaf.attempt or "")
    table = {} if answer is None else mapping(answer, "table")
    if table.get("entity") == search.lost.entity and table.get("metadata_location") == leaf.file.location:
        return replace(leaf, evidence="a final slot has its answer")
    return leaf


async def abort_transactions_on(session: Session, entities: Collection[str]) -> Sequence[str]:
    """Aborts every undecided transaction that changes one of these entities: its intents were lost with the pointers,
    and it must not commit without them. Returns the ids of these transactions, without one that committed first."""
    aborted: list[str] = []
    prefix = session.state.paths.transactions
    async for each in list_objects(session.state, prefix):
        transaction = each.key.removeprefix(prefix).removesuffix(".json")
        decision = await read_decision(session.state, transaction)
        if decision is None or decision.status != "pending":
            continue
        members = objects(decision.document, "tables")
        is_affected = any(member.get("entity") in entities for member in members)
        if is_affected and not await abort_if_undecided(session.state, session.runtime, transaction):
            aborted.append(transaction)
    return aborted


async def rebuild_pointer(session: Session, search: PointerSearch, location: str) -> Pointer:
    """Builds the pointer of a lost table or view to the metadata file at `location`, and does not store it. Raises
    `CatalogError` if the file can't be read, or is of another table. If a purge has begun, and the search has a
    commit of the file, it may be missing, since the purge needs only its location.

    The sequence number is greater than any that moves can have reached. So the outcome of an attempt that is not in
    `recent` reads as unknown (docs/design/commit.md#evidence), and never as failed.
    """
    lost = search.lost
    kind = text(lost.entry, "type")
    semantics = SEMANTICS[kind]
    commit = next((each for each in (*search.made, *search.leaves) if each.file.location == location), None)

    def describe(document: JsonObject) -> tuple[str | None, JsonObject, int]:
        checked = semantics.check_registered(document)
        ms = semantics.ms(checked, None, session.now_ms()) if commit is None else commit.file.ms
        return semantics.uuid(checked), semantics.summary(checked), ms

    try:
        uuid_found, described, ms = await session.files.extract(location, describe)
    except NotFound:
        if commit is None or not purge_began(lost.entry):
            raise
        described, ms = {}, commit.file.ms
    else:
        uuid = optional_text(lost.entry, "uuid")
        if uuid is not None and uuid_found != uuid:
            raise InternalError(
                f"the metadata file {location} is of another {kind}: its uuid is {uuid_found}, expected {uuid}"
            )
    earlier = [each for each in search.made if each.file.ms < ms]
    attempts = [each.attempt for each in ([] if commit is None else [commit]) + earlier if each.attempt is not None]
    base = commit.base if commit is not None else (earlier[0].file if earlier else None)
    move = session.runtime.ulid()
    summary: JsonObject = {
        **described,
        "previous_metadata_location": None if base is None else base.location,
        "updated_ms": ms,
        "updated_by": None if commit is None else commit.source,
        "sequence": session.now_ms(),
        "recent": [move, *attempts[: RECENT_MOVES - 1]],
    }
    if base is not None:
        summary["base"] = {"metadata_location": base.location, "metadata_ms": base.ms}
    if search.registered is not None:
        summary["origin"] = {"registered": search.registered}
    if lost.dropped_by is not None:
        summary["dropped"] = {"operation": lost.dropped_by}
    if reserved := sequence(lost.entry, "reserved"):
        summary["named_locations"] = [*reserved]  # a commit may have named each, so all stay reserved
    file = MetadataFile(location, ms)
    return Pointer.first(entity=lost.entity, kind=kind, move=move, metadata=file, summary=summary)


async def _ms(session: Session, lost: LostPointer, location: str) -> int:
    """Returns the time of last update in a metadata file from which an entity was registered, in milliseconds since
    1970; 0, which is before any commit, if the file is missing or can't be read."""
    semantics = SEMANTICS[text(lost.entry, "type")]
    try:
        return await session.files.extract(
            location, lambda document: semantics.ms(semantics.check_registered(document), None, 0)
        )
    except CatalogError:
        return 0
