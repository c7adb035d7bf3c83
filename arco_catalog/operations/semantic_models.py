"""Semantic models: documents that describe the meaning of tables and views. The catalog gives them names and versions,
and checks their form and size, and that their sources exist (docs/design/polaris.md#semantic-models)."""

from functools import partial

from arco_catalog.iceberg.errors import SemanticModelVersionMismatch
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.operations.described import drop_described, load_described
from arco_catalog.operations.named_change import NamedChange
from arco_catalog.planning.answers import Answer, Document, EntityValue
from arco_catalog.planning.attempt import Attempt
from arco_catalog.planning.descriptions import describe
from arco_catalog.planning.names import check_plain_name, name_taken, no_such, require_free_name
from arco_catalog.planning.registry_change import Change
from arco_catalog.planning.semantic_models import ModelDocument, check_sources, parse_document
from arco_catalog.planning.writes import RecordWrite
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.driver import run
from arco_catalog.protocol.registry_mutation import RegistryReadSet
from arco_catalog.state.entries import DescribedKind, RelationEntry, find_kind
from arco_catalog.state.index import Namespace
from arco_catalog.state.needs import Needs, Steps

KIND: DescribedKind = "semantic-model"
FORMAT = "ossie"


async def create_semantic_model(session: Session, namespace: Namespace, name: str, document: JsonObject) -> Answer:
    """Creates a semantic model with a name and a document. Raises `NoSuchNamespace`, `AlreadyExists` if the name is
    taken by any kind of relation, and an error for an invalid name or document, or one with sources that are not in
    the catalog or that the caller may not read."""
    parsed = await _parsed(session, document)
    return await run(session, _Create(session, namespace, check_plain_name(KIND, name), parsed))


async def load_semantic_model(session: Session, namespace: Namespace, name: str) -> JsonObject:
    """Returns the document of a model and its version, as answers show them. Raises `NoSuchSemanticModel`."""
    model = await load_described(session, KIND, namespace, name)
    return _shown(model.value.get("document"), model.entry.value)


async def replace_semantic_model(
    session: Session, namespace: Namespace, name: str, expected: str, document: JsonObject
) -> Answer:
    """Replaces the document of a model. Raises `NoSuchSemanticModel`, `BadRequest` as `create_semantic_model` does, and
    `SemanticModelVersionMismatch` unless the model is at the `expected` version."""
    return await run(session, _Replace(session, namespace, name, await _parsed(session, document), expected))


async def drop_semantic_model(session: Session, namespace: Namespace, name: str) -> Answer:
    """Removes the name of a model and leaves a tombstone. Raises `NoSuchSemanticModel`."""
    return await drop_described(session, KIND, namespace, name)


async def _parsed(session: Session, document: JsonObject) -> ModelDocument:
    """Reads the document of a semantic model, a long one in a thread. Raises `BadRequest`."""
    return await session.parsed(lambda body, _: parse_document(body), document)


def _shown(document: JsonValue, version: str) -> JsonObject:
    """Returns a model as answers show it. The version is the id of its value, which is unique to each version."""
    return {"document": document, "entity-version": version}


class _Change(NamedChange):
    """The creation of one semantic model, or the replacement of a document."""

    def __init__(self, session: Session, namespace: Namespace, name: str, document: ModelDocument) -> None:
        super().__init__(session, namespace, name)
        self.document = document

    def changed(self, entry: RelationEntry, value: EntityValue, write: RecordWrite) -> Change:
        """Returns the change that stores the entry of a semantic model, writes its value first, and is answered with
        the model's document and version."""
        return Change(
            edits={self.key: entry.json},
            answer=Document(200, _shown(self.document.json, value.id), value),
            detail=self.detail(entry.entity),
            first=[write],
            about=(entry.entity, None),
        )

    def described(self, attempt: Attempt) -> tuple[EntityValue, RecordWrite]:
        """Returns a reference to a new stored value with this model's document, and the write of the value."""
        return describe(self.context, attempt, KIND, self.namespace, self.name, self.document.json)


class _Create(_Change):
    kind = f"create-{KIND}"

    def change(self, read_set: RegistryReadSet, attempt: Attempt) -> Steps[Change]:
        """Plans the creation of the semantic model, and the write of the document. Raises `NoSuchNamespace`,
        `AlreadyExists` if any relation has the name, an error for a source that does not exist or that the caller
        may not read, and `PendingTransaction`."""
        index, namespace, name = read_set.head.index, self.namespace, self.name
        yield from require_free_name(index, namespace, name, partial(name_taken, KIND, namespace=namespace, name=name))
        yield from check_sources(self.context, index, self.document.sources)
        value, write = self.described(attempt)
        entry = RelationEntry.described(KIND, written_in=FORMAT, entity=attempt.entity, value=value.id)
        return self.changed(entry, value, write)


class _Replace(_Change):
    kind = f"replace-{KIND}"

    def __init__(
        self, session: Session, namespace: Namespace, name: str, document: ModelDocument, expected: str
    ) -> None:
        super().__init__(session, namespace, name, document)
        self.expected = expected

    def change(self, read_set: RegistryReadSet, attempt: Attempt) -> Steps[Change]:
        """Computes the replacement of the model's document. Raises the errors of `replace_semantic_model`, so also if
        the model is not at the expected version, and `PendingTransaction` for a source that a transaction creates."""
        index = read_set.head.index
        yield Needs(keys=[self.key])
        entry = find_kind(index, self.namespace, self.name, KIND)
        if entry is None:
            raise no_such(KIND, self.namespace, self.name)
        if entry.value != self.expected:
            raise SemanticModelVersionMismatch(
                f"Semantic model {self.full_name} was not replaced: it is at another version than the one given. "
                "Load it and try again"
            )
        yield from check_sources(self.context, index, self.document.sources)
        value, write = self.described(attempt)
        return self.changed(entry.with_value(value.id), value, write)
