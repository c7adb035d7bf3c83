"""Handlers of views."""

from arco_catalog.http.exchange import Exchange
from arco_catalog.http.namespaces import paging
from arco_catalog.http.responses import NO_CONTENT, NO_HEADERS, Response, answer_response, json_response, table_response
from arco_catalog.iceberg.shapes import NAME
from arco_catalog.operations.answers import Answer, TableState
from arco_catalog.operations.commit import commit_view
from arco_catalog.operations.create import create_view
from arco_catalog.operations.drop import drop_view
from arco_catalog.operations.listing import list_relations
from arco_catalog.operations.load import load_view, view_exists
from arco_catalog.operations.register import register_view
from arco_catalog.operations.rename import rename_view


async def list_(exchange: Exchange) -> Response:
    """The views of a namespace."""
    listed = await list_relations(exchange.session(), exchange.namespace, "view", paging(exchange))
    return json_response({"identifiers": listed.items, "next-page-token": listed.next_page_token})


async def create(exchange: Exchange) -> Response:
    """Creates a view."""
    exchange.new_name()
    return _loaded(await create_view(exchange.session(), exchange.namespace, exchange.body or {}))


async def register(exchange: Exchange) -> Response:
    """Gives an existing metadata file a name."""
    name = exchange.new_name()
    location = exchange.fields.required("metadata-location", NAME)
    return _loaded(await register_view(exchange.session(), exchange.namespace, name, location))


async def load(exchange: Exchange) -> Response:
    """The view's current state."""
    return _loaded(await load_view(exchange.session(), exchange.namespace, exchange.view))


async def exists(exchange: Exchange) -> Response:
    """Whether it exists."""
    await view_exists(exchange.session(), exchange.namespace, exchange.view)
    return NO_CONTENT


async def replace(exchange: Exchange) -> Response:
    """Applies updates, if requirements hold."""
    exchange.check_identifier(exchange.view, "view")
    return _loaded(await commit_view(exchange.session(), exchange.namespace, exchange.view, exchange.body or {}))


async def drop(exchange: Exchange) -> Response:
    """Drops a view."""
    return answer_response(await drop_view(exchange.session(), exchange.namespace, exchange.view))


async def rename(exchange: Exchange) -> Response:
    """Gives a view another name."""
    source, destination = exchange.renaming()
    return answer_response(await rename_view(exchange.session(), source, destination))


def _loaded(answer: Answer) -> Response:
    """Every answer with a view's state is a LoadViewResult, that to a change included."""
    return (
        table_response(answer, NO_HEADERS, config=True) if isinstance(answer, TableState) else answer_response(answer)
    )
