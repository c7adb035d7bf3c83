"""The realms that an app serves, and the authentication of their callers (docs/design/access.md#authentication)."""

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from arco_catalog.authentication.authentication import REALM_HEADER, Authentication
from arco_catalog.authentication.secrets import Entropy, Secrets
from arco_catalog.http.principal import Caller, authenticated_caller
from arco_catalog.iceberg.errors import Forbidden, NoSuchWarehouse, NotAuthorized
from arco_catalog.operations.realms import Realm
from arco_catalog.planning.access import Identity
from arco_catalog.protocol.catalog import Catalog
from arco_catalog.protocol.lookup import load
from arco_catalog.protocol.operation_request import ANONYMOUS
from arco_catalog.protocol.rights import check_principal
from arco_catalog.state.access import SegmentGone, State
from arco_catalog.state.needs import Needs
from arco_catalog.state.realm import CatalogEntry, catalog_key
from arco_catalog.state.registry import RegistryState
from storage_backends.lazy_dataclass import dataclass

if TYPE_CHECKING:  # they need libraries that a command at a store may lack
    from arco_catalog.authentication.setup import AuthenticationSetup
    from arco_catalog.authentication.token_endpoint import TokenEndpoint
    from arco_catalog.protocol.policy import Policy

_LOG = logging.getLogger(__name__)

POLARIS_REALM = "POLARIS"
"""The name of Polaris's default realm, which its clients, scripts and guides send."""


@dataclass(frozen=True, slots=True)
class RealmService:
    """The realms of a server by their names; `default` is the realm of a request that names none. New secrets of
    principals are made from `entropy`, and `secrets` hashes and verifies them. Without `authentication` every caller
    may do everything, for a server on a laptop; unless rights are `judged`, every caller that is authenticated may.
    Without a `token_endpoint` the server issues no tokens."""

    realms: Mapping[str, Realm]
    default: str
    secrets: Secrets
    entropy: Entropy
    authentication: Authentication | None = None
    token_endpoint: "TokenEndpoint | None" = None
    judged: bool = True

    @classmethod
    def of(
        cls, realms: Sequence[Realm], setup: "AuthenticationSetup | None", entropy: Entropy, *, judged: bool = True
    ) -> "RealmService":
        """Returns a service of these realms, the first of which is the default, with the authentication of `setup`;
        without a setup, or with an open one, it authenticates no callers. Unless rights are `judged`, every
        authenticated caller may do everything."""
        from arco_catalog.authentication.token_endpoint import TokenEndpoint

        secrets = Secrets(entropy)
        endpoint = None if setup is None or setup.tokens is None else TokenEndpoint(setup.tokens, secrets)
        authentication = None if setup is None or setup.open else setup.authentication
        by_name = {realm.name: realm for realm in realms}
        return cls(by_name, realms[0].name, secrets, entropy, authentication, endpoint, judged)

    def name_in(self, headers: Mapping[str, str]) -> str:
        """Returns the name of the realm in the headers, which need not exist, or the default one. The name that
        Polaris's clients send also means the default realm, if that is at the store's root and so has no name of its
        own."""
        named = headers.get(REALM_HEADER)
        return self.default if not named or (named == POLARIS_REALM and self.at_root) else named

    @property
    def checks_access(self) -> bool:
        """Whether the rights of callers are checked: they are authenticated, and access control is not off."""
        return self.authentication is not None and self.judged

    @property
    def at_root(self) -> bool:
        """Whether the default realm is the one at the store's root, which is then the server's only realm."""
        return self.realms[self.default].at_root

    async def identify(self, headers: Mapping[str, str], event: object) -> tuple[Realm, Caller]:
        """Authenticates a request by its `headers` and the gateway's `event`, and returns its realm and its caller,
        which is anonymous on a server without authentication. Raises `NotAuthorized`, also for an unknown realm, and
        `Unavailable` if an identity provider does not answer."""
        name = self.name_in(headers)
        if self.authentication is None:
            return self._realm(name), Caller(ANONYMOUS)
        if headers.get(REALM_HEADER):
            headers = {**headers, REALM_HEADER: name}
        realm, caller = await authenticated_caller(self.authentication, headers, event, judged=self.judged)
        return self._realm(realm), caller

    def _realm(self, name: str) -> Realm:
        """Returns the realm of this name. Raises `NotAuthorized` if this server does not serve it."""
        realm = self.realms.get(name)
        if realm is None:
            raise NotAuthorized(
                "This server does not serve the realm that the header 'Polaris-Realm' or the credentials name"
            )
        return realm


@dataclass(frozen=True, slots=True)
class ServedRealms:
    """The realms that a server serves. If `realms` is None, it serves the store's one catalog without a realm, to
    callers that `authentication` accepts, or to every caller if that is None, too."""

    realms: RealmService | None = None
    authentication: Authentication | None = None
    policy: "Policy | None" = None
    """What must allow each request besides; None if there is nothing."""


async def find(state: State, name: str, *, fresh: bool) -> CatalogEntry | None:
    """Returns the entry of the catalog with a name, None if the current HEAD of the realm has none. Unless it must be
    `fresh`, an entry in the cached HEAD of the realm is enough. Raises `Forbidden` if it reads HEAD and the realm does
    not exist."""
    known = None if fresh else state.cached_head()
    if known is not None:
        with suppress(SegmentGone):  # segments of an old cached HEAD may have been deleted: read HEAD again then
            entry = await _entry(state, known, name)
            if entry is not None:
                return entry
    return await _entry(state, await _head(state), name)


async def _head(state: State) -> RegistryState:
    """Returns the current HEAD of a realm. Logs an error and raises `Forbidden` if the realm does not exist yet."""
    head = await state.head()
    if head.version is None:
        _LOG.error(
            "a request was refused, because there is no realm at %s yet: `arco bootstrap` makes one, with --realm NAME "
            "if the server or function serves a realm of that name",
            state.paths.manifest,
        )
        raise Forbidden(
            "There is no realm yet in this server's store that this request could use, so it was refused: "
            "`arco bootstrap` makes one, with --realm NAME if the server or function serves a realm of that name"
        )
    return head


async def _entry(state: State, head: RegistryState, name: str) -> CatalogEntry | None:
    """Returns the entry that this HEAD of a realm has of the catalog with a name, after it has loaded the part of the
    index; None without one."""
    key = catalog_key(name)
    await load(state, head.index, Needs(keys=[key]))
    entry = head.index.get(key)
    return None if entry is None else CatalogEntry(entry)


async def catalog_of(realm: Realm, state: State, name: str, identity: Identity | None) -> Catalog:
    """Returns the catalog of the realm with this name. Raises `Forbidden` if the realm does not exist, and
    `NoSuchWarehouse` if the catalog does not; for an `identity` that is no principal of the realm it raises
    `UnknownPrincipal` instead, so that such a caller does not learn which catalogs exist."""
    # With an identity a cached entry is enough, because the check of the rights reads the realm again.
    entry = await find(state, name, fresh=identity is None)
    if entry is None:
        if identity is not None:
            await check_principal(state, identity)
        raise NoSuchWarehouse(f"Warehouse does not exist: {name}")
    return realm.catalog(entry)
