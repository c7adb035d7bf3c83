"""HTTP handlers that create, register, drop, undrop, unregister and rename tables. Each raises `BadRequest` for an
invalid path or body. A commit needs few of their modules, so it is in table_commits.py."""

from arco_catalog.http.request_context import RequestContext
from arco_catalog.http.responses import NO_HEADERS, Response, answer_response, json_response, table_response
from arco_catalog.http.table_commits import tagged_response
from arco_catalog.http.tables import delegates, tag_of
from arco_catalog.iceberg.shapes import BOOLEAN, NAME
from arco_catalog.operations.create import create_table
from arco_catalog.operations.drop import drop_table, unregister_table
from arco_catalog.operations.register import register_table
from arco_catalog.operations.rename import rename_table
from arco_catalog.operations.undrop import undrop as undrop_relation
from arco_catalog.planning.answers import Answer, TableState
from arco_catalog.protocol.catalog import Session


async def create(context: RequestContext) -> Response:
    """Creates the table that the body describes and returns its state, or with `stage-create` only returns the metadata
    for one; either with access to the files if the client requests it. Access is
    only given where the realm's deployment can delegate it. Raises the errors of `create_table`, and an error for an
    invalid path or name."""
    name, session = context.new_name(), context.sessions.open()
    answer = await create_table(session, context.namespace, context.body or {})
    return await _new_table_response(context, session, name, answer)


async def register(context: RequestContext) -> Response:
    """Registers an existing metadata file as a table, and returns the table's state; with `overwrite` it replaces the
    table that has the name. Raises the errors of `register_table`, and an error for an invalid path or body."""
    name = context.new_name()
    location = context.fields.required("metadata-location", NAME)
    overwrite = context.fields.optional("overwrite", BOOLEAN) or False
    session = context.sessions.open()
    answer = await register_table(session, context.namespace, name, location, overwrite)
    return await _new_table_response(context, session, name, answer)


async def drop(context: RequestContext) -> Response:
    """Drops a table; `purgeRequested` requests a purge of its files, which `drop_table` plans. Raises the errors of
    `drop_table`, and an error for an invalid path or query."""
    purge = context.query.flag("purgeRequested")
    return answer_response(await drop_table(context.sessions.open(), context.namespace, context.table, purge))


async def undrop(context: RequestContext) -> Response:
    """Restores the table or view that was dropped last under the name in the path. The response has no body. Raises the
    errors of `operations.undrop.undrop`."""
    return answer_response(await undrop_relation(context.sessions.open(), context.namespace, context.table))


async def unregister(context: RequestContext) -> Response:
    """Removes a table from the catalog and returns its last metadata. Its files are not deleted. Raises the errors of
    `unregister_table`."""
    return table_response(
        await unregister_table(context.sessions.open(), context.namespace, context.table), NO_HEADERS, config=False
    )


async def rename(context: RequestContext) -> Response:
    """Gives a table another name, in any namespace of the catalog: the body has both names. Raises the errors of
    `rename_table`, and an error for an invalid body."""
    source, destination = context.renaming()
    return answer_response(await rename_table(context.sessions.open(), source, destination))


async def _new_table_response(context: RequestContext, session: Session, name: str, answer: Answer) -> Response:
    """Returns the response about a new or staged table, with access to its files if the client requests it and the
    catalog can give it. The access is that of the caller's present grants, also if the response repeats an old one."""
    if not delegates(context):
        return tagged_response(answer)
    # Imported here: a request without delegation saves the time.
    from arco_catalog.http import delegation

    if isinstance(answer, TableState):
        delegated = await delegation.access_to_new_table(context, session, name, answer)
        headers = {**tag_of(answer, delegated=delegated), **delegated.headers}
        return table_response(answer, headers, config=answer.created, delegated=delegated)
    delegated = await delegation.access_to_staged_table(context, session, name, answer)
    return json_response(delegation.with_access(answer.body or {}, delegated), answer.status, delegated.headers)
