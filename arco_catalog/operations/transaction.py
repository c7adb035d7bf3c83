"""Transactions over several tables: atomic, without a coordinator (design.md 6.7).

One object decides. It is created pending beside the metadata files; then every pointer gets an intent that names it
(and every new name too, in one registry commit); then it is moved to `committed`, which is the commit; then the intents
are settled, by us or by whoever meets them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from arco_catalog.iceberg import table
from arco_catalog.iceberg.errors import BadRequest, Broken, Refusal
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.operations.answers import Answer, Document
from arco_catalog.operations.beside import beside
from arco_catalog.operations.catalog import Session
from arco_catalog.operations.commit import commit_table
from arco_catalog.operations.create import TableFromCommit
from arco_catalog.operations.creation import Draft
from arco_catalog.operations.decisions import close
from arco_catalog.operations.driver import run
from arco_catalog.operations.kinds import TABLES
from arco_catalog.operations.mutation import Attempt, Freshness, Move, Mutation, Prelude, Settled, TryOver, View, Write
from arco_catalog.operations.name_intents import RegistryCommit, change_registry, settle_names, settling
from arco_catalog.operations.names import dotted
from arco_catalog.operations.relation_change import Changed, RelationChange
from arco_catalog.operations.table_view import TableView, Wanted, locate_under, relation
from arco_catalog.state.entries import Undecided
from arco_catalog.state.index import Edits, Namespace
from arco_catalog.state.marker import Binding
from arco_catalog.state.pointer import Pointer
from arco_catalog.state.registry import Head
from arco_catalog.state.transaction import Decision, encode
from storage_backends import ABSENT, Applied, Refused, StoreError, Version

TableChange = tuple[Namespace, str, JsonObject]
"""One table's part of a request: its name, and its CommitTableRequest."""


async def commit_transaction(session: Session, changes: Sequence[TableChange]) -> Answer:
    """Applies all changes, or none. Raises `BadRequest` for a table named twice, or too many of them."""
    names = [(namespace, name) for namespace, name, _ in changes]
    twice = sorted({dotted(*name) for name in names if names.count(name) > 1})
    if twice:
        raise BadRequest(f"A transaction may name a table only once: {', '.join(twice)}")
    limit = session.settings.max_transaction_tables
    if len(names) > limit:
        raise BadRequest(f"A transaction may name at most {limit} tables, not {len(names)}")
    if not changes:
        return Document(204)
    if len(changes) == 1:
        await commit_table(session, *changes[0])
        return Document(204)
    return await run(session, Transaction(session, changes))


@dataclass
class TransactionView(View):
    """The tables as they were read under one HEAD."""

    head: Head
    head_fresh: bool
    tables: list[TableView]

    @property
    def trusted(self) -> bool:
        return self.head_fresh and all(view.trusted for view in self.tables)

    def shows(self, binding: Binding) -> bool:
        return False  # a transaction's evidence is its decision, which is no part of the tables

    async def landed(self, attempt: str, binding: Binding) -> bool:
        raise Broken("a transaction's view shows no evidence")


@dataclass
class _Plan:
    """What one attempt lays: intents on pointers, and on names."""

    attempt: Attempt
    moves: list[tuple[Pointer, Pointer]] = field(default_factory=list)
    drafts: list[tuple[TableFromCommit, Draft]] = field(default_factory=list)
    first: list[Write] = field(default_factory=list)
    after: list[Write] = field(default_factory=list)

    @property
    def id(self) -> str:
        """The transaction's id is always the attempt's."""
        return self.attempt.id


class Transaction(Mutation[TransactionView]):
    """One request over several tables."""

    def __init__(self, session: Session, changes: Sequence[TableChange]) -> None:
        self.session = session
        self.state = session.state
        self.commits: list[RelationChange] = []
        self.creations: list[TableFromCommit] = []
        for namespace, name, body in changes:
            commit = table.parse_commit(body)
            if commit.creates:
                self.creations.append(TableFromCommit(session, namespace, name, commit))
            else:
                self.commits.append(RelationChange(session, TABLES, namespace, name, commit))
        self._entities: dict[tuple[str, int], str] = {}

    # Reading.

    async def locate(self, freshness: Freshness) -> TransactionView:
        head = self.state.cached_head() if freshness is not Freshness.FRESH else None
        head_fresh = head is None
        head = head or await self.state.head()

        async def look(change: RelationChange) -> TableView:
            wanted = Wanted(change.namespace, change.name, "table", writing=True, rank=self.rank)
            return await locate_under(self.session, wanted, head, freshness, head_fresh=head_fresh)

        views = await beside(*(look(change) for change in self.commits)) if self.commits else []
        return TransactionView(head, head_fresh, views)

    def incomplete(self, view: TransactionView) -> bool:
        missing = [part for change, part in zip(self.commits, view.tables, strict=True) if change.incomplete(part)]
        return bool(missing)

    async def complete(self, view: TransactionView) -> None:
        async def read(part: TableView) -> None:
            if part.base is None and part.pointer is not None:
                try:
                    part.base = await self.session.files.read(part.pointer.metadata.location)
                except Refusal as refusal:
                    part.refusal = refusal

        await beside(*(read(part) for part in view.tables))

    def binding(self, view: TransactionView, attempt: Attempt) -> Binding:
        return Binding(transaction=attempt.id)

    # Planning.

    def plan(self, view: TransactionView, attempt: Attempt) -> Move[TransactionView] | Settled | Prelude:
        plan = _Plan(attempt)
        for change, part in zip(self.commits, view.tables, strict=True):
            computed = change.compute(part, attempt)
            if isinstance(computed, Prelude):
                return computed
            if isinstance(computed, Changed):
                plan.moves.append((computed.pointer, computed.successor))
                plan.first += [computed.new.write(self.session), computed.said.pending]
                plan.after += [computed.said.committed, *computed.cleaning]
            else:
                # Only its requirements count; an intent to what is there makes sure that they hold when all else does.
                plan.moves.append((computed.pointer, computed.pointer))
        index = view.head.index
        try:
            for creator in self.creations:
                draft = creator.draft(index, self._as_member(attempt, creator))
                index = index.edited(creator.edits(draft))  # the next one is held against this one too
                plan.drafts.append((creator, draft))
                plan.first += creator.first_writes(draft)
                plan.after.append(draft.said.committed)
        except Undecided as met:
            transaction = met.transaction
            return Prelude(lambda: settle_names(self.session, transaction, self.rank))
        return _Coordination(self.session, self, view, plan).move()

    def _as_member(self, attempt: Attempt, creator: TableFromCommit) -> Attempt:
        """Each new table has an entity of its own."""
        place = (attempt.id, self.creations.index(creator))
        if place not in self._entities:
            self._entities[place] = self.session.runtime.ulid()
        return Attempt(attempt.id, self._entities[place], attempt.rank)

    async def still_named(self, view: TransactionView) -> TransactionView | None:
        """Validates the names, those to be made included, by a manifest read that begins after the pointers' versions
        were read (rule 4)."""
        head = await self.state.head()
        if head.version == view.head.version:
            return None
        same = all(
            part.entry is not None
            and (entry := relation(head, change.namespace, change.name, "table")) is not None
            and entry.entity == part.entry.entity
            for change, part in zip(self.commits, view.tables, strict=True)
        )
        if same and not self.creations:
            return None
        fresher = await self.locate(Freshness.FRESH)
        if self.incomplete(fresher):
            await self.complete(fresher)
        return fresher

    async def answer_on_evidence(self, attempt: str, binding: Binding) -> Answer:
        return Document(204)


class _Coordination:
    """One attempt's way from pending to decided."""

    def __init__(self, session: Session, mutation: Transaction, view: TransactionView, plan: _Plan) -> None:
        self.session = session
        self.state = session.state
        self.mutation = mutation
        self.view = view
        self.plan = plan
        self.pending: Decision | None = None
        self.laid: list[Pointer] = []
        self.naming = self.names_commit("lay-names", view.head, self.new_names(view.head)) if plan.drafts else None
        self.settling: RegistryCommit | None = None

    def names_commit(self, kind: str, head: Head, edits: Edits) -> RegistryCommit:
        """A registry commit that lays or settles our intents on names."""
        return RegistryCommit(self.session, kind, self.detail(), head, edits)

    def detail(self) -> JsonObject:
        """What the registry's history says of the tables that it creates."""
        tables: list[JsonValue] = [
            {"namespace": [*creator.namespace], "name": creator.name, "entity": draft.entity}
            for creator, draft in self.plan.drafts
        ]
        return {"transaction": self.plan.id, "tables": tables}

    def new_names(self, head: Head) -> Edits:
        """Intents on all new names, each judged with those before it in place. Raises `Refusal` and `Undecided`."""
        edits: dict[str, JsonObject | None] = {}
        index = head.index
        for creator, draft in self.plan.drafts:
            creator.check_name(index)
            creator.check_locations(index, draft.locations)
            index = index.edited(creator.edits(draft))
            edits |= creator.edits(draft, self.plan.id)
        return edits

    def move(self) -> Move[TransactionView]:
        """The attempt as the driver carries it out."""
        plan = self.plan

        async def check() -> TransactionView | None:
            return await self.mutation.still_named(self.view)

        naming = [] if self.naming is None else [Write(self.naming.key, self.naming.put)]
        return Move(
            first=[*plan.first, *naming, Write(self.state.paths.transaction(plan.id), self.begin)],
            check=check,
            ready=self.lay,
            swap=self.decide,
            after=[*plan.after, Write("intents", self.settle)],
            answer=Document(204),
        )

    async def begin(self) -> None:
        """Creates the transaction's object. One that is not ours for certain ends the try: a takeover may have closed
        it, and a late copy of ours must never be decided."""
        members: list[JsonObject] = [
            {
                "entity": pointer.entity,
                "version": pointer.version,
                "metadata_location": successor.metadata.location,
            }
            for pointer, successor in self.plan.moves
        ]
        members += [
            {"entity": draft.entity, "version": None, "metadata_location": draft.new.file.location}
            for _, draft in self.plan.drafts
        ]
        pending = Decision.pending(
            transaction=self.plan.id,
            rank=self.plan.attempt.rank,
            move=self.session.runtime.ulid(),
            members=members,
        )
        key = self.state.paths.transaction(self.plan.id)
        outcome = await self.state.store.put(key, encode(pending.document), ABSENT)
        if not isinstance(outcome, Applied):
            raise TryOver
        self.pending = Decision(pending.document, outcome.version, 0)

    async def lay(self) -> None:
        """Lays every intent, beside each other. If one can't be laid, this try is over: it is aborted for certain, so
        that nobody need wait for it."""
        steps = [self.lay_pointer(*move) for move in self.plan.moves]
        if self.naming is not None:
            steps.append(self.lay_names(self.naming))
        if not all(await beside(*steps)):
            await close(self.state, self.session.runtime, self.plan.id)
            raise TryOver

    async def lay_pointer(self, pointer: Pointer, successor: Pointer) -> bool:
        """An intent on one pointer, at the version that the plan stands on and no other."""
        laid = pointer.with_intent(self.session.runtime.ulid(), self.plan.id, successor)
        outcome = await self.state.move_pointer(laid, pointer.version)
        if isinstance(outcome, Applied):
            self.laid.append(Pointer(laid.document, outcome.version))
            return True
        now = await self.state.pointer(pointer.entity)
        if now is None or now.intent != self.plan.id:
            return False
        self.laid.append(now)  # the refusal was our own echo
        return True

    async def lay_names(self, prepared: RegistryCommit) -> bool:
        """Intents on all new names, by one registry commit. A name that is no longer free ends the try."""
        if await prepared.swap():
            return True
        try:
            await change_registry(self.session, "lay-names", self.detail(), self.names_to_lay)
        except (Refusal, Undecided):
            return False
        return True

    def names_to_lay(self, head: Head) -> Edits | None:
        """The intents, unless HEAD has them already: a refusal may have been our own echo."""
        mine = (relation(head, creator.namespace, creator.name, "table") for creator, _ in self.plan.drafts)
        if all(entry is not None and entry.transaction == self.plan.id for entry in mine):
            return None
        return self.new_names(head)

    async def decide(self) -> Applied | Refused:
        """The commit. Refused: somebody aborted us, or it is our own echo: the driver reads which."""
        if self.pending is None:
            raise Broken("a transaction was decided before it began")
        body = encode(self.pending.decided("committed", self.session.runtime.ulid()))
        outcomes: list[Applied | Refused] = []

        async def swap(version: Version | None) -> None:
            outcomes.append(await self.state.swap(self.state.paths.transaction(self.plan.id), body, version))

        await beside(swap(self.pending.version), self.prepare_settling())
        outcome = outcomes[0]
        if isinstance(outcome, Refused):
            if await close(self.state, self.session.runtime, self.plan.id):
                return Applied(Version(""), outcome.now_ms)
            raise TryOver
        return outcome

    async def prepare_settling(self) -> None:
        """Writes the registry commit that is to settle the names, while the decision is under way."""
        head = self.state.cached_head()
        if self.naming is None or head is None or not (edits := self.names_to_settle(head)):
            return
        prepared = self.names_commit("settle-names", head, edits)
        try:
            await prepared.put()
            self.settling = prepared
        except StoreError as error:
            self.session.drop_write(prepared.key, error)

    async def settle(self) -> None:
        """Takes the intents off again. Whoever meets one that is left does the same."""

        async def settle_pointer(laid: Pointer) -> None:
            await self.state.move_pointer(laid.settled(self.session.runtime.ulid(), committed=True), laid.version)

        async def settle_new_names() -> None:
            if self.settling is None or not await self.settling.swap():
                await change_registry(self.session, "settle-names", self.detail(), self.names_to_settle)

        steps = [settle_pointer(laid) for laid in self.laid]
        if self.naming is not None:
            steps.append(settle_new_names())
        await beside(*steps)

    def names_to_settle(self, head: Head) -> Edits:
        """What is left of our intents on names."""
        return settling(head.index, self.plan.id, committed=True)
