"""Access to the files of tables: what answers tell of it, and the endpoints for credentials and signatures."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from urllib.parse import quote, urlencode

from arco_catalog.http.access_delegation import NOT_DELEGATED, Delegated, Delegation, asked
from arco_catalog.http.request_context import RequestContext
from arco_catalog.http.requires import READING
from arco_catalog.http.responses import Response, json_response
from arco_catalog.iceberg.errors import CatalogError, Forbidden, NoSuchTable, Unsupported
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
"""The query parameter that says where the files of a staged table lie, once for each place. It gives no more than
staging a table there would: whoever sends it is judged as if it staged one now."""
MOST_STAGED = 5
"""As many as a table's metadata can name."""


async def of_table(context: RequestContext, session: Session, name: str, state: TableState) -> Delegated:
    """What is told of the files of a table. Raises `Unavailable`, and `InternalError` if the cloud refuses."""
    return await _delegated(context, session, name, await table_access(session, context.namespace, name, state))


async def of_new_table(context: RequestContext, session: Session, name: str, state: TableState) -> Delegated:
    """The same of a table that was just made: by the caller's grants now, and without failing, because a client that is
    told of a failure would not know of the table."""
    try:
        return await of_table(context, session, name, state)
    except (CatalogError, StoreError) as error:
        _LOG.warning("a table was made, and its files not delegated: %s", error)
        return NOT_DELEGATED


async def of_staged_table(context: RequestContext, session: Session, name: str, answer: Document) -> Delegated:
    """The same of one that is yet to be made: its paths name the places of its files, since nothing else knows them."""
    document = (answer.body or {}).get("metadata")
    assert isinstance(document, dict)
    named = named_locations(document)
    return await _delegated(context, session, name, await staged_access(session, context.namespace, named), named)


async def load_credentials(context: RequestContext) -> Response:
    """Credentials in place of those that expire."""
    session = context.sessions.open()
    access = await _access(context, session)
    found: Sequence[StorageCredential] = ()
    vending = _vending(context)
    if vending is not None and access is not None:
        path = _path(context, context.table, "credentials", context.query.all(STAGED_LOCATION))
        found = await credentials(session, vending, access, path)
    listed: list[JsonValue] = [credential.json for credential in found]
    return json_response({"storage-credentials": listed}, headers={"Cache-Control": "no-store"})


async def sign(context: RequestContext) -> Response:
    """Signs one request for a file of a table."""
    session = context.sessions.open()
    access = await _access(context, session)  # judged, before the body may tell anything
    request = SignRequest.parse(context.body or {})
    vending = _vending(context)
    if vending is None:
        raise Unsupported("This server signs no requests: configure the client with its own access to the store")
    if access is None:
        raise Forbidden("Not signed: this catalog gives no access to the files of this table")
    write = access.scope.write and request.method not in READING  # what only reads is signed by keys that only read
    access = replace(access, scope=replace(access.scope, write=write))
    signed = await sign_request(session, vending, access, request)
    return json_response(signed.json, headers=NO_CACHE)


async def _access(context: RequestContext, session: Session) -> Access | None:
    """The files of the table in the path, or of the one that was staged under this name. Raises what loading raises."""
    namespace, name = context.namespace, context.table
    try:
        state = await load_table(session, namespace, name)
    except NoSuchTable:
        staged = context.query.all(STAGED_LOCATION)
        access = await staged_access(session, namespace, staged) if 0 < len(staged) <= MOST_STAGED else None
        if access is None:
            raise
        return access
    return await table_access(session, namespace, name, state)


async def _delegated(
    context: RequestContext, session: Session, name: str, access: Access | None, staged: Sequence[str] = ()
) -> Delegated:
    vending, ways = _vending(context), asked(context.headers)
    if vending is None or access is None:
        return NOT_DELEGATED
    if Delegation.VENDED in ways:
        found = await credentials(session, vending, access, _path(context, name, "credentials", staged))
        if found:
            config = _nearest(found, access.location).config
            return Delegated(Delegation.VENDED, config, found, access.scope.write)
    storage = storage_of(session)
    if Delegation.SIGNED in ways and isinstance(storage, AwsStorage):
        config = {**storage.client_properties, **signing_properties(_path(context, name, "sign", staged))}
        return Delegated(Delegation.SIGNED, config, writes=access.scope.write)
    return NOT_DELEGATED


def _nearest(found: Sequence[StorageCredential], location: str) -> StorageCredential:
    """The credential for a table's own location: clients that know of one only read it from the configuration."""
    return next((each for each in found if location.startswith(each.prefix)), found[0])


def _vending(context: RequestContext) -> Vending | None:
    made = context.sessions.required_realm.deployment.vending
    return None if made is None else made()


def _path(context: RequestContext, name: str, what: str, staged: Sequence[str]) -> str:
    """A path of a table as clients build it, relative to the URI at which they reach the catalog; of one that is staged
    with the places of its files."""
    prefix, separator = context.params["prefix"], context.options.namespace_separator
    parts = (prefix, "namespaces", separator.join(context.namespace), "tables", name, what)
    path = "/".join(("v1", *(quote(part, safe="") for part in parts)))
    return (
        f"{path}?{urlencode([(STAGED_LOCATION, each) for each in staged], quote_via=quote, safe='')}"
        if staged
        else path
    )


def with_delegated(body: JsonObject, delegated: Delegated) -> JsonObject:
    """A staged table's answer, with what is told of its files."""
    if delegated.way is None:
        return body
    listed: list[JsonValue] = [*delegated.credentials_json]
    told: JsonObject = {**body, "config": {**delegated.config}}
    return {**told, "storage-credentials": listed} if listed else told
