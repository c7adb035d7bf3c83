"""Authenticates a request by the first authenticator of a deployment that recognises its credentials."""

from collections.abc import Sequence

from arco_catalog.authentication.authenticator import AuthenticationResult, Authenticator, RequestCredentials
from arco_catalog.iceberg.errors import NotAuthorized
from storage_backends.lazy_dataclass import dataclass

REALM_HEADER = "polaris-realm"
"""The header by which Polaris's clients name a realm."""


@dataclass(frozen=True, slots=True)
class Authentication:
    """The authenticators of a deployment, in the order in which they are tried: the first that recognises the
    credentials of a request decides about it."""

    authenticators: Sequence[Authenticator]

    async def authenticate(self, credentials: RequestCredentials) -> AuthenticationResult:
        """Returns the result of the first authenticator that recognises the credentials. Raises `NotAuthorized` if none
        does, if the credentials are invalid, or if the header `Polaris-Realm` names another realm than theirs, and
        `Unavailable` if the keys that verify a token can't be had now."""
        for authenticator in self.authenticators:
            found = await authenticator.authenticate(credentials)
            if found is not None:
                if credentials.headers.get(REALM_HEADER, found.realm) != found.realm:
                    raise NotAuthorized(
                        "The token, or the API of the gateway, is for another realm than the header 'Polaris-Realm' "
                        "names: leave the header out, or name the realm of the token or API"
                    )
                return found
        if credentials.bearer is not None:
            raise NotAuthorized(
                "The issuer of the token is not trusted by this server, the gateway did not verify the token, or it is "
                "not a signed JWT, or too long"
            )
        raise NotAuthorized("The request has no credentials that this server recognises")
