"""The sessions of one request: with the catalog of its path, with the registry of its realm, or with a catalog that a
management route names. In a realm with access control, a session enforces the rights that the request's route requires,
unless another session has authorized the request."""

from collections.abc import Sequence
from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING

from arco_catalog.http.compression import answer_limit
from arco_catalog.http.decoded_request import DecodedRequest
from arco_catalog.http.service import Endpoint, Service
from arco_catalog.http.source import Source, update_source
from arco_catalog.iceberg.errors import InternalError, NoSuchWarehouse, NotFound, Refusal
from arco_catalog.planning.access import Identity, Requirement
from arco_catalog.protocol.access import ALLOW_ALL, ALREADY_AUTHORIZED, Access
from arco_catalog.protocol.catalog import Catalog, Session
from arco_catalog.protocol.operation_request import IdempotencyKey, OperationRequest
from arco_catalog.state.key_settings import KeySettings
from arco_catalog.state.paths import REALM_FOLDER
from arco_catalog.state.runtime import Deadline
from storage_backends.lazy_dataclass import dataclass

if TYPE_CHECKING:  # importing it takes time, which a cold start without realms saves
    from arco_catalog.http.realms import RealmService
    from arco_catalog.operations.realms import Realm

ENTITIES = frozenset({"principal", "principal-role", "catalog", "catalog-role"})
"""The parameters of management routes that are names of entities."""


@dataclass(slots=True, eq=False)
class Sessions:
    """Opens the sessions in which the handler of one request reads and changes catalogs and the realm."""

    service: Service
    endpoint: Endpoint
    request: DecodedRequest
    named: Catalog | None = None
    """The catalog that the path or the query names, or the default one if the path of the catalog API names none; None
    before one is selected."""
    realm: "Realm | None" = None
    """The realm of the request, where the server has any."""
    key_text: str | None = None
    """The header with the idempotency key, on a route of the catalog API that may change something; None elsewhere."""
    key: IdempotencyKey | None = None
    key_settings: KeySettings | None = None
    """The settings of the catalog by which the key was resolved."""
    attempts: set[str] = field(default_factory=set)
    """The attempts at this request whose slots were sent to the key's marker, by every call of the handler."""
    _resolved: Session | None = None
    """The session in which the key was resolved, until the handler opens it."""

    @property
    def catalog(self) -> Catalog:
        """The catalog of the request. Raises `InternalError` on routes that name none."""
        if self.named is None:
            raise InternalError(f"The handler of {self.endpoint.endpoint} needs a catalog, and the request names none")
        return self.named

    @property
    def realm_service(self) -> "RealmService":
        """The realms of this server. Raises `InternalError` on a server without realms."""
        if self.service.realms is None:
            raise InternalError(f"The handler of {self.endpoint.endpoint} needs realms, and this server has none")
        return self.service.realms

    @property
    def required_realm(self) -> "Realm":
        """The realm of the request. Raises `InternalError` on a server without realms."""
        if self.realm is None:
            raise InternalError(f"The handler of {self.endpoint.endpoint} needs a realm, and the request has none")
        return self.realm

    async def select_catalog(self, name: str) -> None:
        """Finds the catalog with this name in the request's realm, and makes it that of the request. Raises
        `NoSuchWarehouse`, and the errors of `realms.catalog_of`."""
        from arco_catalog.http.realms import catalog_of  # only where there are realms

        realm = self.required_realm
        self.named = await catalog_of(realm, realm.lookups(), name, self.request.caller.identity)

    # The catalog of the path.

    def open(self) -> Session:
        """Returns a session with the catalog of the request, and a new deadline. The first call after `resolve_key`
        returns the session in which the key was resolved. Raises `BadRequest` for a malformed source, and the errors of
        `requirements`."""
        session, self._resolved = self._resolved, None
        if session is not None:
            return session
        source, catalog = self._source(), self.catalog
        request = self._operation(catalog, source)
        session = catalog.session(request, self._access(catalog, source))
        session.stats.ignored_claim = source.ignored
        return session

    async def resolve_key(self) -> None:
        """Decides which marker stands for the idempotency key of the request, and keeps the session for `open`. Raises
        the errors of `key_resolution.resolve_key`."""
        # Imported here, because a cold start for a read saves the time.
        from arco_catalog.protocol.key_resolution import resolve_key

        session = self.open()
        await resolve_key(session)
        self.key, self.key_settings = session.request.key, session.request.key_settings
        self._resolved = session

    async def check_allowed(self) -> None:
        """Returns if the caller has the rights that the route requires, or if neither rights nor a policy are enforced,
        for a handler that reads nothing of the catalog. Raises the errors of `open`, and the errors of `Session.head`,
        such as for a caller without the rights."""
        session = self.open()
        if session.is_restricted:
            await session.head()

    async def check_visible(self) -> None:
        """Returns if the caller may know that the catalog of the path exists, or if the path names none. Where
        rights are not enforced, it returns for every caller. No policy is consulted. Raises `NoSuchWarehouse` if the
        caller may not, and the errors of `Session.head`."""
        catalog = self.named
        if catalog is None or catalog.entry is None or not self.endpoint.has_prefix or not self._is_restricted:
            return
        deadline_ms = catalog.runtime.now_ms() + catalog.settings.request_ms
        principal, hold = self.request.caller.principal, self.request.hold
        request = OperationRequest("GET", "", "", None, principal, {}, deadline_ms, hold=hold)
        await catalog.session(request, self._restricted_access(catalog, ())).head()

    # The realm, and the catalogs that management routes name.

    def open_realm(self, itself: str | None = None) -> Session:
        """Returns a session with the registry of the realm, which checks the caller's rights in the realm when it reads
        HEAD, unless access control is off. `itself` is the name of the principal whose credentials the request rotates,
        which may do so without a privilege. Raises `BadRequest` for a malformed source, and for a name in the path that
        no entity can have."""
        if not self._is_restricted:
            return self._open_registry(self._with_policy(ALLOW_ALL, None))
        from arco_catalog.protocol.rights import RealmAccess  # only for servers that enforce access

        named = self._source().named
        access = RealmAccess(self._identity, self.requirements(), itself, names_source=named)
        return self._open_registry(self._with_policy(access, None))

    def open_authorized_realm(self) -> Session:
        """Returns a session with the registry of the realm that checks no rights, for a request that was allowed before
        or by the registry of a catalog. Raises `BadRequest` as `open_realm` does."""
        return self._open_registry(ALREADY_AUTHORIZED)

    def _open_registry(self, access: Access) -> Session:
        """Opens a session with the realm's registry, with this access. Raises `BadRequest` as `open_realm` does."""
        self._check_entities()
        registry = self.required_realm.registry
        return registry.session(self._operation(registry, self._source()), access)

    async def open_catalog(self, name: str, *, is_authorized: bool = False) -> Session:
        """Returns a session with the registry of a catalog that the path of a management route names. The session
        checks the caller's rights when it reads HEAD; with `is_authorized` it checks none, since the realm's registry
        has allowed the request. Raises `NotFound` if there is no such catalog, or `Forbidden` instead for a caller that
        may not list catalogs, `BadRequest` for a malformed source or a name in the path that no entity can have, and
        the other errors of `realms.catalog_of` and `requirements`."""
        self._check_entities()
        try:
            await self.select_catalog(name)
        except NoSuchWarehouse:
            raise await self._unknown_catalog(name) from None
        source, catalog = self._source(), self.catalog
        request = self._operation(catalog, source)
        access = ALREADY_AUTHORIZED if is_authorized else self._access(catalog, source, hides=False)
        return catalog.session(request, access)

    async def open_named(self) -> Session:
        """Returns a session with the catalog in the path: in the parameter `prefix` of the catalog API, or `catalog` of
        the management API. Raises the errors of `open` or `open_catalog`."""
        if self.endpoint.has_prefix:
            return self.open()
        self.requirements()  # raises for a malformed path first, so the error does not depend on the catalog
        return await self.open_catalog(self.request.params["catalog"])

    def _check_entities(self) -> None:
        """Raises `BadRequest` if the path of a management route has a name that no entity can have."""
        from arco_catalog.operations.management.entities import check_entity_name  # only where there are realms

        for parameter in ENTITIES & self.request.params.keys():
            check_entity_name(self.request.params[parameter], parameter.replace("-", " "))

    async def _unknown_catalog(self, name: str) -> Refusal:
        """Returns the error for an unknown catalog: `NotFound`, or `Forbidden` for a caller that may not list catalogs
        where rights are checked. `Forbidden` is also for a caller who must rotate the secret first. Raises the errors
        of `refuse_unknown` and `open_authorized_realm`."""
        if not self._is_restricted:
            return NotFound(f"Catalog does not exist: {name}")
        from arco_catalog.protocol.rights import refuse_unknown  # only for servers that enforce access

        return await refuse_unknown(self.open_authorized_realm().state, name, self._identity)

    # Access.

    def requirements(self) -> Sequence[Requirement]:
        """Returns the privileges that this request needs, with their securables. Raises `BadRequest` for names that
        nothing can have, and `InternalError` if the route declares no requirements."""
        if self.endpoint.requires is None:
            raise InternalError(f"The route {self.endpoint.endpoint} does not declare which privileges a request needs")
        return self.endpoint.requires(self.request)

    @property
    def _is_restricted(self) -> bool:
        """Whether the caller's rights are checked: the request has a realm, and the server authenticates callers and
        has access control on."""
        return self.realm is not None and self.realm_service.checks_access

    @property
    def _identity(self) -> Identity:
        """The identity of the caller, by which its rights are checked. Raises `InternalError` if the caller has
        none."""
        identity = self.request.caller.identity
        if identity is None:
            raise InternalError(f"The caller of {self.endpoint.endpoint} has no identity, and this realm checks access")
        return identity

    def _access(self, catalog: Catalog, source: Source, *, hides: bool = True) -> Access:
        """Returns the access of this request to a catalog: if rights are not checked, access to everything that the
        server's policy allows, if it has one. Where rights are enforced, the policy must allow the access, too. With
        `hides` a caller that may not know of an object gets the error for a missing one. Raises the errors of
        `requirements`."""
        if not self._is_restricted:
            return self._with_policy(ALLOW_ALL, catalog)
        access = self._restricted_access(catalog, self.requirements(), hides=hides, names_source=source.named)
        return self._with_policy(access, catalog)

    def _with_policy(self, access: Access, catalog: Catalog | None) -> Access:
        """Returns access to a catalog, or to the realm itself for None, that also needs the consent of the server's
        policy; the same access if the server has none. Raises the errors of `requirements`."""
        policy = self.service.policy
        if policy is None:
            return access
        # Imported here, because a server without a policy has no use for them.
        from arco_catalog.planning.policy_questions import Actor
        from arco_catalog.protocol.policy import PolicyAccess

        caller, realm = self.request.caller, self.realm
        actor = Actor(caller.shown, caller.principal, caller.roles, None if realm is None else realm.name)
        registry = self.required_realm.registry if catalog is None else catalog
        name = None if catalog is None else catalog.settings.warehouse
        page_key = None if access.is_restricted else partial(self._page_key, registry)
        deadline = Deadline.after(registry.runtime, registry.settings.request_ms)
        return PolicyAccess(access, policy, actor, name, self.requirements(), deadline, page_key)

    async def _page_key(self, catalog: Catalog) -> bytes:
        """Returns the key that seals page tokens of a catalog where no grants are checked, and a policy hides names."""
        return await catalog.session(self._operation(catalog, self._source()), ALREADY_AUTHORIZED).state.page_key()

    def _restricted_access(
        self, catalog: Catalog, requirements: Sequence[Requirement], *, hides: bool = True, names_source: bool = False
    ) -> Access:
        """Returns the access of this request to a catalog of a realm whose rights are checked, by these requirements.
        With `hides` a caller that may not know of an object gets the error for a missing one; with `names_source` the
        caller needs the right to name the source of the change. Raises `InternalError` for a catalog without an entry
        in the realm."""
        realm = self.required_realm
        from arco_catalog.protocol.rights import CatalogAccess  # only for servers that enforce access

        if catalog.entry is None:
            raise InternalError(f"Catalog {catalog.settings.warehouse} was opened without its entry in the realm")
        return CatalogAccess(
            realm.lookups(),
            realm.judgements,
            catalog.settings.warehouse,
            catalog.entry,
            self._identity,
            requirements,
            hides=hides,
            names_source=names_source,
        )

    # The request as operations get it.

    def _source(self) -> Source:
        """Returns the source of the request. Raises `BadRequest` for malformed headers."""
        request = self.request
        return update_source(request.headers, request.caller, request.options.source_principals)

    def _operation(self, catalog: Catalog, source: Source) -> OperationRequest:
        """Returns this HTTP request as a request to a catalog, with a new deadline. The path of a request that changes
        something is in one encoding, because an idempotency key is bound to it."""
        endpoint, request = self.endpoint, self.request
        return OperationRequest(
            method=endpoint.method,
            path=endpoint.template if endpoint.reads else request.canonical_path,
            query=request.query.canonical,
            body=request.body,
            principal=request.caller.principal,
            source=source.stored,
            deadline_ms=catalog.runtime.now_ms() + catalog.settings.request_ms,
            key=self.key,
            answer_limit=answer_limit(request.options, request.headers),
            body_bytes=request.body_bytes,
            role_session=request.caller.session,
            name=request.caller.name,
            id=request.id,
            hold=request.hold,
            attempts=self.attempts,
            key_text=self.key_text,
            key_policy=None if catalog.paths.folder == REALM_FOLDER else request.options.key_policy,
            key_settings=self.key_settings,
        )
