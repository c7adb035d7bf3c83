"""Handlers of namespaces."""

from arco_catalog.http.exchange import Exchange
from arco_catalog.http.names import decode_namespace, read_namespace
from arco_catalog.http.responses import NO_CONTENT, Response, answer_response, json_response
from arco_catalog.iceberg.shapes import STRING, STRINGS, list_of
from arco_catalog.operations import namespaces
from arco_catalog.operations.listing import Paging, list_namespaces
from arco_catalog.state.worker_threads import off_loop


def paging(exchange: Exchange) -> Paging:
    """What the query says of pages. Raises `BadRequest`."""
    return Paging(exchange.query.one("pageToken"), exchange.query.positive("pageSize"))


async def list_(exchange: Exchange) -> Response:
    """Children of `parent`; an empty parent is none."""
    joined = exchange.query.one("parent")
    parent = decode_namespace(exchange.spelling.parent(joined), exchange.options.namespace_separator) if joined else ()
    listed = await list_namespaces(exchange.session(), parent, paging(exchange))
    return json_response({"namespaces": listed.items, "next-page-token": listed.next_page_token})


async def create(exchange: Exchange) -> Response:
    """Creates a namespace inside an existing one, or at the top."""
    namespace = read_namespace(exchange.fields, exchange.options.namespace_separator)
    exchange.check_new(namespace[-1], "request.namespace")
    properties = await _properties(exchange, "properties")
    return answer_response(await namespaces.create_namespace(exchange.session(), namespace, properties))


async def load(exchange: Exchange) -> Response:
    """The namespace's properties."""
    return json_response(await namespaces.load_namespace(exchange.session(), exchange.namespace))


async def exists(exchange: Exchange) -> Response:
    """Whether it exists."""
    await namespaces.namespace_exists(exchange.session(), exchange.namespace)
    return NO_CONTENT


async def drop(exchange: Exchange) -> Response:
    """Drops an empty namespace."""
    return answer_response(await namespaces.drop_namespace(exchange.session(), exchange.namespace))


async def update_properties(exchange: Exchange) -> Response:
    """Sets and removes properties."""
    asked = exchange.fields.values.get("removals")
    namespaces.check_removals(len(asked) if isinstance(asked, list) else 0)  # before each of them is looked at
    removals = exchange.fields.optional("removals", list_of(STRING)) or []
    updates = await _properties(exchange, "updates")
    session = exchange.session()
    return answer_response(await namespaces.update_properties(session, exchange.namespace, removals, updates))


async def _properties(exchange: Exchange, name: str) -> dict[str, str]:
    fields = exchange.fields
    return await off_loop(exchange.body_bytes, lambda: fields.optional(name, STRINGS)) or {}
