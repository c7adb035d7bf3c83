"""Generic tables: tables of other formats, of which the catalog stores a name, a location and a description. Engines
read their files; the catalog never does (docs/design/polaris.md#generic-tables)."""

from collections.abc import Mapping
from functools import partial

from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.iceberg.properties import refuse_reserved
from arco_catalog.operations.described import drop_described, load_described
from arco_catalog.operations.named_change import NamedChange
from arco_catalog.operations.properties import check_properties
from arco_catalog.planning.answers import Answer, Document
from arco_catalog.planning.attempt import Attempt
from arco_catalog.planning.descriptions import describe
from arco_catalog.planning.names import name_taken, require_free_name
from arco_catalog.planning.overlap import require_free_locations
from arco_catalog.planning.registry_change import Change
from arco_catalog.planning.shared_places import shared_marks
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.driver import run
from arco_catalog.protocol.registry_mutation import RegistryReadSet
from arco_catalog.state.entries import DescribedKind, RelationEntry
from arco_catalog.state.fields import mapping
from arco_catalog.state.holds import location_holds
from arco_catalog.state.index import Namespace
from arco_catalog.state.needs import Steps
from storage_backends.lazy_dataclass import dataclass

KIND: DescribedKind = "generic-table"
MAX_FORMAT = 64
"""Maximum characters of a format, which is part of the registry."""
MAX_DOC_BYTES = 64 << 10


@dataclass(frozen=True, slots=True)
class GenericTable:
    """A request to create a generic table. `format` is any tag that engines agree on: `delta`, `lance`, `hudi`, `csv`.
    Without a `base_location` the catalog neither reserves a location nor vends credentials."""

    name: str
    format: str
    base_location: str | None
    doc: str | None
    properties: Mapping[str, str]

    def check(self) -> None:
        """Raises `BadRequest` for a generic table with a format that is empty, too long or not printable, with a `doc`
        that is too long, or with a reserved property."""
        if not 0 < len(self.format) <= MAX_FORMAT or not self.format.isprintable():
            raise BadRequest(f"Invalid request.format: it must have 1 to {MAX_FORMAT} printable characters")
        if (size := len((self.doc or "").encode())) > MAX_DOC_BYTES:
            raise BadRequest(
                f"Invalid request.doc: it is {size:,} bytes long, and at most {MAX_DOC_BYTES:,} are allowed"
            )
        refuse_reserved(self.properties)

    @property
    def described(self) -> JsonObject:
        """The generic table's JSON in answers: without `base-location` or `doc` if the request did not set it, and with
        `properties` always."""
        fields: JsonObject = {"name": self.name, "format": self.format}
        if self.base_location is not None:
            fields["base-location"] = self.base_location
        if self.doc is not None:
            fields["doc"] = self.doc
        return {**fields, "properties": {**self.properties}}


async def create_generic_table(session: Session, namespace: Namespace, table: GenericTable) -> Answer:
    """Creates a generic table. Raises `NoSuchNamespace`, `AlreadyExists` if any kind of relation has the name,
    `BadRequest` for a location that is taken or not allowed, for fields that are invalid or too long, and for reserved
    properties, and `Forbidden` for a location that the caller may not choose."""
    table.check()
    return await run(session, _Create(session, namespace, table))


async def load_generic_table(session: Session, namespace: Namespace, name: str) -> JsonObject:
    """Returns the JSON of a generic table, as answers show it. Raises `NoSuchTable`."""
    return mapping((await load_described(session, KIND, namespace, name)).value, "table")


async def drop_generic_table(session: Session, namespace: Namespace, name: str) -> Answer:
    """Removes the name of a generic table and leaves a tombstone. Deletes no files. Raises `NoSuchTable`."""
    return await drop_described(session, KIND, namespace, name)


class _Create(NamedChange):
    kind = f"create-{KIND}"

    def __init__(self, session: Session, namespace: Namespace, table: GenericTable) -> None:
        super().__init__(session, namespace, table.name)
        self.table = table

    def change(self, read_set: RegistryReadSet, attempt: Attempt) -> Steps[Change]:
        """Plans the creation of the generic table, with the location that it holds, if any, and the write of the
        description. Raises `NoSuchNamespace`, `AlreadyExists`, `PendingTransaction`, an error for properties that
        are too large and a location that is taken or not allowed, and `Forbidden` for one that the caller may not
        choose."""
        index, namespace, table = read_set.head.index, self.namespace, self.table
        yield from require_free_name(
            index, namespace, table.name, partial(name_taken, KIND, namespace=namespace, name=table.name)
        )
        check_properties(f"generic table {self.full_name}", table.properties, table.properties)
        locations = [] if table.base_location is None else [self.context.locations.check(table.base_location)]
        yield from require_free_locations(self.context, index, locations, namespace)
        marks = yield from shared_marks(self.context, index, locations, entity=attempt.entity)
        value, write = describe(self.context, attempt, KIND, namespace, table.name, table.described)
        normal = [location.normal for location in locations]
        entry = RelationEntry.described(
            KIND, written_in=table.format, entity=attempt.entity, locations=normal, value=value.id
        )
        return Change(
            edits={
                **marks,
                self.key: entry.json,
                **location_holds(attempt.entity, normal, name=(*namespace, table.name)),
            },
            answer=Document(200, {"table": table.described}, value),
            detail=self.detail(attempt.entity, format=table.format),
            first=[write],
            about=(attempt.entity, None),
        )
