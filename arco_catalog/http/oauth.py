"""The HTTP handler of `POST /v1/oauth/tokens`, which issues the server's own tokens, and the principals to which it
issues them."""

from arco_catalog.authentication.token_endpoint import OAuthError, TokenAnswer
from arco_catalog.http.request_context import RequestContext
from arco_catalog.http.responses import Response
from arco_catalog.http.unsupported import get_token as refuse
from arco_catalog.iceberg.json import dumps
from arco_catalog.operations.management.principals import principal_of_client, principal_of_id, principal_of_name
from arco_catalog.operations.management.standing import has_role, manages_access
from arco_catalog.planning.access import Identity
from arco_catalog.protocol.catalog import Session
from arco_catalog.state.realm import PrincipalEntry

_ONE_REALM = "The header 'Polaris-Realm' names no realm of this server: it has one, so leave the header out"


class RegisteredPrincipals:
    """Finds the principals of one realm for the token endpoint, in the realm's current state."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def by_client_id(self, client_id: str) -> PrincipalEntry | None:
        """Returns the principal of the realm with a client id, None if there is none."""
        return await principal_of_client(self._session, client_id)

    async def by_id(self, entity: str) -> PrincipalEntry | None:
        """Returns the principal of the realm with an entity id, None if there is none."""
        return await principal_of_id(self._session, entity)

    async def by_name(self, name: str) -> PrincipalEntry | None:
        """Returns the principal of the realm with a name, None if there is none."""
        return await principal_of_name(self._session, name)

    async def manages_access(self, principal: PrincipalEntry) -> bool:
        """Whether any principal role of the principal has the privilege to manage access to the realm; False if the
        principal no longer exists."""
        return await manages_access(self._session, principal)

    async def has_role(self, principal: PrincipalEntry, role: str) -> bool:
        """Whether a principal has the principal role of this name, and need not rotate the credentials first."""
        return await has_role(self._session.state, Identity(principal.entity), role)


class NoPrincipals:
    """Finds no principals, for a realm that does not exist. The response of the token endpoint is then the one to wrong
    credentials, so that it does not reveal which realms exist."""

    async def by_client_id(self, client_id: str) -> PrincipalEntry | None:
        """Returns None for every client id, because the realm does not exist."""
        return None

    async def by_id(self, entity: str) -> PrincipalEntry | None:
        """Returns None for every entity id, because the realm does not exist."""
        return None

    async def by_name(self, name: str) -> PrincipalEntry | None:
        """Returns None for every name, because the realm does not exist."""
        return None

    async def manages_access(self, principal: PrincipalEntry) -> bool:
        """Returns False for every principal, because the realm does not exist."""
        return False

    async def has_role(self, principal: PrincipalEntry, role: str) -> bool:
        """Returns False for every role, because the realm does not exist."""
        return False


async def get_token(context: RequestContext) -> Response:
    """Returns a token for the client in the form, or an error in the form of OAuth2 (RFC 6749). Makes the realm that
    the headers name that of the request; an unknown realm has the error of wrong credentials, or `invalid_request` on a
    server whose only realm is at the store's root. On a server that issues no tokens it returns the error of
    `unsupported.get_token`. Raises `TooManyRequests` and `Unavailable`."""
    service, sessions = context.service.realms, context.sessions
    endpoint = None if service is None else service.token_endpoint
    if service is None or endpoint is None:
        return await refuse(context)
    name = service.name_in(context.headers)
    sessions.realm = service.realms.get(name)
    if sessions.realm is None and service.at_root:
        return _response(OAuthError("invalid_request", _ONE_REALM).answer())
    principals = NoPrincipals() if sessions.realm is None else RegisteredPrincipals(sessions.open_authorized_realm())
    return _response(await endpoint.answer(context.form, context.headers, name, principals))


def _response(answer: TokenAnswer) -> Response:
    """Returns the HTTP response with a result of the token endpoint."""
    return Response(answer.status, dumps(answer.body), answer.headers)
