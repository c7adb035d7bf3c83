"""Finds the lost HEAD of a registry among the registry's commit objects.

A commit object is written before the compare-and-swap that makes it HEAD, so not every commit object was HEAD. A commit
was HEAD if another is its child. Of the children of the last such commit at most one became HEAD. A record that was
written after its compare-and-swap proves which one; the times of the objects prove nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from arco_catalog.iceberg.errors import InternalError
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.concurrency import batches, gather
from arco_catalog.protocol.decisions import transaction_committed
from arco_catalog.state import receipt
from arco_catalog.state.commit_edits import is_whole
from arco_catalog.state.commit_record import CommitRecord
from arco_catalog.state.fields import objects, optional_text
from arco_catalog.state.listing import list_objects
from arco_catalog.state.paths import commit_key
from arco_catalog.state.runtime import ulid_of
from arco_catalog.upkeep.recovery.reading import AT_ONCE, final_answers

DAY_MS = 24 * 60 * 60_000
MIN_COMMITS = 1_000
"""Newest commits to read, besides all of the last day by the clocks in their names."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A registry commit that may have been the last HEAD. `evidence` is the proof that it was HEAD, None if there is
    none; `exists` is whether its object can be read. `missing` is the id of a commit without which HEAD as of this
    one can't be computed, and whose object does not exist or can't be read; None if there is none."""

    commit: str
    sequence: int
    at_ms: int | None
    operations: Sequence[JsonObject] = ()
    evidence: str | None = None
    exists: bool = True
    missing: str | None = None

    def to_json(self) -> JsonObject:
        """Returns the fields of a commit that a report of the search shows; the operations without the answers to their
        requests."""
        operations: list[JsonValue] = [
            {name: value for name, value in each.items() if name != "answer"} for each in self.operations
        ]
        return {
            "commit": self.commit,
            "sequence": self.sequence,
            "at_ms": self.at_ms,
            "operations": operations,
            "evidence": self.evidence,
            "missing": self.missing,
        }


@dataclass(frozen=True, slots=True)
class HeadSearch:
    """The result of the search for HEAD: the last commit that has a child (`known`), and its children (`leaves`); if
    no commit that was read has a parent, None and all of them.
    `corrupt` are the keys of commit objects that can't be read. If HEAD as of a candidate can't be computed,
    `alternatives` are the last commits as of which it can: the one that is known to have been HEAD, or those that may
    have been."""

    known: Candidate | None = None
    leaves: Sequence[Candidate] = ()
    corrupt: Sequence[str] = field(default=())
    alternatives: Sequence[Candidate] = ()

    @property
    def candidates(self) -> Sequence[Candidate]:
        """The commits that may have been the last HEAD, and have a readable object."""
        return [each for each in (self.known, *self.leaves) if each is not None and each.exists]

    @property
    def certain(self) -> Candidate | None:
        """The commit that is proven to be the last HEAD; None if no commit, or more than one, is."""
        proven = [leaf for leaf in self.leaves if leaf.evidence is not None]
        if len(proven) == 1:
            return proven[0]
        return self.known if not self.leaves and self.known is not None and self.known.exists else None


@dataclass(frozen=True, slots=True)
class _Node:
    """A commit whose object was read, with the id of its parent, and whether the object has the whole index."""

    candidate: Candidate
    parent: str | None
    is_whole: bool


async def find_head(session: Session) -> HeadSearch:
    """Reads the newest commit objects, and finds the commits that may have been the last HEAD. Raises `StoreError`."""
    names = [
        each.key.rpartition("/")[2].removesuffix(".json")
        async for each in list_objects(session.state, session.state.paths.registry_commits)
    ]
    read, corrupt = await _newest(session, sorted(names, reverse=True))
    found = _with_gaps(read)
    search = replace(await _search(session, found), corrupt=corrupt)
    if all(each.missing is None for each in search.candidates):
        return search
    listed, heads = await _listed(session, search)
    whole = [each for each in found if each.candidate.missing is None]
    restorable = [each for each in whole if each.candidate.sequence < listed or each.candidate.commit in heads]
    before = await _search(session, restorable, heads)
    last = before.candidates if before.certain is None else [before.certain]
    return replace(search, alternatives=[each for each in last if each not in search.candidates])


def _with_gaps(found: Sequence[_Node]) -> Sequence[_Node]:
    """Returns these commits with the id in `missing` of the newest commit before it without which HEAD as of the commit
    can't be computed."""
    missing: dict[str, str | None] = {}
    for each in sorted(found, key=lambda each: each.candidate.sequence):
        missing[each.candidate.commit] = None if each.is_whole else missing.get(each.parent or "", each.parent)
    return [replace(each, candidate=replace(each.candidate, missing=missing[each.candidate.commit])) for each in found]


async def _listed(session: Session, search: HeadSearch) -> tuple[int, Sequence[str]]:
    """Returns the ids of the commits that the last commit of the result of a search lists before itself, which were
    HEAD, and the lowest of their sequence numbers. No other commit of these numbers or higher ones was HEAD, but for
    those of the result."""
    record = await session.state.registry_commit(search.candidates[-1].commit)
    return record.before_sequence + 1, [commit for commit, _ in record.recent()[1:]]


async def _search(session: Session, found: Sequence[_Node], heads: Sequence[str] = ()) -> HeadSearch:
    """Returns the last commit that has a child among these commits, and so was HEAD, even if it can't be read, and its
    children, any of which may have been the last HEAD, with evidence. If no commit names a parent, returns None and the
    commits. The commits with the ids `heads` were HEAD."""
    children: dict[str | None, list[Candidate]] = {}
    for each in found:
        children.setdefault(each.parent, []).append(each.candidate)
    readable = {each.candidate.commit: each.candidate for each in found}
    parents = {parent: built[0].sequence - 1 for parent, built in children.items() if parent is not None}
    if not parents:
        return HeadSearch(None, await _with_evidence(session, children.get(None, []), heads))
    last = max(parents, key=lambda parent: (parents[parent], parent))
    known = readable.get(last) or Candidate(last, parents[last], None, exists=False)
    known = replace(known, evidence="a later commit was built on it")
    return HeadSearch(known, await _with_evidence(session, children[last], heads))


async def _newest(session: Session, names: Sequence[str]) -> tuple[list[_Node], list[str]]:
    """Reads the newest of these registry commits: at least `MIN_COMMITS`, and all of the last day before the newest.
    `names` are the ids, the newest first. Returns the readable ones, and the keys of the others."""
    found: list[_Node] = []
    corrupt: list[str] = []
    newest_ms = 0
    for batch in batches(names, AT_ONCE):
        if len(found) >= MIN_COMMITS and batch[0] < ulid_of(max(0, newest_ms - DAY_MS), bytes(10)):
            break
        for key, node in await gather(*(_read(session, name) for name in batch)):
            if node is None:
                corrupt.append(key)
                continue
            found.append(node)
            newest_ms = max(newest_ms, node.candidate.at_ms or 0)
    return found, corrupt


async def _read(session: Session, name: str) -> tuple[str, _Node | None]:
    """Reads a registry commit by id. Returns the key and the node; None as the node if it is missing, corrupt, or a
    commit with another id."""
    key = session.state.paths.registry_commit(name)
    body = await session.state.read(key)
    try:
        if body is None:
            return key, None
        record = CommitRecord.read(body.body, key)
        if record.id != name:
            return key, None
        candidate = Candidate(name, record.sequence, record.at_ms, objects(record.document, "operations"))
        return key, _Node(candidate, optional_text(record.document, "parent"), is_whole(record.document))
    except InternalError:
        return key, None


async def _with_evidence(session: Session, leaves: Sequence[Candidate], heads: Sequence[str]) -> Sequence[Candidate]:
    """Returns these commits, with evidence for the ones with an id in `heads`. If none has one, it is for commits that
    have all operations which records prove, if any, even if only some of their operations are proven: records prove
    operations, and two commits of the same parent may have the same one (docs/design/registry.md#proposals)."""
    if any(leaf.commit in heads for leaf in leaves):
        shown = "a later commit lists it"
        return [replace(leaf, evidence=shown) if leaf.commit in heads else leaf for leaf in leaves]
    attempts = {str(operation.get("id")) for leaf in leaves for operation in leaf.operations}
    since_ms = min((leaf.at_ms or 0 for leaf in leaves), default=0)
    answers = await final_answers(session.state, attempts, since_ms)

    operations = {str(operation.get("id")): operation for leaf in leaves for operation in leaf.operations}
    proofs: dict[str, str] = {}
    for attempt, operation in operations.items():
        proof = await _evidence(session, operation, answers.get(attempt))
        if proof is not None:
            proofs[attempt] = proof
    if not proofs:
        return leaves
    return [
        replace(leaf, evidence=next(iter(proofs.values())))
        if proofs.keys() <= {str(operation.get("id")) for operation in leaf.operations}
        else leaf
        for leaf in leaves
    ]


async def _evidence(session: Session, operation: JsonObject, answered: JsonObject | None) -> str | None:
    """Describes a record that was written after the compare-and-swap of the commit with this operation, so that the
    commit was HEAD; None if there is no such record. `answered` is the answer in a final slot of the operation's
    marker, if there is one."""
    name = str(operation.get("id"))
    if answered is not None and answered == operation.get("answer"):
        return f"a final slot has the answer of its operation {name}"
    if operation.get("kind") == "lay-names":
        transaction = optional_text(operation, "transaction")
        if transaction is not None and await transaction_committed(session.state, transaction):
            return f"transaction {transaction} committed, which placed its names by this commit"
    for field_name in ("entity", "replaced"):
        entity = optional_text(operation, field_name)
        if entity is not None and (evidence := await _on_pointer(session, entity, operation)):
            return evidence
    return None


async def _on_pointer(session: Session, entity: str, operation: JsonObject) -> str | None:
    """Describes the trace of an operation at the pointer of an entity, which proves that it was committed: the mark of
    the drop, or for a create or registration a later commit or the committed receipt. None without one."""
    try:
        pointer = await session.state.pointer(entity)
        if pointer is None:
            return None
        if operation.get("id") in pointer.drops:
            return f"the pointer of {entity} has the mark of its drop {operation['id']}"
        if not str(operation.get("kind")).startswith(("create-", "register-")) or operation.get("entity") != entity:
            return None
        if pointer.base is not None:
            return f"commits were made to {entity}, which it created"
        file = pointer.metadata
        committed = session.state.paths.receipt(receipt.COMMITTED, commit_key(entity, file.location), file.ms)
        return f"{entity}, which it created, has a committed receipt" if await session.state.read(committed) else None
    except InternalError:
        return None  # a corrupt pointer proves nothing
