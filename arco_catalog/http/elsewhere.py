"""Handlers of endpoints that the specification has and this catalog has nothing behind: each says so clearly."""

from arco_catalog.http.exchange import Exchange
from arco_catalog.http.responses import Response, json_response
from arco_catalog.iceberg.errors import NoSuchFunction, Unsupported
from arco_catalog.operations.names import dotted
from arco_catalog.operations.namespaces import namespace_exists


async def list_functions(exchange: Exchange) -> Response:
    """No namespace has functions. Raises `NoSuchNamespace` for one that is not there."""
    await namespace_exists(exchange.session(), exchange.namespace)
    return json_response({"identifiers": [], "next-page-token": None})


async def load_function(exchange: Exchange) -> Response:
    """There are none."""
    raise NoSuchFunction(f"Function does not exist: {dotted(exchange.namespace, exchange.params['function'])}")


async def load_credentials(exchange: Exchange) -> Response:
    """Clients bring their own."""
    raise Unsupported("This catalog does not vend credentials: configure the client with its own access to the store")


async def sign(exchange: Exchange) -> Response:
    """Clients bring their own."""
    raise Unsupported("This catalog does not sign requests: configure the client with its own access to the store")


async def get_token(exchange: Exchange) -> Response:
    """Tokens come from the identity provider. The one error that has the shape of OAuth2 (RFC 6749, section 5.2)."""
    description = "This catalog issues no tokens: set oauth2-server-uri to your identity provider, or no credential"
    return json_response({"error": "unsupported_grant_type", "error_description": description}, 400)
