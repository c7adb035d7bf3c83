"""Handlers that change tables."""

from arco_catalog.http.request_context import RequestContext
from arco_catalog.http.responses import NO_HEADERS, Response, answer_response, table_response
from arco_catalog.http.tables import tag_of
from arco_catalog.iceberg.shapes import BOOLEAN, NAME
from arco_catalog.operations.commit import commit_table
from arco_catalog.operations.create import create_table
from arco_catalog.operations.drop import drop_table, unregister_table
from arco_catalog.operations.register import register_table
from arco_catalog.operations.rename import rename_table
from arco_catalog.planning.answers import Answer, TableState


async def create(context: RequestContext) -> Response:
    """Creates a table, or stages one."""
    context.new_name()
    return _tagged(await create_table(context.session(), context.namespace, context.body or {}))


async def register(context: RequestContext) -> Response:
    """Gives an existing metadata file a name."""
    name = context.new_name()
    location = context.fields.required("metadata-location", NAME)
    overwrite = context.fields.optional("overwrite", BOOLEAN) or False
    return _tagged(await register_table(context.session(), context.namespace, name, location, overwrite))


async def commit(context: RequestContext) -> Response:
    """Applies updates, if requirements hold."""
    context.check_identifier(context.table, "table")
    context.check_creation(context.body or {}, context.table)
    return _tagged(await commit_table(context.session(), context.namespace, context.table, context.body or {}))


async def drop(context: RequestContext) -> Response:
    """Drops a table. `purgeRequested` is passed on: the tombstone remembers it."""
    purge = context.query.flag("purgeRequested")
    return answer_response(await drop_table(context.session(), context.namespace, context.table, purge))


async def unregister(context: RequestContext) -> Response:
    """Removes a table from the catalog and answers with its last metadata. Its files stay."""
    return table_response(
        await unregister_table(context.session(), context.namespace, context.table), NO_HEADERS, config=False
    )


async def rename(context: RequestContext) -> Response:
    """Gives a table another name."""
    source, destination = context.renaming()
    return answer_response(await rename_table(context.session(), source, destination))


def _tagged(answer: Answer) -> Response:
    """An answer with the tag that loading the table would have; a staged table has none."""
    return answer_response(answer, tag_of(answer) if isinstance(answer, TableState) else {})
