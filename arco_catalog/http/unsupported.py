"""HTTP handlers of endpoints of the specification that this catalog, or a server with this configuration, does not
support. Each raises or returns an error, or returns an empty list. The errors of `Sessions.check_allowed` come
first."""

from arco_catalog.http.paging import paging
from arco_catalog.http.request_context import RequestContext
from arco_catalog.http.responses import Response, json_response
from arco_catalog.iceberg.errors import NoSuchFunction, Unsupported
from arco_catalog.operations.namespaces import require_namespace
from arco_catalog.planning.names import dotted


async def list_functions(context: RequestContext) -> Response:
    """Returns an empty list of functions, as no namespace has any. Raises `NoSuchNamespace` if the namespace does not
    exist, and `BadRequest` for an invalid query."""
    session, _ = context.sessions.open(), paging(context)
    await require_namespace(session, context.namespace)
    return json_response({"identifiers": [], "next-page-token": None})


async def load_function(context: RequestContext) -> Response:
    """Raises `NoSuchFunction`, because no namespace has functions; for a caller without the rights that the route
    requires, the errors of `Session.head` instead."""
    await context.sessions.check_allowed()
    name = dotted(context.namespace, context.params["function"])
    raise NoSuchFunction(f"Function does not exist: {name}: no namespace of this catalog has functions")


async def load_credentials(context: RequestContext) -> Response:
    """Raises `Unsupported`, because clients must use their own credentials for the store; for a caller without the
    rights that the route requires, the errors of `Session.head` instead."""
    await context.sessions.check_allowed()
    raise Unsupported(
        "The endpoint for a table's credentials gives none, since this catalog does not vend any: configure the client "
        "with its own access to the store"
    )


async def sign(context: RequestContext) -> Response:
    """Raises `Unsupported`, because clients must sign with their own credentials; for a caller without the rights that
    the route requires, the errors of `Session.head` instead."""
    await context.sessions.check_allowed()
    raise Unsupported(
        "The endpoint for signatures gives none, since this catalog does not sign requests: configure the client with "
        "its own access to the store"
    )


async def get_token(context: RequestContext) -> Response:
    """Returns 400, because an identity provider issues the tokens. The error has the form of OAuth2 (RFC 6749, section
    5.2), which clients expect of this endpoint."""
    description = "This catalog issues no tokens: set oauth2-server-uri to your identity provider, or set no credential"
    return json_response({"error": "unsupported_grant_type", "error_description": description}, 400)
