"""Handlers of the catalogs of a realm."""

from arco_catalog.http.request_context import RequestContext
from arco_catalog.http.responses import NO_CONTENT, Response, json_response
from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.iceberg.shapes import INT, OBJECT, STRING, STRINGS, Fields, one_of
from arco_catalog.operations.management import catalogs, principal_roles
from arco_catalog.operations.management.catalogs import CatalogRequest, shown_catalog
from arco_catalog.operations.realms import make_catalog, storage_type
from arco_catalog.state.realm import SERVICE_ADMIN

TYPES = ("INTERNAL", "EXTERNAL")


async def list_(context: RequestContext) -> Response:
    """All catalogs."""
    return json_response(catalogs.shown_catalogs(await catalogs.list_catalogs(context.realm_session())))


async def create(context: RequestContext) -> Response:
    """Makes a catalog, empty but for the role that manages it, which the administrators of the realm have."""
    fields = Fields(context.fields.required("catalog", OBJECT), "request.catalog")
    connection = fields.optional("connectionConfigInfo", OBJECT)
    request = CatalogRequest(
        fields.required("name", STRING),
        fields.optional("type", one_of(*TYPES)) or "INTERNAL",
        fields.required("properties", STRINGS),
        fields.required("storageConfigInfo", OBJECT),
    )
    if connection is not None:
        raise BadRequest("This catalog does not federate others: a catalog can't have a connectionConfigInfo")
    session, realm = context.realm_session(), context.required_realm
    await session.head()  # judged before anything is made
    return json_response(shown_catalog(await make_catalog(realm, session, context.judged_realm_session, request)), 201)
