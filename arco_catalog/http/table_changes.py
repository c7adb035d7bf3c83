"""Handlers that change tables."""

from arco_catalog.http.exchange import Exchange
from arco_catalog.http.responses import NO_HEADERS, Response, answer_response, table_response
from arco_catalog.http.tables import tag_of
from arco_catalog.iceberg.shapes import BOOLEAN, NAME
from arco_catalog.operations.answers import Answer, TableState
from arco_catalog.operations.commit import commit_table
from arco_catalog.operations.create import create_table
from arco_catalog.operations.drop import drop_table, unregister_table
from arco_catalog.operations.register import register_table
from arco_catalog.operations.rename import rename_table


async def create(exchange: Exchange) -> Response:
    """Creates a table, or stages one."""
    exchange.new_name()
    return _tagged(await create_table(exchange.session(), exchange.namespace, exchange.body or {}))


async def register(exchange: Exchange) -> Response:
    """Gives an existing metadata file a name."""
    name = exchange.new_name()
    location = exchange.fields.required("metadata-location", NAME)
    overwrite = exchange.fields.optional("overwrite", BOOLEAN) or False
    return _tagged(await register_table(exchange.session(), exchange.namespace, name, location, overwrite))


async def commit(exchange: Exchange) -> Response:
    """Applies updates, if requirements hold."""
    exchange.check_identifier(exchange.table, "table")
    exchange.check_creation(exchange.body or {}, exchange.table)
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


def _tagged(answer: Answer) -> Response:
    """An answer with the tag that loading the table would have; a staged table has none."""
    return answer_response(answer, tag_of(answer) if isinstance(answer, TableState) else {})
