"""HTTP handlers that list, create, load and drop generic tables."""

import logging
from typing import TYPE_CHECKING

from arco_catalog.http.paging import paging
from arco_catalog.http.polaris.access_delegation import wants_credentials
from arco_catalog.http.request_context import RequestContext
from arco_catalog.http.responses import Response, answer_response, json_response
from arco_catalog.iceberg.errors import CatalogError, Forbidden, Unsupported
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.iceberg.shapes import NAME, STRING, STRINGS
from arco_catalog.operations import generic_tables
from arco_catalog.operations.generic_tables import KIND, GenericTable, load_generic_table
from arco_catalog.operations.listing import list_relations
from arco_catalog.planning.answers import Document
from arco_catalog.protocol.catalog import Session
from storage_backends import StoreError

if TYPE_CHECKING:  # importing it takes time, which a request without delegation saves
    from arco_catalog.vending.service import Vending

_LOG = logging.getLogger(__name__)


async def list_(context: RequestContext) -> Response:
    """Returns a page of the generic tables of a namespace. Without `pageToken` all are in one page. Tables that
    the caller may not see are left out, so a page may be empty before the last. Raises `NoSuchNamespace`, and
    `BadRequest` for an invalid query."""
    listed = await list_relations(context.sessions.open(), context.namespace, KIND, paging(context))
    return json_response({"identifiers": listed.items, "next-page-token": listed.next_page_token})


async def create(context: RequestContext) -> Response:
    """Creates the generic table that the body describes, and returns it with credentials for its files, if the client
    requests them. A failure to make the credentials is logged, and the response then has none. Raises `BadRequest`,
    `Unsupported` if the client requests credentials and this server vends none at all, and the errors of
    `create_generic_table`."""
    fields = context.fields
    table = GenericTable(
        context.new_name(),
        fields.required("format", NAME),
        fields.optional("base-location", NAME),
        fields.optional("doc", STRING),
        fields.optional("properties", STRINGS) or {},
    )
    vending, session = _vending(context), context.sessions.open()
    answer = await generic_tables.create_generic_table(session, context.namespace, table)
    if vending is None or not isinstance(answer, Document):
        return answer_response(answer)
    try:
        return await _with_credentials(context, session, vending, table.name, answer.body or {})
    except (CatalogError, StoreError) as error:  # an error would hide from the client that the table exists
        _LOG.warning(
            "a generic table was created, but the response gives the client no access to the files, since making that "
            "access failed: %s",
            error,
        )
        return answer_response(answer)


async def load(context: RequestContext) -> Response:
    """Returns the description of a generic table and, if the client requests them, credentials for its files. Raises
    `NoSuchTable`; if the client requests credentials, `Unsupported` if this server vends none at all, and the errors of
    `_with_credentials`."""
    name, vending, session = context.path_name("generic-table"), _vending(context), context.sessions.open()
    body: JsonObject = {"table": await load_generic_table(session, context.namespace, name)}
    return json_response(body) if vending is None else await _with_credentials(context, session, vending, name, body)


async def drop(context: RequestContext) -> Response:
    """Drops a generic table. Its files are not deleted. Raises `NoSuchTable`."""
    name = context.path_name("generic-table")
    return answer_response(await generic_tables.drop_generic_table(context.sessions.open(), context.namespace, name))


def _vending(context: RequestContext) -> "Vending | None":
    """Returns the service that makes credentials, or None if the client requests none. Raises `Unsupported` if it
    requests them and this server vends none at all, and an error if it requests another way of access."""
    if not wants_credentials(context.headers):
        return None
    made = None if context.sessions.realm is None else context.sessions.realm.deployment.vending
    if made is None:
        raise Unsupported(
            "This catalog vends no credentials: configure the client with its own access to the store, and to send no "
            "header Polaris-Generic-Table-Access-Delegation"
        )
    return made()


async def _with_credentials(
    context: RequestContext, session: Session, vending: "Vending", name: str, body: JsonObject
) -> Response:
    """Returns the response with credentials for the table's files. Raises the errors of
    `delegation.credentials`, as when the cloud denies them, and `Forbidden` if the caller may not open the files, if
    the table has no allowed location, or if none can be vended for the catalog's storage, because a client that
    requests access must get it or an error."""
    from arco_catalog.operations.delegation import credentials, generic_table_access

    access = await generic_table_access(session, context.namespace, name)
    found = () if access is None else await credentials(session, vending, access, None)
    if not found:
        raise Forbidden(
            f"No credentials for the files of generic table {name}: the caller has no right to the data, the table has "
            "no location that the catalog allows, or none can be made for the catalog's storage configuration"
        )
    configs: list[JsonValue] = [{"prefix": each.prefix, "config": {**each.config}} for each in found]
    return json_response({**body, "storage-access-configs": configs}, headers={"Cache-Control": "no-store"})
