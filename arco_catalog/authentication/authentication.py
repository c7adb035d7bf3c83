"""Who makes a request, by whichever of a deployment's authenticators knows it."""

from collections.abc import Sequence
from dataclasses import dataclass

from arco_catalog.authentication.authenticator import Authenticated, Authenticator, Presented
from arco_catalog.iceberg.errors import NotAuthorized

REALM_HEADER = "polaris-realm"
"""The header by which Polaris's clients name a realm."""


@dataclass(frozen=True, slots=True)
class Authentication:
    """The authenticators of a deployment, in the order in which they are asked."""

    authenticators: Sequence[Authenticator]

    async def authenticate(self, presented: Presented) -> Authenticated:
        """Who makes a request. Raises `NotAuthorized` if nobody knows, or if the request names another realm than what
        it presents, and `Unavailable` if nobody can tell now."""
        for authenticator in self.authenticators:
            found = await authenticator.authenticate(presented)
            if found is not None:
                if presented.headers.get(REALM_HEADER, found.realm) != found.realm:
                    raise NotAuthorized("The credentials are of another realm than the header 'Polaris-Realm' names")
                return found
        if presented.bearer is not None:
            raise NotAuthorized("The token was issued by nobody whom this server trusts")
        raise NotAuthorized("The request presents no credentials that this server knows")
