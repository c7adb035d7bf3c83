"""Documents of semantic models, and the tables and views to which they refer (docs/design/polaris.md#semantic-models).

A document has the version of Apache Ossie in which it is written, and JSON text with one model or an array of models.
The catalog checks only the sources of their data sets.
"""

from collections.abc import Iterator, Sequence

from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.json import JsonObject, JsonValue, MalformedJson, loads
from arco_catalog.iceberg.shapes import OBJECT, STRING, Fields, check, list_of, quoted
from arco_catalog.planning.access import Requirement, Securable
from arco_catalog.planning.context import Context
from arco_catalog.planning.names import Identifier
from arco_catalog.planning.privileges import Privilege
from arco_catalog.state.entries import find_relation
from arco_catalog.state.index import Index, relation_key
from arco_catalog.state.needs import Needs, Steps
from storage_backends.lazy_dataclass import dataclass

MAX_MODEL_BYTES = 256 << 10
"""The limit of a document's text in bytes."""
MAX_VERSION = 64
"""The limit of a document's version in characters."""
MAX_SOURCES = 1_000
"""The limit of data sets in one document."""


@dataclass(frozen=True, slots=True)
class Source:
    """The table or view from which a data set of a semantic model has its rows. `pointer` is the JSON pointer (RFC
    6901) to the name in the document."""

    identifier: Identifier
    pointer: str

    def __str__(self) -> str:
        namespace, name = self.identifier
        return f"source {quoted('.'.join((*namespace, name)))} at {self.pointer}"


@dataclass(frozen=True, slots=True)
class ModelDocument:
    """A document of a semantic model, and the tables and views from which its data sets have their rows."""

    json: JsonObject
    sources: Sequence[Source]


def parse_document(document: JsonObject) -> ModelDocument:
    """Reads a document that a client sent. The result has only the fields `version` and `semantic_model`, and the
    sources of the data sets. Raises `BadRequest`."""
    fields = Fields(document, "request.document")
    version, model = fields.required("version", STRING), fields.required("semantic_model", STRING)
    if not 0 < len(version) <= MAX_VERSION or not version.isprintable():
        raise BadRequest(f"Invalid request.document.version: it must have 1 to {MAX_VERSION} printable characters")
    try:
        body = model.encode()
    except UnicodeEncodeError as error:
        raise BadRequest(
            "Invalid request.document.semantic_model: it has characters that UTF-8 cannot encode"
        ) from error
    if len(body) > MAX_MODEL_BYTES:
        raise BadRequest(
            f"Invalid request.document.semantic_model: it is {len(body):,} bytes long, and at most "
            f"{MAX_MODEL_BYTES:,} are allowed"
        )
    if not model.strip():
        raise BadRequest("Invalid request.document.semantic_model: it is blank: expected a semantic model as JSON text")
    try:
        sources = [*_sources(loads(body))]
    except MalformedJson as error:
        raise BadRequest(f"Invalid request.document.semantic_model: not JSON: {error}") from error
    if len(sources) > MAX_SOURCES:
        raise BadRequest(
            f"Invalid request.document.semantic_model: it has {len(sources):,} data sets, and at most "
            f"{MAX_SOURCES:,} are allowed"
        )
    return ModelDocument({"version": version, "semantic_model": model}, sources)


def _sources(parsed: JsonValue) -> Iterator[Source]:
    """Yields the sources of the data sets in a model, or in an array of models. Fails for any other JSON, and for a
    data set without a source that is a printable name with its namespace."""
    at = "/semantic_model"
    models = enumerate(parsed) if isinstance(parsed, list) else [(None, parsed)]
    for place, model in models:
        model_at = at if place is None else f"{at}/{place}"
        fields = Fields(check(OBJECT, model, model_at), model_at)
        for number, dataset in enumerate(fields.optional("datasets", list_of(OBJECT)) or []):
            pointer = f"{model_at}/datasets/{number}/source"
            source = dataset.get("source")
            if not isinstance(source, str):
                raise BadRequest(f"A data set must define a string 'source': {pointer}")
            *namespace, name = source.split(".")
            if not namespace or not all(part and part.isprintable() for part in (*namespace, name)):
                raise BadRequest(
                    f"Source {quoted(source)} at {pointer} must be a name with its namespace, `<namespace>.<name>`, of "
                    "printable characters and without an empty level"
                )
            yield Source((tuple(namespace), name), pointer)


def check_sources(context: Context, index: Index, sources: Sequence[Source]) -> Steps[None]:
    """Raises `BadRequest` for a source that is not a table, view or generic table of the catalog, or one of which the
    caller may not read the properties, with one message for both; and `PendingTransaction` for the name of a table that
    a transaction creates."""
    yield Needs(keys=[relation_key(*source.identifier) for source in sources])
    allowed: dict[Identifier, bool] = {}
    for source in sources:
        if source.identifier not in allowed:
            allowed[source.identifier] = yield from _may_read(context, index, source.identifier)
        if not allowed[source.identifier]:
            raise BadRequest(
                f"Semantic model {source} does not resolve to a table, view or generic table of this catalog of which "
                "the caller may read the properties"
            )


def _may_read(context: Context, index: Index, identifier: Identifier) -> Steps[bool]:
    """Returns whether the caller may read the properties of the table, view or generic table of this name; False if
    there is none, and for a semantic model. Raises `PendingTransaction` for the name of an undecided transaction."""
    relation = find_relation(index, *identifier)
    if relation is None or relation.require_committed().kind == "semantic-model":
        return False
    on = Securable(*identifier, "table-like")
    needed = Requirement(Privilege.TABLE_READ_PROPERTIES, on, on_view=Privilege.VIEW_READ_PROPERTIES)
    return (yield from context.may(index, needed))
