"""Finds HEAD of a registry among its commit objects.

A commit object is written before the compare-and-swap that makes it HEAD, so not each of them was HEAD. One on which
another was built was. Of those that were built on the last such commit one at most became HEAD: which, is known where
something tells that was written after its compare-and-swap. Their times tell nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from arco_catalog.iceberg.errors import InternalError
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.concurrency import batches, gather
from arco_catalog.protocol.decisions import transaction_committed
from arco_catalog.state import receipt
from arco_catalog.state.fields import optional_text, sequence
from arco_catalog.state.listing import list_objects
from arco_catalog.state.paths import commit_key
from arco_catalog.state.registry import RegistryState
from arco_catalog.state.runtime import ulid_of
from arco_catalog.upkeep.recovery.reading import AT_ONCE, final_answers, read

DAY_MS = 24 * 60 * 60_000
LEAST = 1_000
"""The newest commits are read: so many, and all of the last day, by the clocks that named them."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A commit that may have been HEAD last. `evidence` says how that is known; `there` is whether it can be read."""

    commit: str
    sequence: int
    at_ms: int | None
    operations: Sequence[JsonObject] = ()
    evidence: str | None = None
    there: bool = True

    def to_json(self) -> JsonObject:
        """What is shown of it."""
        told = [{name: value for name, value in each.items() if name != "answer"} for each in self.operations]
        return {
            "commit": self.commit,
            "sequence": self.sequence,
            "at_ms": self.at_ms,
            "operations": [*told],
            "evidence": self.evidence,
        }


@dataclass(frozen=True, slots=True)
class HeadSearch:
    """What the commit objects tell: the last commit on which another was built, and those that were built on it.
    `unreadable` are keys of damaged ones."""

    known: Candidate | None = None
    leaves: Sequence[Candidate] = ()
    unreadable: Sequence[str] = field(default=())

    @property
    def candidates(self) -> Sequence[Candidate]:
        """All that may have been HEAD last."""
        return [each for each in (self.known, *self.leaves) if each is not None and each.there]

    @property
    def certain(self) -> Candidate | None:
        """The one that was HEAD last, if that is known."""
        proven = [leaf for leaf in self.leaves if leaf.evidence is not None]
        if len(proven) == 1:
            return proven[0]
        return self.known if not self.leaves and self.known is not None and self.known.there else None


async def find_head(session: Session) -> HeadSearch:
    """Searches the commit objects. Raises `StoreError`."""
    names = [
        each.key.rpartition("/")[2].removesuffix(".json")
        async for each in list_objects(session.state, session.state.paths.registry_commits)
    ]
    found, unreadable = await _newest(session, sorted(names, reverse=True))
    children: dict[str | None, list[Candidate]] = {}
    for candidate, parent in found:
        children.setdefault(parent, []).append(candidate)
    there = {candidate.commit: candidate for candidate, _ in found}
    parents = {parent: built[0].sequence - 1 for parent, built in children.items() if parent is not None}
    if not parents:
        leaves = children.get(None, [])
        return HeadSearch(None, await _with_evidence(session, leaves), unreadable)
    last = max(parents, key=lambda parent: (parents[parent], parent))
    known = there.get(last) or Candidate(last, parents[last], None, there=False)
    known = replace(known, evidence="a later commit was built on it")
    return HeadSearch(known, await _with_evidence(session, children[last]), unreadable)


async def _newest(session: Session, names: Sequence[str]) -> tuple[list[tuple[Candidate, str | None]], list[str]]:
    """The newest commits with their parents, and the keys of those that can't be read."""
    found: list[tuple[Candidate, str | None]] = []
    unreadable: list[str] = []
    newest_ms = 0
    for batch in batches(names, AT_ONCE):
        if len(found) >= LEAST and batch[0] < ulid_of(max(0, newest_ms - DAY_MS), bytes(10)):
            break
        for key, read_state in await gather(*(_read(session, name) for name in batch)):
            if read_state is None:
                unreadable.append(key)
                continue
            candidate, parent = read_state
            found.append((candidate, parent))
            newest_ms = max(newest_ms, candidate.at_ms or 0)
    return found, unreadable


async def _read(session: Session, name: str) -> tuple[str, tuple[Candidate, str | None] | None]:
    key = session.state.paths.registry_commit(name)
    body = await read(session.state, key)
    try:
        if body is None:
            return key, None
        state = RegistryState.parse(body.body, None, key)
        if state.id != name:
            return key, None
        operations = [each for each in sequence(state.document, "operations") if isinstance(each, dict)]
        return key, (
            Candidate(name, state.sequence, state.at_ms, operations),
            optional_text(state.document, "parent"),
        )
    except InternalError:
        return key, None


async def _with_evidence(session: Session, leaves: Sequence[Candidate]) -> Sequence[Candidate]:
    """The leaves, each with what tells that it was HEAD."""
    attempts = {str(operation.get("id")) for leaf in leaves for operation in leaf.operations}
    since_ms = min((leaf.at_ms or 0 for leaf in leaves), default=0)
    answers = await final_answers(session.state, attempts, since_ms)

    async def told(leaf: Candidate) -> Candidate:
        for operation in leaf.operations:
            evidence = await _evidence(session, operation, answers.get(str(operation.get("id"))))
            if evidence is not None:
                return replace(leaf, evidence=evidence)
        return leaf

    return [await told(leaf) for leaf in leaves]


async def _evidence(session: Session, operation: JsonObject, answered: JsonObject | None) -> str | None:
    """What was written after the compare-and-swap of an operation's commit, None if nothing is found."""
    name = str(operation.get("id"))
    if answered is not None and answered == operation.get("answer"):
        return f"a final slot has the answer of its operation {name}"
    if operation.get("kind") == "lay-names":
        transaction = optional_text(operation, "transaction")
        if transaction is not None and await transaction_committed(session.state, transaction):
            return f"transaction {transaction} committed, which placed its names by it"
    for field_name in ("entity", "replaced"):
        entity = optional_text(operation, field_name)
        if entity is not None and (told := await _on_pointer(session, entity, operation)) is not None:
            return told
    return None


async def _on_pointer(session: Session, entity: str, operation: JsonObject) -> str | None:
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
        return f"{entity}, which it created, has a committed receipt" if await read(session.state, committed) else None
    except InternalError:
        return None  # a pointer that is damaged tells nothing
