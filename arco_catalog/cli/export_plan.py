"""What another catalog can take over of this one, and what it can't: the entries of the plan of `arco export`."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field

from arco_catalog.cli.ls import all_items, entries_below
from arco_catalog.cli.session import another
from arco_catalog.iceberg.errors import CatalogError
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.listing import list_policies
from arco_catalog.operations.namespaces import namespace_properties
from arco_catalog.planning.names import format_identifier
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.lookup import relation_entry
from arco_catalog.state.fields import text
from arco_catalog.state.index import Namespace
from arco_catalog.upkeep.source_tables import copied_properties, files_of

SYSTEM = ("system",)
LEFT_OUT = "left-out"


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry: a namespace with its properties, a table or view with its metadata file and uuid; or an object that
    can't be read, or that another catalog can't take over by Iceberg's API, with the `reason`."""

    kind: str
    namespace: Namespace
    name: str = ""
    metadata_location: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    reason: str | None = None
    uuid: str | None = None

    @property
    def label(self) -> str:
        """The name of the object, with dots between its levels."""
        return format_identifier((*self.namespace, *((self.name,) if self.name else ())))

    def to_json(self) -> JsonObject:
        """Returns the line of an export for this entry: a namespace with properties, a table or view with its metadata
        file, or an object that can't be read or taken over, as `left-out` with its kind and the reason."""
        place: JsonObject = {"namespace": [*self.namespace]}
        if self.name:
            place["name"] = self.name
        if self.reason is not None:
            return {"type": LEFT_OUT, "kind": self.kind, **place, "reason": self.reason}
        if self.kind == "namespace":
            return {"type": self.kind, **place, "properties": {**self.properties}}
        return {"type": self.kind, **place, "metadata-location": self.metadata_location}


async def entries_to_export(session: Session, only: Namespace = ()) -> AsyncIterator[Entry]:
    """Yields the entries of a catalog, a namespace before what is in it; with `only` the entries of this namespace, and
    the namespaces around it. The whole namespace `system`, with the tables that the catalog writes about itself, is
    left out. What can't be read is an entry with the reason. Raises `StoreError`, and the errors of `entries_below`."""
    async for kind, levels in entries_below(session):
        around = kind == "namespace" and only[: len(levels)] == levels
        if levels[:1] == SYSTEM or not (around or levels[: len(only)] == only):
            continue
        try:
            async for entry in _entries(another(session), kind, levels):
                yield entry
        except CatalogError as error:
            yield Entry(kind, levels[:-1], levels[-1], reason=str(error))


async def _entries(session: Session, kind: str, levels: Namespace) -> AsyncIterator[Entry]:
    """Yields the entries for a namespace, table or view: itself, and what of it can't be exported; for any other object
    one with the reason. Yields nothing for a table or view that was dropped since it was listed."""
    match kind:
        case "namespace":
            found = await namespace_properties(session, levels)
            yield Entry(kind, levels, properties=copied_properties(found))
            if any(name.startswith("arco.") for name in found):
                yield Entry("governance", levels, reason=_GOVERNANCE)
            async for item in all_items(lambda paging: list_policies(session, levels, None, paging)):
                if isinstance(item, dict):
                    yield Entry("policy", levels, text(item, "name"), reason=_FOREIGN)
        case "table" | "view":
            head = await session.state.head()
            entry = await relation_entry(session.state, head.index, levels[:-1], levels[-1])
            if entry is None:
                return  # dropped since it was listed
            current, _ = await files_of(session, entry)
            yield Entry(kind, levels[:-1], levels[-1], current, uuid=entry.uuid)
            if entry.governance:
                yield Entry("governance", levels[:-1], levels[-1], reason=_GOVERNANCE)
        case _:
            yield Entry(kind, levels[:-1], levels[-1], reason=_FOREIGN)


_FOREIGN = "Iceberg's API has no such objects"
_GOVERNANCE = "owner, quality and tags are not part of Iceberg's API"
