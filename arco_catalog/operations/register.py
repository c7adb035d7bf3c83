"""Registering a table that has its metadata already. Nothing is written but the pointer and the registry's commit."""

from arco_catalog.iceberg import table
from arco_catalog.iceberg.errors import AlreadyExists, BadRequest, Refusal
from arco_catalog.iceberg.json import JsonObject, MalformedJson, loads
from arco_catalog.operations.answers import Answer, TableState
from arco_catalog.operations.catalog import Session
from arco_catalog.operations.driver import run
from arco_catalog.operations.drop import burial
from arco_catalog.operations.metadata_file import pointer_facts
from arco_catalog.operations.mutation import Attempt, Write
from arco_catalog.operations.names import dotted, existing_namespace
from arco_catalog.operations.registry_change import Change, RegistryMutation, RegistryView
from arco_catalog.operations.reserve import refuse_overlap
from arco_catalog.operations.table_view import relation
from arco_catalog.state.entries import RelationEntry, find_relation, holds
from arco_catalog.state.index import Edits, Index, Namespace, relation_key
from arco_catalog.state.marker import Binding
from arco_catalog.state.pointer import MetadataFile, Pointer


async def register_table(
    session: Session, namespace: Namespace, name: str, metadata_location: str, overwrite: bool
) -> Answer:
    """Gives a metadata file a name, as a new entity. With `overwrite` the table that has the name becomes a tombstone,
    and the new one is judged without it."""
    return await run(session, _Register(session, namespace, name, metadata_location, overwrite))


class _Register(RegistryMutation):
    kind = "register-table"

    def __init__(
        self, session: Session, namespace: Namespace, name: str, metadata_location: str, overwrite: bool
    ) -> None:
        super().__init__(session)
        self.namespace = namespace
        self.name = name
        self.file = metadata_location
        self.overwrite = overwrite
        self._body: bytes | None = None

    def incomplete(self, view: RegistryView) -> bool:
        return self._body is None and view.refusal is None and self._conflict(view.head.index) is None

    async def complete(self, view: RegistryView) -> None:
        try:
            self.session.catalog.locations.check(self.file)
            self._body = await self.session.files.read(self.file)
        except Refusal as refusal:
            view.refusal = refusal

    def _conflict(self, index: Index) -> Refusal | None:
        existing = find_relation(index, self.namespace, self.name)
        if existing is None or (self.overwrite and existing.kind == "table"):
            return None
        if existing.kind == "view":
            return AlreadyExists(f"View with same name already exists: {dotted(self.namespace, self.name)}")
        return AlreadyExists(f"Table already exists: {dotted(self.namespace, self.name)}")

    def binding(self, view: RegistryView, attempt: Attempt) -> Binding:
        replaced = relation(view.head, self.namespace, self.name, "table")
        return Binding(
            registry=view.head.sequence,
            marks=() if replaced is None else (replaced.entity,),
            creates=(attempt.entity, self.file),
        )

    def change(self, view: RegistryView, attempt: Attempt) -> Change:
        index = view.head.index
        existing_namespace(index, self.namespace)
        conflict = self._conflict(index) or view.refusal
        if conflict is not None:
            raise conflict
        body = self._body or b""
        document = self._document(body)
        replaced = relation(view.head, self.namespace, self.name, "table")
        allowed = self.session.catalog.locations
        named = [table.location(document), *table.written_locations(document)]
        locations = list({(place := allowed.check(location)).normal: place for location in named}.values())
        taken = refuse_overlap(self.session, index, locations, but=[] if replaced is None else [replaced.entity])
        if taken is not None:
            raise AlreadyExists(taken)
        normal = [location.normal for location in locations]
        entry = RelationEntry.new(
            kind="table", entity=attempt.entity, uuid=table.table_uuid(document), locations=normal
        )
        buried: Edits = {}
        if replaced is not None:
            at_ms = self.session.runtime.now_ms()
            buried = burial(replaced, self.namespace, self.name, attempt.id, at_ms, purging=False)
        return Change(
            edits={
                **buried,
                relation_key(self.namespace, self.name): entry.json,
                **holds(attempt.entity, normal, "live"),
            },
            answer=TableState(attempt.entity, self.file, body, created=True),
            detail={
                "namespace": [*self.namespace],
                "name": self.name,
                "entity": attempt.entity,
                "metadata_location": self.file,
                "replaced": None if replaced is None else replaced.entity,
            },
            first=[self._pointer(document, attempt)],
        )

    def _document(self, body: bytes) -> JsonObject:
        try:
            return table.check_registered(loads(body))
        except MalformedJson as error:
            raise BadRequest(f"{self.file} is not a metadata file: {error}") from error

    def _pointer(self, document: JsonObject, attempt: Attempt) -> Write:
        """`origin` is where our own history of the entity begins: what lies before is another catalog's to receipt."""
        pointer = Pointer.first(
            entity=attempt.entity,
            kind="table",
            move=attempt.id,
            metadata=MetadataFile(self.file, table.last_updated_ms(document)),
            facts={**pointer_facts(self.session, document, None), "origin": {"registered": self.file}},
        )
        key, stored = self.state.paths.pointer(attempt.entity), pointer.body

        async def put() -> None:
            await self.state.create(key, stored)

        return Write(key, put)
