"""Mutations whose commit point is the registry: namespaces, creates, registers, drops, renames (design.md 6.6).

They obey the same driver as a table's commits, with the manifest in place of the pointer; the operation id is the
attempt's id.
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from arco_catalog.iceberg.errors import Broken, CommitStateUnknown, Refusal
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.answers import Answer, Document, Reference, TableState, keep, recall
from arco_catalog.operations.catalog import Session
from arco_catalog.operations.evidence import FORGOTTEN, moved_registry
from arco_catalog.operations.mutation import Attempt, Freshness, Move, Mutation, Prelude, Settled, View, Write
from arco_catalog.operations.name_intents import settle_names, spilled_writes
from arco_catalog.state.access import State
from arco_catalog.state.entries import Undecided
from arco_catalog.state.index import Edits
from arco_catalog.state.marker import Binding
from arco_catalog.state.registry import Head, Operation
from storage_backends import Applied, Refused


@dataclass
class RegistryView(View):
    """HEAD as it was read, or as it is remembered."""

    state: State
    head: Head
    fresh: bool
    refusal: Refusal | None = None

    @property
    def trusted(self) -> bool:
        return self.fresh

    def shows(self, binding: Binding) -> bool:
        return not binding.pointers

    async def landed(self, attempt: str, binding: Binding) -> bool:
        return await moved_registry(self.state, self.head, attempt, binding)


@dataclass(frozen=True, slots=True)
class Change:
    """What one operation changes: index entries, and objects written before and, at best effort, after the commit."""

    edits: Edits
    answer: Answer
    detail: JsonObject
    first: Sequence[Write] = ()
    after: Sequence[Write] = ()


class RegistryMutation(Mutation[RegistryView]):
    """One operation on the registry. Subclasses say what it changes, given a HEAD."""

    kind: str

    def __init__(self, session: Session) -> None:
        self.session = session
        self.state = session.state

    @abstractmethod
    def change(self, view: RegistryView, attempt: Attempt) -> Change | Settled:
        """The change to make on this HEAD. Raises `Refusal`, `Undecided` where it depends on a transaction, and
        `Unread`."""

    async def locate(self, freshness: Freshness) -> RegistryView:
        head = self.state.cached_head() if freshness is Freshness.REMEMBERED else None
        if head is not None:
            return RegistryView(self.state, head, fresh=False)
        return RegistryView(self.state, await self.state.head(), fresh=True)

    def incomplete(self, view: RegistryView) -> bool:
        return False

    async def complete(self, view: RegistryView) -> None:
        return None

    def binding(self, view: RegistryView, attempt: Attempt) -> Binding:
        return Binding(registry=view.head.sequence)

    def plan(self, view: RegistryView, attempt: Attempt) -> Move[RegistryView] | Settled | Prelude:
        try:
            change = self.change(view, attempt)
        except Undecided as met:
            transaction = met.transaction
            return Prelude(lambda: settle_names(self.session, transaction))
        if isinstance(change, Settled):
            return change
        detail: JsonObject = {
            "principal": self.session.call.principal,
            "source": self.session.call.source,
            **change.detail,
        }
        operation = Operation(attempt.id, self.kind, detail, keep(change.answer))
        commit = self.session.runtime.ulid()
        successor = view.head.successor(
            commit=commit,
            at_ms=self.session.runtime.now_ms(),
            edits=change.edits,
            operations=[operation],
            spilling=self.state.spilling,
        )
        key = self.state.paths.registry_commit(commit)

        async def check() -> RegistryView | None:
            """A remembered HEAD is read again beside the first writes: cheaper than losing the compare-and-swap."""
            if view.fresh:
                return None
            fresher = RegistryView(self.state, await self.state.head(), fresh=True)
            if fresher.head.version == view.head.version:
                return None
            if self.incomplete(fresher):
                await self.complete(fresher)
            return fresher

        async def put_commit() -> None:
            await self.state.create(key, successor.body)

        async def swap() -> Applied | Refused:
            return await self.state.move_head(successor, view.head.version)

        return Move(
            first=[Write(key, put_commit), *spilled_writes(self.state, successor), *change.first],
            check=check,
            swap=swap,
            after=change.after,
            answer=change.answer,
        )

    async def answer_on_evidence(self, attempt: str, binding: Binding) -> Answer:
        """The answer that the registry commit itself kept."""
        assert binding.registry is not None
        head = await self.state.head()
        commit_id = await self.state.commit_of(head, attempt, binding.registry)
        if commit_id is None:
            raise CommitStateUnknown(FORGOTTEN)
        commit = head if commit_id == head.id else await self.state.registry_commit(commit_id)
        operation = commit.operation(attempt)
        kept = recall(answer) if operation is not None and isinstance(answer := operation.get("answer"), dict) else None
        match kept:
            case Document():
                return kept
            case Reference(entity, location, created):
                return TableState(entity, location, await self.session.files.read(location), created)
            case _:
                raise Broken(f"registry commit {commit_id} kept no answer for operation {attempt}")
