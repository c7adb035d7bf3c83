"""HTTP handlers of the management API that list, create, show, change and drop the catalogs of a realm."""

from arco_catalog.http.management.bodies import CATALOG
from arco_catalog.http.request_context import RequestContext
from arco_catalog.http.responses import NO_CONTENT, Response, json_response
from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.iceberg.shapes import INT, OBJECT, STRING, STRINGS, one_of
from arco_catalog.operations.management import catalogs
from arco_catalog.operations.management.catalog_drops import end_catalog, remove_catalog
from arco_catalog.operations.management.catalogs import CatalogRequest, shown_catalog
from arco_catalog.operations.realms import change_catalog, make_catalog
from arco_catalog.protocol.catalog import Session
from arco_catalog.vending.storage_config import parse_storage_config
from arco_catalog.vending.storage_policy import StoragePolicy

TYPES = ("INTERNAL", "EXTERNAL")


async def list_(context: RequestContext) -> Response:
    """Returns all catalogs of the realm."""
    return json_response(catalogs.shown_catalogs(await catalogs.list_catalogs(context.sessions.open_realm())))


async def create(context: RequestContext) -> Response:
    """Creates an empty catalog with one catalog role that manages it, and returns the catalog; the realm's
    administrators get that role. Raises `BadRequest`, also for a storage configuration that the operator does not
    allow, and the errors of `make_catalog`."""
    fields = CATALOG.value(context.fields)
    if fields.optional("connectionConfigInfo", OBJECT) is not None:
        raise BadRequest("A catalog can't have a connectionConfigInfo: this server does not support federated catalogs")
    request = CatalogRequest(
        fields.required("name", STRING),
        fields.optional("type", one_of(*TYPES)) or "INTERNAL",
        fields.required("properties", STRINGS),
        fields.required("storageConfigInfo", OBJECT),
    )
    session = context.sessions.open_realm()
    await session.head()  # rights first: an error about the storage reveals what the operator allows
    _check_storage(context, request.storage)
    key_policy = context.options.key_policy
    made = await make_catalog(context.sessions.required_realm, session, request, key_policy=key_policy)
    return json_response(made, 201)


async def get(context: RequestContext) -> Response:
    """Returns the catalog in the path. Raises the errors of `Sessions.open_catalog` and `Session.head`, and
    `CatalogChanged` if it was removed or replaced during the request."""
    entity = await _judged_entity(context)
    found = await catalogs.find_entry(context.sessions.open_authorized_realm(), context.params["catalog"], entity)
    return json_response(shown_catalog(found))


async def update(context: RequestContext) -> Response:
    """Replaces a catalog's properties and storage configuration by the ones that the body has, and returns the catalog.
    A part that the body does not have stays, and so does the base location if the new properties name none. Raises the
    errors of `Sessions.open_catalog` and `Session.head`, `BadRequest` for a storage configuration that is not allowed,
    and the errors of `change_catalog`."""
    version = context.fields.optional("currentEntityVersion", INT)
    properties = context.fields.optional("properties", STRINGS)
    storage = context.fields.optional("storageConfigInfo", OBJECT)
    entity = await _judged_entity(context)
    if storage is not None:
        _check_storage(context, storage)
    realm, session = context.sessions.required_realm, context.sessions.open_authorized_realm()
    changes = catalogs.CatalogUpdate(context.params["catalog"], entity, version, properties, storage)
    return json_response(await change_catalog(realm, session, changes))


def _check_storage(context: RequestContext, storage: JsonObject) -> None:
    """Raises `BadRequest` for a storage configuration that is invalid, or that the operator's policy does not allow.
    Without a policy of the deployment the default `StoragePolicy` decides."""
    policy = context.sessions.required_realm.deployment.storage_policy
    (StoragePolicy() if policy is None else policy()).check(parse_storage_config(storage))


async def drop(context: RequestContext) -> Response:
    """Drops an empty catalog without an unfinished purge: closes the registry, and then removes the entry of the
    catalog from the realm. Raises the errors of `Sessions.open_catalog`, `NamespaceNotEmpty` for any other catalog,
    `CatalogChanged` if it was removed or replaced during the request, and `CommitStateUnknown` if it was closed and
    then the name could not be removed."""
    name = context.params["catalog"]
    session = await context.sessions.open_catalog(name)
    await session.head()  # checks the caller's rights before anything of the realm is read
    entry = await catalogs.find_entry(context.sessions.open_authorized_realm(), name, _entity_of(session))
    await end_catalog(session, entry)
    await remove_catalog(context.sessions.open_authorized_realm(), entry)
    return NO_CONTENT


async def _judged_entity(context: RequestContext) -> str:
    """Returns the entity id of the catalog in the path, if the caller has the rights on it that the route requires.
    Raises the errors of `Sessions.open_catalog` and `Session.head`."""
    session = await context.sessions.open_catalog(context.params["catalog"])
    await session.head()
    return _entity_of(session)


def _entity_of(session: Session) -> str:
    """Returns the entity id of a realm's catalog."""
    entry = session.catalog.entry
    assert entry is not None  # it is a catalog of a realm
    return entry[0]
