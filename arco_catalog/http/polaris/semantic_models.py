"""HTTP handlers that list, create, load, replace and drop semantic models."""

from arco_catalog.http.paging import paging
from arco_catalog.http.request_context import RequestContext
from arco_catalog.http.responses import Response, answer_response, json_response
from arco_catalog.iceberg.shapes import OBJECT, STRING
from arco_catalog.operations import semantic_models
from arco_catalog.operations.listing import list_relations

NAME = "semantic-model-name"


async def list_(context: RequestContext) -> Response:
    """Returns a page of the semantic models of a namespace. Without `pageToken` all are in one page. What the caller
    may not see is left out, so a page may be empty before the last. Raises `NoSuchNamespace`, and `BadRequest` for an
    invalid query."""
    listed = await list_relations(context.sessions.open(), context.namespace, semantic_models.KIND, paging(context))
    return json_response({"identifiers": listed.items, "next-page-token": listed.next_page_token})


async def create(context: RequestContext) -> Response:
    """Creates a semantic model with the name and the document in the body, and returns it. Raises an error for an
    invalid body, and the errors of `create_semantic_model`."""
    name, document = context.new_name(), context.fields.required("document", OBJECT)
    return answer_response(
        await semantic_models.create_semantic_model(context.sessions.open(), context.namespace, name, document)
    )


async def load(context: RequestContext) -> Response:
    """Returns the document of a semantic model and its version. Raises `NoSuchSemanticModel`."""
    name = context.path_name(NAME)
    return json_response(await semantic_models.load_semantic_model(context.sessions.open(), context.namespace, name))


async def replace(context: RequestContext) -> Response:
    """Replaces the document of a semantic model by that in the body, and returns the model. Raises
    `NoSuchSemanticModel`, `BadRequest` for an invalid body, and `SemanticModelVersionMismatch` if the body expects
    another version."""
    name, fields = context.path_name(NAME), context.fields
    expected, document = fields.required("entity-version", STRING), fields.required("document", OBJECT)
    return answer_response(
        await semantic_models.replace_semantic_model(
            context.sessions.open(), context.namespace, name, expected, document
        )
    )


async def drop(context: RequestContext) -> Response:
    """Drops the semantic model in the path. Raises `NoSuchSemanticModel`."""
    name = context.path_name(NAME)
    return answer_response(await semantic_models.drop_semantic_model(context.sessions.open(), context.namespace, name))
