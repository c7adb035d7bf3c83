"""A table or view as one request sees it: its name, its pointer, its metadata."""

from dataclasses import dataclass

from arco_catalog.iceberg.errors import Broken, Refusal
from arco_catalog.operations.beside import beside
from arco_catalog.operations.catalog import Session
from arco_catalog.operations.evidence import moved_pointer
from arco_catalog.operations.mutation import Freshness, View
from arco_catalog.state.entries import RelationEntry, find_relation
from arco_catalog.state.index import Namespace
from arco_catalog.state.marker import Binding
from arco_catalog.state.pointer import Pointer
from arco_catalog.state.registry import Head


@dataclass
class TableView(View):
    """What the name means, and the state of that. `head_fresh` and `pointer_fresh` say what was read for this request.

    The base's bytes need no freshness of their own: a metadata file never changes.
    """

    head: Head
    entry: RelationEntry | None
    pointer: Pointer | None
    head_fresh: bool
    pointer_fresh: bool
    base: bytes | None = None
    refusal: Refusal | None = None

    @property
    def trusted(self) -> bool:
        return self.head_fresh and (self.pointer_fresh or self.entry is None)

    def shows(self, binding: Binding) -> bool:
        return binding.registry is None and all(
            self.pointer is not None and entity == self.pointer.entity for entity in binding.pointers
        )

    async def landed(self, attempt: str, binding: Binding) -> bool:
        return self.pointer is not None and moved_pointer(self.pointer, attempt, binding)


async def locate(session: Session, namespace: Namespace, name: str, kind: str, freshness: Freshness) -> TableView:
    """Reads the manifest, then the pointer, as far as what is remembered will not do.

    A fresh look at a table that this process knows reads both beside each other.
    """
    state = session.state
    known = state.cached_head()
    remembered = None if known is None else relation(known, namespace, name, kind)
    if known is not None and freshness is not Freshness.FRESH:
        head, head_fresh = known, False
        entry = remembered
    elif remembered is not None:
        view = await _both(session, remembered.entity)
        entry = relation(view.head, namespace, name, kind)
        view.entry = entry
        if entry is not None and entry.entity == remembered.entity:
            return view
        head, head_fresh = view.head, True
    else:
        head, head_fresh = await state.head(), True
        entry = relation(head, namespace, name, kind)
    if entry is None:
        return TableView(head, None, None, head_fresh, pointer_fresh=False)
    pointer = state.cached_pointer(entry.entity) if freshness is Freshness.REMEMBERED else None
    pointer_fresh = pointer is None
    if pointer is None:
        pointer = await state.pointer(entry.entity)
        if pointer is None:
            raise Broken(f"entity {entry.entity} has a name and no pointer")
    return TableView(head, entry, pointer, head_fresh, pointer_fresh)


async def _both(session: Session, entity: str) -> TableView:
    heads: list[Head] = []
    pointers: list[Pointer | None] = []

    async def read_head() -> None:
        heads.append(await session.state.head())

    async def read_pointer() -> None:
        pointers.append(await session.state.pointer(entity))

    await beside(read_head(), read_pointer())
    return TableView(heads[0], None, pointers[0], head_fresh=True, pointer_fresh=True)


def relation(head: Head, namespace: Namespace, name: str, kind: str) -> RelationEntry | None:
    """The table, or the view, of this name; None if it means something of the other kind, or nothing."""
    entry = find_relation(head.index, namespace, name)
    return entry if entry is not None and entry.kind == kind else None
