"""HTTP handlers that list, create, register, load, replace, drop and rename views. Each raises `BadRequest` for an
invalid path or body."""

from arco_catalog.http.loaded import load_response
from arco_catalog.http.paging import paging
from arco_catalog.http.request_context import RequestContext
from arco_catalog.http.responses import NO_CONTENT, NO_HEADERS, Response, answer_response, json_response, table_response
from arco_catalog.iceberg.shapes import NAME
from arco_catalog.operations.commit import commit_view
from arco_catalog.operations.create import create_view
from arco_catalog.operations.drop import drop_view
from arco_catalog.operations.listing import list_relations
from arco_catalog.operations.load import load_view, require_view
from arco_catalog.operations.register import register_view
from arco_catalog.operations.rename import rename_view
from arco_catalog.planning.answers import Answer, TableState


async def list_(context: RequestContext) -> Response:
    """Returns a page of the views of a namespace. Raises `NoSuchNamespace`, and `BadRequest` for an invalid query."""
    listed = await list_relations(context.sessions.open(), context.namespace, "view", paging(context))
    return json_response({"identifiers": listed.items, "next-page-token": listed.next_page_token})


async def create(context: RequestContext) -> Response:
    """Creates the view that the body describes, and returns its state. Raises the errors of `create_view`, and an
    error for an invalid path or name."""
    context.new_name()
    return _loaded(await create_view(context.sessions.open(), context.namespace, context.body or {}))


async def register(context: RequestContext) -> Response:
    """Registers an existing metadata file as a view, and returns its state. Raises the errors of
    `register_view`, and an error for an invalid path or body."""
    name = context.new_name()
    location = context.fields.required("metadata-location", NAME)
    return _loaded(await register_view(context.sessions.open(), context.namespace, name, location))


async def load(context: RequestContext) -> Response:
    """Returns the current state of a view, with labels of its governance as far as the host can carry them. Raises
    `NoSuchView`, and the errors of `load_view`."""
    return load_response(context, await load_view(context.sessions.open(), context.namespace, context.view), NO_HEADERS)


async def exists(context: RequestContext) -> Response:
    """Returns 204 if the view exists. Raises `NoSuchView` otherwise."""
    await require_view(context.sessions.open(), context.namespace, context.view)
    return NO_CONTENT


async def replace(context: RequestContext) -> Response:
    """Commits the updates in the body to a view, if the body's requirements are met, and returns its new state. Raises
    the errors of `commit_view`, and an error for an invalid path, or an `identifier` other than that in the path."""
    context.check_identifier_is_of_path(context.view, "view")
    return _loaded(await commit_view(context.sessions.open(), context.namespace, context.view, context.body or {}))


async def drop(context: RequestContext) -> Response:
    """Drops the view in the path. Raises the errors of `drop_view`."""
    return answer_response(await drop_view(context.sessions.open(), context.namespace, context.view))


async def rename(context: RequestContext) -> Response:
    """Gives a view another name, in any namespace of the catalog: the body has both names. Raises the errors of
    `rename_view`, and an error for an invalid body."""
    source, destination = context.renaming()
    return answer_response(await rename_view(context.sessions.open(), source, destination))


def _loaded(answer: Answer) -> Response:
    """Returns the HTTP response for the answer about a view. An answer with the view's state becomes a LoadViewResult,
    with `config` also after a commit."""
    return (
        table_response(answer, NO_HEADERS, config=True) if isinstance(answer, TableState) else answer_response(answer)
    )
