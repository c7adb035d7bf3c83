"""Handlers of tables."""

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from arco_catalog.http.etag import Snapshots, none_match, table_etag
from arco_catalog.http.exchange import Exchange
from arco_catalog.http.names import read_name
from arco_catalog.http.namespaces import paging
from arco_catalog.http.responses import NO_CONTENT, NO_HEADERS, Response, answer_response, json_response, table_response
from arco_catalog.iceberg.errors import Broken
from arco_catalog.iceberg.json import dumps, loads
from arco_catalog.iceberg.shapes import BOOLEAN, NAME
from arco_catalog.iceberg.table import visible_snapshots_only
from arco_catalog.operations.answers import Answer, TableState
from arco_catalog.operations.commit import commit_table
from arco_catalog.operations.create import create_table
from arco_catalog.operations.drop import drop_table, unregister_table
from arco_catalog.operations.listing import list_relations
from arco_catalog.operations.load import load_table, table_exists
from arco_catalog.operations.register import register_table
from arco_catalog.operations.rename import rename_table


async def list_(exchange: Exchange) -> Response:
    """The tables of a namespace."""
    listed = await list_relations(exchange.session(), exchange.namespace, "table", paging(exchange))
    return json_response({"identifiers": listed.items, "next-page-token": listed.next_page_token})


async def create(exchange: Exchange) -> Response:
    """Creates a table, or stages one."""
    read_name(exchange.fields)
    return _tagged(await create_table(exchange.session(), exchange.namespace, exchange.body or {}))


async def register(exchange: Exchange) -> Response:
    """Gives an existing metadata file a name."""
    name = read_name(exchange.fields)
    location = exchange.fields.required("metadata-location", NAME)
    overwrite = exchange.fields.optional("overwrite", BOOLEAN) or False
    return _tagged(await register_table(exchange.session(), exchange.namespace, name, location, overwrite))


async def load(exchange: Exchange) -> Response:
    """The table's current state, or 304 for a client that holds it.

    The answer is 304 only now that pointer and metadata file were seen in the store: a client must not go on with a
    table whose metadata is gone.
    """
    snapshots = cast(Snapshots, exchange.query.choice("snapshots", ("all", "refs"), "all"))
    state = await load_table(exchange.session(), exchange.namespace, exchange.table)
    headers = _etag(state, snapshots)
    if not none_match(exchange.headers.get("if-none-match"), headers["ETag"]):
        return Response(304, headers=headers)
    if snapshots == "refs":
        state = _with_visible_snapshots(state)
    return table_response(state, headers, config=True)


async def exists(exchange: Exchange) -> Response:
    """Whether it exists."""
    await table_exists(exchange.session(), exchange.namespace, exchange.table)
    return NO_CONTENT


async def commit(exchange: Exchange) -> Response:
    """Applies updates, if requirements hold."""
    exchange.check_identifier(exchange.table, "table")
    return _tagged(await commit_table(exchange.session(), exchange.namespace, exchange.table, exchange.body or {}))


async def drop(exchange: Exchange) -> Response:
    """Drops a table, and its files where that is asked for."""
    purge = exchange.query.flag("purgeRequested")
    return answer_response(await drop_table(exchange.session(), exchange.namespace, exchange.table, purge))


async def unregister(exchange: Exchange) -> Response:
    """Takes the name away and tells where the metadata is; files stay."""
    return table_response(
        await unregister_table(exchange.session(), exchange.namespace, exchange.table), NO_HEADERS, config=False
    )


async def rename(exchange: Exchange) -> Response:
    """Gives a table another name."""
    source, destination = exchange.renaming()
    return answer_response(await rename_table(exchange.session(), source, destination))


async def report_metrics(exchange: Exchange) -> Response:
    """Takes an engine's report of a scan or commit, and keeps nothing of it.

    The table is not looked up: engines report on tables that they have only staged, and they report often.
    """
    _ = exchange.namespace, exchange.table  # possible ones, at least
    exchange.fields.required("report-type", NAME)
    return NO_CONTENT


def _etag(state: TableState, snapshots: Snapshots = "all") -> Mapping[str, str]:
    return {"ETag": table_etag(state.metadata_location, snapshots=snapshots)}


def _tagged(answer: Answer) -> Response:
    """An answer with the tag that loading the table would have; a staged table has none."""
    return answer_response(answer, _etag(answer) if isinstance(answer, TableState) else {})


def _with_visible_snapshots(state: TableState) -> TableState:
    document = loads(state.metadata)
    if not isinstance(document, dict):
        raise Broken(f"{state.metadata_location} is not a JSON object")
    return replace(state, metadata=dumps(visible_snapshots_only(document)))
