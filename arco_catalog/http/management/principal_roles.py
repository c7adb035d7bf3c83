"""HTTP handlers of the management API for the principal roles of a realm: they list, create, change and drop roles,
list the principals that have one, and assign and revoke catalog roles."""

from arco_catalog.http.management.bodies import CATALOG_ROLE, PRINCIPAL_ROLE, read_entity, read_name_of, read_update
from arco_catalog.http.management.principals import CREATED
from arco_catalog.http.request_context import RequestContext
from arco_catalog.http.responses import NO_CONTENT, Response, json_response
from arco_catalog.operations.management import catalog_roles as used
from arco_catalog.operations.management import principal_roles
from arco_catalog.state.roles import RoleEntry


async def list_(context: RequestContext) -> Response:
    """Returns all principal roles of the realm."""
    return json_response(await principal_roles.PRINCIPAL_ROLE.list_all(context.sessions.open_realm()))


async def create(context: RequestContext) -> Response:
    """Creates the principal role that the body describes, without members, and returns it. Raises the errors of
    `read_entity` and `RoleKind.create`."""
    entity = read_entity(context, PRINCIPAL_ROLE)
    made = await principal_roles.PRINCIPAL_ROLE.create(
        context.sessions.open_realm(), entity.name, entity.properties, federated=entity.federated
    )
    return json_response(made, 201)


async def get(context: RequestContext) -> Response:
    """Returns the principal role in the path. Raises `NotFound`."""
    name = context.params["principal-role"]
    return json_response(await principal_roles.PRINCIPAL_ROLE.get(context.sessions.open_realm(), name))


async def update(context: RequestContext) -> Response:
    """Replaces the properties of a principal role by the properties in the body, and returns the role. Raises the
    errors of `read_update`, `Sessions.open_realm` and `RoleKind.update`."""
    version, properties = read_update(context)
    name = context.params["principal-role"]
    return json_response(
        await principal_roles.PRINCIPAL_ROLE.update(context.sessions.open_realm(), name, version, properties)
    )


async def drop(context: RequestContext) -> Response:
    """Drops a principal role, and takes it from all principals. Raises `NotFound`, and `BadRequest` for the role that
    manages the realm."""
    await principal_roles.drop_principal_role(context.sessions.open_realm(), context.params["principal-role"])
    return NO_CONTENT


async def principals(context: RequestContext) -> Response:
    """Returns the principals that have a principal role. Raises `NotFound` if the role does not exist."""
    name = context.params["principal-role"]
    return json_response(await principal_roles.principals_with_role(context.sessions.open_realm(), name))


async def catalog_roles(context: RequestContext) -> Response:
    """Returns the catalog roles that a principal role has in a catalog. Raises `NotFound` if either does not exist;
    for an unknown catalog `Forbidden` instead, if the caller may not list catalogs."""
    session = context.sessions.open_realm()
    role = await principal_roles.PRINCIPAL_ROLE.find(session, context.params["principal-role"])
    catalog = await context.sessions.open_catalog(context.params["catalog"], is_authorized=True)
    return json_response(await used.catalog_roles_used_by(catalog, role))


async def assign(context: RequestContext) -> Response:
    """Assigns the catalog role in the body to a principal role. Raises `NotFound` if either does not exist, and
    `BadRequest` for an invalid body."""
    name = read_name_of(context, CATALOG_ROLE)
    session = await context.sessions.open_catalog(context.params["catalog"])
    await session.head()  # rights first: an error about the principal role reveals a part of the realm
    await used.assign_catalog_role(session, await _principal_role(context), name)
    return CREATED


async def revoke(context: RequestContext) -> Response:
    """Takes a catalog role from a principal role. Raises `NotFound` if either does not exist, and `BadRequest` if the
    principal role does not have the catalog role."""
    session = await context.sessions.open_catalog(context.params["catalog"])
    await session.head()  # rights first: an error about the principal role reveals a part of the realm
    await used.revoke_catalog_role(session, await _principal_role(context), context.params["catalog-role"])
    return NO_CONTENT


async def _principal_role(context: RequestContext) -> RoleEntry:
    """Returns the principal role that the path names. Raises `NotFound`."""
    return await principal_roles.PRINCIPAL_ROLE.find(
        context.sessions.open_authorized_realm(), context.params["principal-role"]
    )
