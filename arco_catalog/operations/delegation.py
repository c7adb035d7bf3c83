"""Decides which files of a table a caller may open, and whether it may write, by its grants and the table's locations
on a HEAD that was read for this request, and gets credentials and signatures for them
(docs/design/security.md#storage-credentials). Stores no credentials."""

import logging
from collections.abc import Sequence
from functools import partial

from arco_catalog.iceberg.accessors import location as location_in
from arco_catalog.iceberg.accessors import written_locations
from arco_catalog.iceberg.errors import BadRequest, InternalError, Refusal
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.iceberg.json_pieces import let_go
from arco_catalog.planning.access import Securable
from arco_catalog.planning.answers import TableState
from arco_catalog.planning.overlap import require_free_locations
from arco_catalog.planning.privileges import Privilege
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.lookup import carry_out
from arco_catalog.protocol.relation_read_set import RelationLookup, resolve_name
from arco_catalog.protocol.request_stats import GivenAccess, current_stats
from arco_catalog.state.entries import PendingTransaction, has_pointer
from arco_catalog.state.fields import mapping, optional_text
from arco_catalog.state.index import Index, Namespace
from arco_catalog.state.locations import Location
from arco_catalog.state.needs import Steps
from arco_catalog.state.registry import RegistryState
from arco_catalog.vending.credential import StorageCredential
from arco_catalog.vending.errors import CredentialsRefused
from arco_catalog.vending.scope import Scope, common_folder
from arco_catalog.vending.service import Vending
from arco_catalog.vending.sign_request import SignedRequest, SignRequest
from arco_catalog.vending.storage_config import FileStorage, StorageConfig, parse_storage_config
from storage_backends.lazy_dataclass import dataclass

_LOG = logging.getLogger(__name__)

REMEMBERED_FILES = 4_096
"""How many metadata files of a catalog a process caches the locations of."""
STAGED = "staged"
"""Stands for the entity id of a staged table, which has none yet."""

_DATA = frozenset({Privilege.TABLE_READ_DATA, Privilege.TABLE_WRITE_DATA})
_STAGED = _DATA | {Privilege.TABLE_CREATE}
_REFUSED = (
    "The catalog could not get access to the files of this table from the cloud: the reason, on which an operator must "
    "act, is in the catalog's log"
)


@dataclass(frozen=True, slots=True)
class Access:
    """The access of a caller to the files of a table: `scope` has the folders, and whether the caller may write there.
    `location` is the table's own location, `entity` the table's entity id, or
    `STAGED`."""

    scope: Scope
    entity: str
    location: str


def storage_of(session: Session) -> StorageConfig:
    """Returns the storage configuration of the session's catalog. For an invalid one it logs an error and returns a
    `FileStorage`, for which no credentials are vended."""
    try:
        return parse_storage_config(session.catalog.storage)
    except BadRequest as error:
        _LOG.error(
            "The storage configuration of catalog %s is not valid, so no credentials are vended for it and no "
            "requests signed: %s",
            session.settings.warehouse,
            error.message,
        )
        return FileStorage()


async def table_access(session: Session, namespace: Namespace, name: str, state: TableState) -> Access | None:
    """Returns access to the files of the table in this state; None if the name means no table or another by now, if the
    caller may neither read nor write these files, or if none of the locations that the metadata names is both allowed
    and in one that the table holds. It includes writes if the caller may write, and the table does not follow another
    catalog's. Rights are checked on the HEAD that allowed the load, or else on a fresh one."""
    head = session.judged_on or await _head(session)
    held = await session.held(head, _DATA, Securable(namespace, name))
    entry = await resolve_name(session, head, RelationLookup(namespace, name, "table", writing=False))
    if not held or entry is None or entry.entity != state.entity:
        return None
    if not has_pointer(entry.json):  # a followed table is written through the catalog that it follows
        held -= {Privilege.TABLE_WRITE_DATA}
    named = await _named_locations(session, state)
    allowed = [location for location in map(partial(_allowed, session), named) if location is not None]
    registered = [location for location in allowed if location.inside_any(entry.locations)]
    return _access(registered, held, entry.entity, named[0])


def named_locations(document: JsonObject) -> Sequence[str]:
    """Returns as text every location where a table's metadata directs engines to write files: the table's own location
    first, then those of properties such as `write.data.path`."""
    return (location_in(document), *written_locations(document))


async def staged_access(session: Session, namespace: Namespace, named: Sequence[str]) -> Access | None:
    """Returns access to the files of a staged table in those of the `named` locations, its own location first, that are
    allowed; None if none is allowed, if one of them is not free, or if the caller may not create tables in the
    namespace, or may neither read nor write their files. It includes writes if the caller may write."""
    head = await _head(session)
    held = await session.held(head, _STAGED, Securable(namespace))
    if Privilege.TABLE_CREATE not in held or not held & _DATA:
        return None
    locations = [location for location in map(partial(_allowed, session), named) if location is not None]
    try:
        await carry_out(session.state, head.index, _check_free(session, head.index, locations, namespace))
    except (Refusal, PendingTransaction):
        return None
    return _access(locations, held, STAGED, named[0])


async def generic_table_access(session: Session, namespace: Namespace, name: str) -> Access | None:
    """Returns access to the files at the base location of a generic table, which includes writes if the caller may
    write; None if there is no such table, if the caller may neither read nor write the files, or if the table has no
    location that is allowed and that the table holds."""
    head = session.judged_on or await _head(session)
    held = await session.held(head, _DATA, Securable(namespace, name, "generic-table"))
    entry = await resolve_name(session, head, RelationLookup(namespace, name, "generic-table", writing=False))
    if not held or entry is None:
        return None
    table = mapping(await session.state.description("generic-table", entry.value), "table")
    location = optional_text(table, "base-location")
    allowed = None if location is None else _allowed(session, location)
    if location is None or allowed is None or not allowed.inside_any(entry.locations):
        return None
    return _access([allowed], held, entry.entity, location)


async def credentials(
    session: Session, vending: Vending, access: Access, refresh_endpoint: str | None
) -> Sequence[StorageCredential]:
    """Returns credentials for the files of `access`, the longest prefix first, and records them in the statistics of
    the request; an empty sequence if none can be vended for the catalog's storage, or the operator does not allow that.
    Each but static keys has the address `refresh_endpoint`, if that is given, at which the client gets new ones. Raises
    `Unavailable`, and `InternalError` if the cloud refuses, or the server's own credentials or keys are missing or
    malformed."""
    config, principal = storage_of(session), _principal(session)
    try:
        found = await vending.credentials(
            config, access.scope, access.entity, principal, refresh_endpoint, session.catalog.locations.own
        )
    except CredentialsRefused as error:  # the log has it; it names roles, which a reader need not know
        raise InternalError(_REFUSED) from error
    current_stats().given += (
        GivenAccess("vended", access.entity, each.prefix, access.scope.write, expires_ms=each.expires_ms)
        for each in found
    )
    return found


async def sign(session: Session, vending: Vending, access: Access, request: SignRequest) -> SignedRequest:
    """Signs one request to the storage, for the files of `access`, and records that in the statistics of the request.
    Sends nothing to the storage. Raises `Forbidden` for a request to other files, a write that `access` does not
    include, storage other than S3, a configuration that the operator does not allow, or a request that no key of the
    server may sign, `Unavailable`, and `InternalError` if the cloud refuses, or the server has no credentials."""
    try:
        signed = await vending.sign(storage_of(session), access.scope, access.entity, _principal(session), request)
    except CredentialsRefused as error:
        raise InternalError(_REFUSED) from error
    folder = common_folder(access.scope.locations)
    given = GivenAccess("signed", access.entity, folder, signed.writes, method=request.method)
    current_stats().given.append(given)
    return signed


def _principal(session: Session) -> str:
    """Returns the name of the request's caller in the realm, or the id of its principal if it has no name."""
    return session.request.name or session.request.principal


async def _head(session: Session) -> RegistryState:
    """Reads HEAD of the catalog and returns it, and concurrently reads the caller's rights in the realm, if access is
    restricted. Does not check them."""
    return await session.with_rights(session.state.head())


def _access(locations: Sequence[Location], held: frozenset[Privilege], entity: str, own_location: str) -> Access | None:
    """Returns the access to these locations, which includes writes if `held` has the privilege to write data; None
    without locations."""
    if not locations:
        return None
    write = Privilege.TABLE_WRITE_DATA in held
    return Access(Scope.of(locations, write=write), entity, own_location)


def _allowed(session: Session, text: str) -> Location | None:
    """Returns the location that a text names, or None if it is malformed, or tables of this catalog are not allowed
    there now."""
    try:
        return session.catalog.locations.check(text)
    except BadRequest:
        return None


def _check_free(session: Session, index: Index, locations: Sequence[Location], namespace: Namespace) -> Steps[None]:
    """Raises a `Refusal` if one of the locations is not free for a new table in the namespace, or `PendingTransaction`
    if a transaction may take it."""
    yield from require_free_locations(session.context, index, locations, namespace)


async def _named_locations(session: Session, state: TableState) -> Sequence[str]:
    """Returns `named_locations` of a table in this state: from the cache, or else read from the metadata and cached for
    at most `REMEMBERED_FILES` files."""
    remembered = session.catalog.named_locations
    known = remembered.get(state.metadata_location)
    if known is None:
        known = await session.files.parse(state.metadata_location, state.metadata, _read_locations)
        while len(remembered) >= REMEMBERED_FILES:
            del remembered[next(iter(remembered))]
        remembered[state.metadata_location] = known
    return known


def _read_locations(document: JsonObject) -> Sequence[str]:
    """Returns the `named_locations` of a table's metadata, and frees the document."""
    named = named_locations(document)
    let_go(document)
    return named
