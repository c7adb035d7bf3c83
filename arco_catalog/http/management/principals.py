"""HTTP handlers of the management API for the principals of a realm: they list, create, change and drop principals,
replace their credentials, and assign and revoke their principal roles."""

from arco_catalog.authentication.secrets import check_client_id, new_client_id, new_secret
from arco_catalog.http.management.bodies import PRINCIPAL, PRINCIPAL_ROLE, read_entity, read_name_of, read_update
from arco_catalog.http.request_context import RequestContext
from arco_catalog.http.responses import NO_CONTENT, Response, json_response
from arco_catalog.iceberg.errors import InternalError
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.iceberg.shapes import BOOLEAN, STRING
from arco_catalog.operations.management import principal_roles, principals
from arco_catalog.operations.management.principals import NewCredentials
from arco_catalog.protocol.catalog import Session

CREATED = Response(201)
_UNCACHED = {"Cache-Control": "no-store"}
"""The headers of a response that contains a secret."""


async def list_(context: RequestContext) -> Response:
    """Returns all principals of the realm."""
    return json_response(await principals.list_principals(context.sessions.open_realm()))


async def create(context: RequestContext) -> Response:
    """Creates the principal that the body describes, and returns it with its client id and its secret, which no later
    response contains. With `credentialRotationRequired` the principal may do nothing before it has rotated the secret.
    Raises an error for an invalid body, and the errors of `Sessions.open_realm` and `create_principal`."""
    entity = read_entity(context, PRINCIPAL)
    must_rotate = context.fields.optional("credentialRotationRequired", BOOLEAN) or False
    service = context.sessions.realm_service
    client_id, secret = new_client_id(service.entropy), new_secret(service.entropy)
    credentials = NewCredentials(client_id, await service.secrets.keep(secret))
    session = context.sessions.open_realm()
    shown = await principals.create_principal(session, entity.name, entity.properties, credentials, must_rotate)
    return json_response(_with_credentials(shown, secret), 201, _UNCACHED)


async def get(context: RequestContext) -> Response:
    """Returns the principal in the path. Raises `NotFound`."""
    return json_response(await principals.get_principal(context.sessions.open_realm(), context.params["principal"]))


async def update(context: RequestContext) -> Response:
    """Replaces the properties of a principal by the properties in the body, and returns the principal. Raises the
    errors of `read_update`, `Sessions.open_realm` and `update_principal`."""
    version, properties = read_update(context)
    session = context.sessions.open_realm()
    return json_response(await principals.update_principal(session, context.params["principal"], version, properties))


async def drop(context: RequestContext) -> Response:
    """Drops a principal, and takes all principal roles from it. Raises `NotFound`, and `BadRequest` for the root
    principal."""
    await principals.drop_principal(context.sessions.open_realm(), context.params["principal"])
    return NO_CONTENT


async def caller(context: RequestContext) -> Response:
    """Returns the name of the caller's principal, and those of its active principal roles. A server that does not
    enforce rights returns no name and no roles. Raises the errors of `describe_caller`."""
    return json_response(await principal_roles.describe_caller(context.sessions.open_realm()))


async def rotate(context: RequestContext) -> Response:
    """Gives a principal a new secret, and returns it. The secret before it remains valid until the next rotation or
    reset. A principal may make this request for itself without a privilege. Raises `NotFound`."""
    name = context.params["principal"]
    return await _with_new_credentials(context, context.sessions.open_realm(itself=name), None, None, rotate=True)


async def reset(context: RequestContext) -> Response:
    """Gives a principal a new secret, or the one in the body, and the client id in the body if there is one. Returns
    both. All secrets before become invalid. Raises `NotFound`, `BadRequest` for an invalid client id or secret,
    `TooManyRequests` if too many secrets are being hashed, and `AlreadyExists` if another principal has the client
    id."""
    client_id = context.fields.optional("clientId", STRING)
    secret = context.fields.optional("clientSecret", STRING)
    return await _with_new_credentials(context, context.sessions.open_realm(), client_id, secret, rotate=False)


async def _with_new_credentials(
    context: RequestContext, session: Session, client_id: str | None, secret: str | None, *, rotate: bool
) -> Response:
    """Changes the credentials of the principal in the path, and returns the response with them. With `rotate` the
    secret before remains valid, else none does. Without a `secret` a new one is generated; without a `client_id` the
    present one remains."""
    service = context.sessions.realm_service
    await session.head()  # rights first: the hash of a secret costs much time
    if client_id is not None:
        check_client_id(client_id)
    secret = new_secret(service.entropy) if secret is None else secret
    kept = await service.secrets.keep(secret)
    shown = await principals.change_credentials(
        session,
        context.params["principal"],
        lambda principal: NewCredentials(principal.client_id if client_id is None else client_id, kept),
        rotate=rotate,
    )
    return json_response(_with_credentials(shown, secret), headers=_UNCACHED)


async def roles(context: RequestContext) -> Response:
    """Returns the principal roles of a principal. Raises `NotFound` if the principal does not exist."""
    return json_response(
        await principal_roles.roles_of_principal(context.sessions.open_realm(), context.params["principal"])
    )


async def assign(context: RequestContext) -> Response:
    """Assigns the principal role in the body to a principal. Raises `NotFound` if either does not exist, and
    `BadRequest` for an invalid body."""
    role = read_name_of(context, PRINCIPAL_ROLE)
    await principal_roles.assign_principal_role(context.sessions.open_realm(), context.params["principal"], role)
    return CREATED


async def revoke(context: RequestContext) -> Response:
    """Takes a principal role from a principal. Raises `NotFound` if either does not exist, and `BadRequest` if the
    principal does not have the role, or is the root principal and the role manages the realm."""
    await principal_roles.revoke_principal_role(
        context.sessions.open_realm(), context.params["principal"], context.params["principal-role"]
    )
    return NO_CONTENT


def _with_credentials(shown: JsonObject, secret: str) -> JsonObject:
    """Returns the JSON of a principal together with the client id and this new secret. Raises `InternalError` if
    `shown` has no principal."""
    principal = shown.get("principal")
    if not isinstance(principal, dict):
        raise InternalError("The response about a created or changed principal does not contain the principal")
    return {"principal": principal, "credentials": {"clientId": principal["clientId"], "clientSecret": secret}}
