"""Finds what a lost pointer named, among the receipts of its entity, and builds it anew.

A committed receipt is of a file that was current; so is the base of any receipt, since a commit is planned on the
current file. The last of these files is the newest, because times increase along an entity's files. Pending receipts
that name it as their base may be of commits that were made, or of lost tries: which, is known only where something
tells that was written after the compare-and-swap.
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
from arco_catalog.state.fields import integer, mapping, optional_text, sequence, text
from arco_catalog.state.listing import list_objects
from arco_catalog.state.pointer import RECENT_MOVES, MetadataFile, Pointer
from arco_catalog.state.registry import RegistryState
from arco_catalog.upkeep.recovery.reading import final_answers, read_all

SEMANTICS = {"table": TABLES, "view": VIEWS}


@dataclass(frozen=True, slots=True)
class Lost:
    """A table or view whose pointer is gone: its entry, and the drop that marked the pointer, if it was dropped."""

    entity: str
    name: str
    entry: JsonObject
    dropped_by: str | None


@dataclass(frozen=True, slots=True)
class Commit:
    """What one receipt tells. `evidence` says how it is known that the file was current."""

    file: MetadataFile
    base: MetadataFile | None = None
    attempt: str | None = None
    source: JsonValue = None
    evidence: str | None = None

    def to_json(self) -> JsonObject:
        """What is shown of it."""
        return {
            "metadata_location": self.file.location,
            "metadata_ms": self.file.ms,
            "attempt": self.attempt,
            "evidence": self.evidence,
        }


@dataclass(frozen=True, slots=True)
class PointerSearch:
    """What was found of a lost pointer: its files that were current, the newest first; commits on the newest of them
    that may have been made; and the file that the entity was registered from."""

    lost: Lost
    made: Sequence[Commit] = ()
    leaves: Sequence[Commit] = ()
    registered: str | None = None

    @property
    def candidates(self) -> Sequence[Commit]:
        """All that may have been current last."""
        return [*self.made[:1], *self.leaves]

    @property
    def certain(self) -> Commit | None:
        """The one that was, if that is known."""
        proven = [leaf for leaf in self.leaves if leaf.evidence is not None]
        if len(proven) == 1:
            return proven[0]
        return self.made[0] if self.made and not self.leaves else None


@dataclass
class _Told:
    """The receipts of one entity."""

    committed: dict[str, Commit] = field(default_factory=dict)
    pending: dict[str, Commit] = field(default_factory=dict)


async def find_pointers(session: Session, registry: RegistryState, lost: Collection[Lost]) -> Sequence[PointerSearch]:
    """Searches all receipts, once for all of them. Raises `StoreError`, and `InternalError` for a receipt that can't be
    read."""
    if not lost:
        return []
    told = await _receipts(session, {each.entity for each in lost})
    registered = await _registrations(session, registry, {each.entity for each in lost})
    found = [await _searched(session, each, told[each.entity], registered.get(each.entity)) for each in lost]
    leaves = [leaf for each in found for leaf in each.leaves]
    attempts = {leaf.attempt for leaf in leaves if leaf.attempt is not None}
    answers = await final_answers(session.state, attempts, min((leaf.file.ms for leaf in leaves), default=0))
    return [replace(each, leaves=[_answered(each, leaf, answers) for leaf in each.leaves]) for each in found]


async def _receipts(session: Session, entities: Collection[str]) -> Mapping[str, _Told]:
    told = {entity: _Told() for entity in entities}
    paths = session.state.paths
    keys = [each.key async for each in list_objects(session.state, paths.events) if paths.is_receipt(each.key)]
    async for key, found in read_all(session.state, keys):
        document = receipt.parse(found.body, key)
        of = told.get(text(document, "entity"))
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
    return told


async def _registrations(session: Session, registry: RegistryState, entities: Collection[str]) -> Mapping[str, str]:
    """The files that entities were registered from, as far as history reaches."""
    found: dict[str, str] = {}
    async for operation in history(session, newest=registry):
        entity, file = optional_text(operation, "entity"), optional_text(operation, "metadata_location")
        if entity in entities and file is not None and str(operation.get("kind")).startswith("register-"):
            found[str(entity)] = file
    return found


async def _searched(session: Session, lost: Lost, told: _Told, registered: str | None) -> PointerSearch:
    made = dict(told.committed)
    for each in [*told.committed.values(), *told.pending.values()]:
        if each.base is not None and each.base.location not in made:
            known = told.pending.get(each.base.location) or Commit(each.base)
            made[each.base.location] = replace(known, evidence="a later commit was planned on it")
    if registered is not None and registered not in made:
        file = MetadataFile(registered, await _ms(session, lost, registered))
        made[registered] = Commit(file, evidence="the entity was registered from it")
    newest = max(made.values(), key=lambda each: each.file.ms, default=None)
    leaves = [
        each
        for each in told.pending.values()
        if each.file.location not in made
        and (each.base.location if each.base is not None else None)
        == (newest.file.location if newest is not None else None)
    ]
    decided = [await _decided(session, leaf) for leaf in leaves]
    first = await _first(decided, newest)
    if first is not None:
        return PointerSearch(lost, [first], [], registered)
    ordered = sorted(made.values(), key=lambda each: each.file.ms, reverse=True)
    return PointerSearch(lost, ordered, [each for each in decided if each is not None], registered)


async def _first(leaves: Iterable[Commit | None], newest: Commit | None) -> Commit | None:
    """The only file of an entity that the registry names: it was current, whatever else is missing."""
    there = [leaf for leaf in leaves if leaf is not None]
    if newest is None and len(there) == 1:
        return replace(there[0], evidence="the registry names the entity, and it has no other file")
    return None


async def _decided(session: Session, leaf: Commit) -> Commit | None:
    """A commit as its transaction's decision leaves it: None if that aborted. One that is part of none as it is."""
    decision = None if leaf.attempt is None else await read_decision(session.state, leaf.attempt)
    if decision is None or decision.status == "pending":
        return leaf
    if decision.status == "committed":
        return replace(leaf, evidence=f"transaction {leaf.attempt} committed")
    return None


def _answered(search: PointerSearch, leaf: Commit, answers: Mapping[str, JsonObject]) -> Commit:
    answer = answers.get(leaf.attempt or "")
    said = {} if answer is None else mapping(answer, "table")
    if said.get("entity") == search.lost.entity and said.get("metadata_location") == leaf.file.location:
        return replace(leaf, evidence="a final slot has its answer")
    return leaf


async def abort_transactions_on(session: Session, entities: Collection[str]) -> Sequence[str]:
    """Decides each undecided transaction over these entities, as aborted: its intents are gone with the pointers, and
    it must not commit without them. Returns which."""
    aborted: list[str] = []
    prefix = session.state.paths.transactions
    async for each in list_objects(session.state, prefix):
        transaction = each.key.removeprefix(prefix).removesuffix(".json")
        decision = await read_decision(session.state, transaction)
        if decision is None or decision.status != "pending":
            continue
        members = [member for member in sequence(decision.document, "tables") if isinstance(member, dict)]
        concerned = any(member.get("entity") in entities for member in members)
        if concerned and not await abort_if_undecided(session.state, session.runtime, transaction):
            aborted.append(transaction)
    return aborted


async def rebuilt(session: Session, search: PointerSearch, location: str) -> Pointer:
    """The pointer to a file. Raises `CatalogError` if the file can't be read, or is of another table; a purge that has
    begun may have deleted it, and needs no more of the pointer than where it was.

    Its sequence number is greater than any that moves can have reached: so whoever asks for evidence of an attempt that
    is not in `recent` learns that nothing is known (docs/design/commit.md#evidence), and never that it failed.
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
        uuid_found, said, ms = await session.files.extract(location, describe)
    except NotFound:
        if commit is None or not purge_began(lost.entry):
            raise
        said, ms = {}, commit.file.ms
    else:
        uuid = optional_text(lost.entry, "uuid")
        if uuid is not None and uuid_found != uuid:
            raise InternalError(f"{location} is the file of another {kind}: its uuid is {uuid_found}")
    earlier = [each for each in search.made if each.file.ms < ms]
    attempts = [each.attempt for each in ([] if commit is None else [commit]) + earlier if each.attempt is not None]
    base = commit.base if commit is not None else (earlier[0].file if earlier else None)
    move = session.runtime.ulid()
    summary: JsonObject = {
        **said,
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
        summary["named_locations"] = [*reserved]  # a commit may have named each: none is given back
    file = MetadataFile(location, ms)
    return Pointer.first(entity=lost.entity, kind=kind, move=move, metadata=file, summary=summary)


async def _ms(session: Session, lost: Lost, location: str) -> int:
    """A registered file's own time; 0, which is before any commit, for a file that can't be read any more."""
    semantics = SEMANTICS[text(lost.entry, "type")]
    try:
        return await session.files.extract(
            location, lambda document: semantics.ms(semantics.check_registered(document), None, 0)
        )
    except CatalogError:
        return 0
