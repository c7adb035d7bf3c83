"""HTTP handlers that list, create, load, change and drop namespaces."""

from arco_catalog.http.names import decode_namespace, read_namespace
from arco_catalog.http.paging import paging
from arco_catalog.http.request_context import RequestContext
from arco_catalog.http.responses import NO_CONTENT, Response, answer_response, json_response
from arco_catalog.iceberg.shapes import STRING, STRINGS, list_of
from arco_catalog.operations import namespaces
from arco_catalog.operations.listing import list_namespaces
from arco_catalog.state.worker_threads import off_loop


async def list_(context: RequestContext) -> Response:
    """Returns a page of the child namespaces of the query's `parent`, or of the top-level namespaces if the parameter
    is missing or empty. Without `pageToken` all are in one page. What the caller may not see is left out, so a page may
    be empty before the last. Raises `NoSuchNamespace` if the parent does not exist, and `BadRequest` for an invalid
    query."""
    joined = context.query.one("parent")
    parent = decode_namespace(context.spelling.parent(joined), context.options.namespace_separator) if joined else ()
    page = await list_namespaces(context.sessions.open(), parent, paging(context))
    return json_response({"namespaces": page.items, "next-page-token": page.next_page_token})


async def create(context: RequestContext) -> Response:
    """Creates the namespace in the body inside an existing one, or at the top level, and returns it. Raises
    `BadRequest` for an invalid name, and the errors of `create_namespace`."""
    namespace = read_namespace(context.fields, context.options.namespace_separator)
    context.check_new(namespace[-1], "request.namespace")
    properties = await _properties(context, "properties")
    return answer_response(await namespaces.create_namespace(context.sessions.open(), namespace, properties))


async def load(context: RequestContext) -> Response:
    """Returns the namespace in the path and its properties. Raises `NoSuchNamespace`."""
    return json_response(await namespaces.load_namespace(context.sessions.open(), context.namespace))


async def exists(context: RequestContext) -> Response:
    """Returns 204 if the namespace exists. Raises `NoSuchNamespace` otherwise."""
    await namespaces.require_namespace(context.sessions.open(), context.namespace)
    return NO_CONTENT


async def drop(context: RequestContext) -> Response:
    """Drops the namespace in the path. Raises the errors of `drop_namespace`."""
    return answer_response(await namespaces.drop_namespace(context.sessions.open(), context.namespace))


async def update_properties(context: RequestContext) -> Response:
    """Sets and removes the properties of a namespace that the body names. Raises the errors of
    `operations.namespaces.update_properties`."""
    unchecked = context.fields.values.get("removals")
    # The count comes first, so that a list that is too long costs no check of each item.
    namespaces.check_removals(len(unchecked) if isinstance(unchecked, list) else 0)
    removals = context.fields.optional("removals", list_of(STRING)) or []
    updates = await _properties(context, "updates")
    session = context.sessions.open()
    return answer_response(await namespaces.update_properties(session, context.namespace, removals, updates))


async def _properties(context: RequestContext, name: str) -> dict[str, str]:
    """Returns the object of texts in the field `name` of the body; empty without the field. Null counts as no
    field, and any other value raises `BadRequest`. A long body is checked in a worker thread."""
    fields = context.fields
    return await off_loop(context.body_bytes, lambda: fields.optional(name, STRINGS)) or {}
