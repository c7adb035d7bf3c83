"""The realms that an app serves, and who makes a request of one of them (docs/design/access.md#authentication)."""

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from arco_catalog.authentication.authentication import REALM_HEADER, Authentication
from arco_catalog.authentication.secrets import Entropy, Secrets
from arco_catalog.authentication.setup import AuthenticationSetup
from arco_catalog.authentication.token_endpoint import TokenEndpoint
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
from arco_catalog.state.realm import CatalogEntry, catalog_key, find_catalog
from arco_catalog.state.registry import RegistryState

_LOG = logging.getLogger(__name__)

POLARIS_REALM = "POLARIS"
"""The realm of a Polaris that is not configured otherwise: its clients, scripts and guides send this name."""


@dataclass(frozen=True, slots=True)
class RealmService:
    """`realms` by their names; `default` is that of a request that names none. `secrets` keeps secrets of principals,
    which are made of `entropy`. Without `authentication` everybody may do everything: a server on a laptop; and
    whoever is authenticated may where rights are not `judged`. Without `token_endpoint` there are no tokens of our
    own."""

    realms: Mapping[str, Realm]
    default: str
    secrets: Secrets
    entropy: Entropy
    authentication: Authentication | None = None
    token_endpoint: TokenEndpoint | None = None
    judged: bool = True

    @classmethod
    def of(
        cls, realms: Sequence[Realm], wanted: AuthenticationSetup | None, entropy: Entropy, *, judged: bool = True
    ) -> "RealmService":
        """These realms, the first of which is the default, for those who are let in; without `wanted` for everybody."""
        secrets = Secrets(entropy)
        endpoint = None if wanted is None or wanted.tokens is None else TokenEndpoint(wanted.tokens, secrets)
        authentication = None if wanted is None or wanted.open else wanted.authentication
        by_name = {realm.name: realm for realm in realms}
        return cls(by_name, realms[0].name, secrets, entropy, authentication, endpoint, judged)

    def name_in(self, headers: Mapping[str, str]) -> str:
        """The realm that headers name, or the default one, whether it exists or not. A realm at the store's root has no
        name that clients were given, so it has the one that Polaris's clients send."""
        named = headers.get(REALM_HEADER)
        return self.default if not named or (named == POLARIS_REALM and self.at_root) else named

    @property
    def checks_access(self) -> bool:
        """Whether requests are checked: callers are authenticated, and access control is not off."""
        return self.authentication is not None and self.judged

    @property
    def at_root(self) -> bool:
        """Whether the only realm is that of the store's root, rather than one of several under their names."""
        return self.realms[self.default].at_root

    async def identify(self, headers: Mapping[str, str], event: object) -> tuple[Realm, Caller]:
        """The realm of a request, and who makes it. Raises `NotAuthorized`, and `Unavailable` if nobody can tell."""
        name = self.name_in(headers)
        if self.authentication is None:
            return self._realm(name), Caller(ANONYMOUS)
        if headers.get(REALM_HEADER):
            headers = {**headers, REALM_HEADER: name}
        realm, caller = await authenticated_caller(self.authentication, headers, event, judged=self.judged)
        return self._realm(realm), caller

    def _realm(self, name: str) -> Realm:
        realm = self.realms.get(name)
        if realm is None:
            raise NotAuthorized("This server has no realm of the name in the header 'Polaris-Realm'")
        return realm


@dataclass(frozen=True, slots=True)
class Served:
    """The realms of a store, None where it has none; then `authentication` knows who is let in to its one catalog, None
    lets in anybody."""

    realms: RealmService | None = None
    authentication: Authentication | None = None


async def find(state: State, name: str, *, fresh: bool) -> CatalogEntry | None:
    """The catalog of a name; unless it must be `fresh`, by what this process remembers of the realm. Raises
    `Forbidden` if there is no such realm."""
    known = None if fresh else state.cached_head()
    if known is not None:
        with suppress(SegmentGone):  # the cached HEAD is so old that parts of its index were collected
            entry = await _entry(state, known, name)
            if entry is not None:
                return entry
    return await _entry(state, await _head(state), name)


async def _head(state: State) -> RegistryState:
    """HEAD of a realm. Raises `Forbidden` where there is none: nobody has any privilege yet."""
    head = await state.head()
    if head.version is None:
        _LOG.error("there is no realm at %s yet: `arco bootstrap` makes one", state.paths.manifest)
        raise Forbidden("This server's store has no realm yet, so nobody may do anything: `arco bootstrap` makes one")
    return head


async def _entry(state: State, head: RegistryState, name: str) -> CatalogEntry | None:
    await load(state, head.index, Needs(keys=[catalog_key(name)]))
    return find_catalog(head.index, name)


async def catalog_of(realm: Realm, state: State, name: str, identity: Identity | None) -> Catalog:
    """The catalog of a name. Raises `NoSuchWarehouse`, and `UnknownPrincipal` for an `identity` that is nobody's, who
    does not learn which catalogs there are."""
    entry = await find(state, name, fresh=identity is None)  # of an identity the realm is read again
    if entry is None:
        if identity is not None:
            await check_principal(state, identity)
        raise NoSuchWarehouse(f"Warehouse does not exist: {name}")
    return realm.catalog(entry)
