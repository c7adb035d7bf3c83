"""HTTP handlers of the management API for the catalog roles of a catalog: they list, create, change and drop roles,
list the principal roles that have one, and list, add and revoke their grants."""

from arco_catalog.http.management.bodies import CATALOG_ROLE, read_entity, read_grant, read_update
from arco_catalog.http.management.principals import CREATED
from arco_catalog.http.request_context import RequestContext
from arco_catalog.http.responses import NO_CONTENT, Response, json_response
from arco_catalog.operations.management import catalog_roles, principal_roles
from arco_catalog.operations.management import grants as granting
from arco_catalog.operations.management.grants import Grant
from arco_catalog.protocol.catalog import Session


async def _session(context: RequestContext) -> Session:
    """Opens a session with the catalog that the path names. Raises the errors of `Sessions.open_catalog`."""
    return await context.sessions.open_catalog(context.params["catalog"])


async def list_(context: RequestContext) -> Response:
    """Returns all catalog roles of the catalog in the path. Raises the errors of `Sessions.open_catalog`."""
    return json_response(await catalog_roles.CATALOG_ROLE.list_all(await _session(context)))


async def create(context: RequestContext) -> Response:
    """Creates the catalog role that the body describes, without grants, and returns it. Raises the errors of
    `read_entity`, `Sessions.open_catalog` and `RoleKind.create`."""
    entity = read_entity(context, CATALOG_ROLE)
    made = await catalog_roles.CATALOG_ROLE.create(await _session(context), entity.name, entity.properties)
    return json_response(made, 201)


async def get(context: RequestContext) -> Response:
    """Returns the catalog role in the path. Raises `NotFound`."""
    return json_response(await catalog_roles.CATALOG_ROLE.get(await _session(context), context.params["catalog-role"]))


async def update(context: RequestContext) -> Response:
    """Replaces the properties of a catalog role by the properties in the body, and returns the role. Raises the errors
    of `read_update`, `Sessions.open_catalog` and `RoleKind.update`."""
    version, properties = read_update(context)
    name = context.params["catalog-role"]
    return json_response(await catalog_roles.CATALOG_ROLE.update(await _session(context), name, version, properties))


async def drop(context: RequestContext) -> Response:
    """Drops a catalog role with all its grants, and takes it from all principal roles. Raises `NotFound`, and
    `BadRequest` for the role that manages the catalog."""
    await catalog_roles.drop_catalog_role(await _session(context), context.params["catalog-role"])
    return NO_CONTENT


async def principal_roles_of(context: RequestContext) -> Response:
    """Returns the principal roles that have a catalog role. Raises `NotFound` if the catalog or the catalog role does
    not exist."""
    roles = await catalog_roles.principal_roles_using(await _session(context), context.params["catalog-role"])
    return json_response(await principal_roles.roles_by_id(context.sessions.open_authorized_realm(), roles))


async def grants(context: RequestContext) -> Response:
    """Returns the grants of a catalog role. Grants on tables, views and policies that were dropped are left out. Raises
    `NotFound`."""
    return json_response(await granting.list_grants(await _session(context), context.params["catalog-role"]))


async def grant(context: RequestContext) -> Response:
    """Grants a catalog role the privilege in the body. Raises `NotFound`, `BadRequest`, and the errors of `add_grant`
    for a securable that does not exist."""
    session, added = await _granting(context)
    await granting.add_grant(session, context.params["catalog-role"], added)
    return CREATED


async def revoke(context: RequestContext) -> Response:
    """Revokes the privilege in the body from a catalog role; with `cascade` also on everything inside the securable.
    Raises as `grant` does, and `BadRequest` if the role does not have the privilege."""
    cascade = context.query.flag("cascade")
    session, revoked = await _granting(context)
    await granting.revoke_grant(session, context.params["catalog-role"], revoked, cascade)
    return CREATED


async def _granting(context: RequestContext) -> tuple[Session, Grant]:
    """Returns a session with the catalog of the path, and the grant in the body. Raises `BadRequest` for a
    body without a valid grant, and as `Sessions.open_catalog` does."""
    body = read_grant(context)
    grant = Grant.of(body.kind, body.securable, body.privilege)
    return await _session(context), grant
