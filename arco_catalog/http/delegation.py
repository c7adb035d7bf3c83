"""Gives clients access to the files of tables, by vended credentials or signed requests: in responses about tables, and
at the endpoints for credentials and signatures."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from urllib.parse import quote, urlencode

from arco_catalog.http.access_delegation import NOT_DELEGATED, DelegatedAccess, Delegation, requested_ways
from arco_catalog.http.request_context import RequestContext
from arco_catalog.http.responses import Response, json_response
from arco_catalog.iceberg.errors import CatalogError, Forbidden, NoSuchPlanId, NoSuchTable, Unsupported
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.operations.delegation import (
    Access,
    credentials,
    named_locations,
    staged_access,
    storage_of,
    table_access,
)
from arco_catalog.operations.delegation import sign as sign_request
from arco_catalog.operations.load import load_table
from arco_catalog.planning.answers import Document, TableState
from arco_catalog.protocol.catalog import Session
from arco_catalog.vending.credential import StorageCredential
from arco_catalog.vending.service import Vending, signing_properties
from arco_catalog.vending.sign_request import NO_CACHE, SignRequest
from arco_catalog.vending.storage_config import AwsStorage
from storage_backends import StoreError

_LOG = logging.getLogger(__name__)

STAGED_LOCATION = "staged-location"
"""The query parameter with a location of a staged table's files; a request repeats it for each location. The parameter
proves nothing: the caller must have the rights to stage a table at these locations now."""
PLAN_ID = "planId"
"""The query parameter with the id of the plan for whose files credentials are requested."""
MAX_STAGED = 5
"""The metadata of a table names at most this many locations."""


async def access_to_table(context: RequestContext, session: Session, name: str, state: TableState) -> DelegatedAccess:
    """Returns the access to a table's files that the caller's grants allow, in a way that the request's header lists:
    vended credentials if it lists both ways and the catalog can vend them. Returns `NOT_DELEGATED` if `table_access`
    returns None, as without grants or for locations that are not allowed, or the catalog supports no such way. Raises
    `Unavailable`, `StoreError`, and `InternalError` if the cloud denies the server the credentials."""
    return await _delegated(context, session, name, await table_access(session, context.namespace, name, state))


async def access_to_new_table(
    context: RequestContext, session: Session, name: str, state: TableState
) -> DelegatedAccess:
    """Returns the access to the files of a table that this request created, as `access_to_table` does. Of
    `CatalogError` and `StoreError` it raises none: it logs them and returns `NOT_DELEGATED`, because an error would
    hide from the client that the table exists."""
    try:
        return await access_to_table(context, session, name, state)
    except (CatalogError, StoreError) as error:
        _LOG.warning(
            "a table was created or registered, but the response gives the client no access to the files, since making "
            "that access failed: %s",
            error,
        )
        return NOT_DELEGATED


async def access_to_staged_table(
    context: RequestContext, session: Session, name: str, answer: Document
) -> DelegatedAccess:
    """Returns the access to the files of a staged table, whose metadata the `answer` contains, or `NOT_DELEGATED`, as
    `access_to_table` does. The catalog stores nothing of such a table, so the queries of its endpoints for credentials
    and signatures contain the locations of the files. Raises as `access_to_table` does."""
    document = (answer.body or {}).get("metadata")
    assert isinstance(document, dict)
    named = named_locations(document)
    return await _delegated(context, session, name, await staged_access(session, context.namespace, named), named)


async def access_for_scan(context: RequestContext, session: Session, name: str, state: TableState) -> DelegatedAccess:
    """Returns read-only access to the files of a table for a scan, by vended credentials alone: a client opens the
    files of a scan with nothing else. Returns `NOT_DELEGATED` if the client's header does not list vended credentials,
    `table_access` returns None, or none can be vended. Raises as `access_to_table` does."""
    vending, access = _vending(context), await table_access(session, context.namespace, name, state)
    if vending is None or access is None or Delegation.VENDED not in requested_ways(context.headers):
        return NOT_DELEGATED
    found = await credentials(session, vending, _read_only(access), _path(context, name, "credentials", ()))
    return DelegatedAccess(Delegation.VENDED, credentials=found) if found else NOT_DELEGATED


async def load_credentials(context: RequestContext) -> Response:
    """Returns a list of new credentials for a table's files, in place of ones that expire; the list is empty if the
    catalog gives no access or vends none. Credentials for the plan of a scan are read-only. Raises the errors of
    `load_table` and `access_to_table`, and, unless access is denied, `NoSuchPlanId` for a text that is no id of a plan
    of this table."""
    session = context.sessions.open()
    access = await _access(context, session)
    if access is not None and (plan_ids := context.query.all(PLAN_ID)):
        access = _read_only(access)
        _check_plan_ids(plan_ids, access)
    found: Sequence[StorageCredential] = ()
    vending = _vending(context)
    if vending is not None and access is not None:
        path = _path(context, context.table, "credentials", context.query.all(STAGED_LOCATION))
        found = await credentials(session, vending, access, path)
    documents: list[JsonValue] = [credential.json for credential in found]
    return json_response({"storage-credentials": documents}, headers={"Cache-Control": "no-store"})


async def sign(context: RequestContext) -> Response:
    """Returns the signature for one storage request of the client for a file of a table; a request that only reads gets
    one that allows no write. Raises the errors of `load_table`, `BadRequest` for an invalid body, `Unsupported` if the
    server signs no requests, `Forbidden` if the catalog gives no access to the file, and the errors of
    `operations.delegation.sign`."""
    session = context.sessions.open()
    access = await _access(context, session)  # rights first: an error about the body would reveal that the table exists
    request = SignRequest.parse(context.body or {})
    vending = _vending(context)
    if vending is None:
        raise Unsupported(
            "This server signs no requests to the store: configure the client with its own access to the store"
        )
    if access is None:
        raise Forbidden(
            "Not signed: the caller has no right to the data of this table, the catalog does not allow the table's "
            "location, or the table was dropped or replaced during the request"
        )
    signed = await sign_request(session, vending, access, request)
    return json_response(signed.json, headers=NO_CACHE)


async def _access(context: RequestContext, session: Session) -> Access | None:
    """Returns the caller's access to the files of the table in the path, None if the catalog gives none. If there is no
    such table, returns the access to the files of a table that the caller may stage under this name at the locations in
    the query. Raises the errors of `load_table`: `NoSuchTable` also if the query has no location or more than
    `MAX_STAGED`, or if staging the table there gives no access."""
    namespace, name = context.namespace, context.table
    try:
        state = await load_table(session, namespace, name)
    except NoSuchTable:
        staged = context.query.all(STAGED_LOCATION)
        access = await staged_access(session, namespace, staged) if 0 < len(staged) <= MAX_STAGED else None
        if access is None:
            raise
        return access
    return await table_access(session, namespace, name, state)


async def _delegated(
    context: RequestContext, session: Session, name: str, access: Access | None, staged: Sequence[str] = ()
) -> DelegatedAccess:
    """Returns the access to files that the grants allow, in a way that the client's header lists: vended credentials,
    or else, for a catalog whose storage is of AWS, signed requests. Returns `NOT_DELEGATED` if `access` is None, or if
    there is no such way."""
    vending, ways = _vending(context), requested_ways(context.headers)
    if vending is None or access is None:
        return NOT_DELEGATED
    if Delegation.VENDED in ways:
        found = await credentials(session, vending, access, _path(context, name, "credentials", staged))
        if found:
            config = _nearest(found, access.location).config
            return DelegatedAccess(Delegation.VENDED, config, found, access.scope.write)
    storage = storage_of(session)
    if Delegation.SIGNED in ways and isinstance(storage, AwsStorage):
        config = {**storage.client_properties, **signing_properties(_path(context, name, "sign", staged))}
        return DelegatedAccess(Delegation.SIGNED, config, writes=access.scope.write)
    return NOT_DELEGATED


def _read_only(access: Access) -> Access:
    """Returns the access without the right to write."""
    return replace(access, scope=replace(access.scope, write=False))


def _check_plan_ids(plan_ids: Sequence[str], access: Access) -> None:
    """Raises `NoSuchPlanId` unless all ids are of plans of the table that `access` is for. Plans of any age pass, and
    plan tasks."""
    from arco_catalog.operations.scans.tokens import InvalidToken, read_token

    for plan_id in plan_ids:
        try:
            entity = read_token(plan_id).entity
        except InvalidToken as invalid:
            raise NoSuchPlanId(f"No credentials for a plan that does not exist: {invalid}") from None
        if entity != access.entity:
            raise NoSuchPlanId("No credentials: the plan belongs to another table than the one in the path")


def _nearest(found: Sequence[StorageCredential], location: str) -> StorageCredential:
    """Returns the first credential whose prefix contains this location, the table's own, or else the first one. It goes
    into `config`, where clients that support only one credential read it."""
    return next((each for each in found if location.startswith(each.prefix)), found[0])


def _vending(context: RequestContext) -> Vending | None:
    """Returns what vends credentials and signs requests; None if this server does neither. Raises `InternalError` on a
    server without realms."""
    made = context.sessions.required_realm.deployment.vending
    return None if made is None else made()


def _path(context: RequestContext, name: str, what: str, staged: Sequence[str]) -> str:
    """Returns the path of a table's endpoint `what` (`credentials` or `sign`), relative to the URI of the catalog. Its
    query contains the `staged` locations, if there are any."""
    prefix, separator = context.params["prefix"], context.options.namespace_separator
    parts = (prefix, "namespaces", separator.join(context.namespace), "tables", name, what)
    path = "/".join(("v1", *(quote(part, safe="") for part in parts)))
    return (
        f"{path}?{urlencode([(STAGED_LOCATION, each) for each in staged], quote_via=quote, safe='')}"
        if staged
        else path
    )


def with_access(body: JsonObject, delegated: DelegatedAccess) -> JsonObject:
    """Returns the body of a response about a staged table with the configuration and the credentials of the access to
    the table's files; without access the body as it is."""
    if delegated.way is None:
        return body
    documents: list[JsonValue] = [*delegated.credentials_json]
    answer: JsonObject = {**body, "config": {**delegated.config}}
    return {**answer, "storage-credentials": documents} if documents else answer
