"""The context that a handler gets: one decoded request with the catalog that it is for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import quote

from arco_catalog.authentication.authentication import Authentication
from arco_catalog.http.compression import answer_limit
from arco_catalog.http.names import (
    check_name,
    check_routable,
    creates,
    decode_namespace,
    read_identifier,
    read_name,
    required_identifier,
)
from arco_catalog.http.options import UNIT_SEPARATOR, HttpOptions
from arco_catalog.http.principal import Caller
from arco_catalog.http.query import Query
from arco_catalog.http.route import Effect, Route
from arco_catalog.http.source import Source, update_source
from arco_catalog.http.spelling import Spelling, spelling_of
from arco_catalog.iceberg.errors import BadRequest, InternalError, NoSuchWarehouse, NotFound, Refusal
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.iceberg.shapes import OBJECT, Fields
from arco_catalog.planning.access import Identity, Requirement
from arco_catalog.planning.names import Identifier
from arco_catalog.protocol.access import ALLOW_ALL, ALREADY_AUTHORIZED, Access
from arco_catalog.protocol.catalog import Catalog, Session
from arco_catalog.protocol.key_resolution import resolve_key
from arco_catalog.protocol.operation_request import IdempotencyKey, OperationRequest
from arco_catalog.state.index import Namespace
from arco_catalog.state.key_settings import KeySettings
from arco_catalog.state.memory import Hold
from arco_catalog.state.paths import REALM_FOLDER

if TYPE_CHECKING:  # a cold start without realms does not pay for them
    from arco_catalog.http.realms import RealmService
    from arco_catalog.operations.realms import Realm


ENTITIES = frozenset({"principal", "principal-role", "catalog", "catalog-role"})
"""What paths of management routes name."""


@dataclass(frozen=True, slots=True)
class Service:
    """What one app serves at `routes`: `warehouses` by their names, to whomever `authentication` knows, or the catalogs
    of `realms`. Without either it serves whom its gateway lets in."""

    warehouses: Mapping[str, Catalog]
    options: HttpOptions
    routes: Sequence[Route]
    realms: "RealmService | None" = None
    authentication: Authentication | None = None

    def default_warehouse(self) -> str:
        """What is meant by who names none. Raises `BadRequest`."""
        if self.options.default_warehouse is not None:
            return self.options.default_warehouse
        if self.realms is not None:
            raise BadRequest("Name a catalog in the query parameter 'warehouse'")
        if len(self.warehouses) != 1:
            raise BadRequest("This server has several warehouses: name one in the query parameter 'warehouse'")
        return next(iter(self.warehouses))


@dataclass(slots=True)
class RequestContext:
    """One request at its route. `params` are the decoded segments that the template names; `body` is None on routes
    that have none, `body_bytes` how long it was, `form` that of a form as it came; `named` is the catalog that the
    prefix names, on routes with one; `realm` that of the request, where there are any; `id` is what telemetry calls
    the request."""

    service: Service
    route: Route
    params: Mapping[str, str]
    query: Query
    headers: Mapping[str, str]
    caller: Caller
    named: Catalog | None
    hold: Hold
    realm: "Realm | None" = None
    body: JsonObject | None = None
    body_bytes: int = 0
    form: bytes = b""
    id: str | None = None
    key_text: str | None = None
    """The header with the idempotency key, where the route may change something."""
    key: IdempotencyKey | None = None
    key_settings: KeySettings | None = None
    """Those of the catalog, by which the key was resolved."""
    attempts: set[str] = field(default_factory=set)
    """Attempts at this request that its handler made, also before it was called again."""

    @property
    def options(self) -> HttpOptions:
        return self.service.options

    @property
    def catalog(self) -> Catalog:
        """The catalog that the path's prefix names."""
        assert self.named is not None
        return self.named

    @property
    def namespace(self) -> Namespace:
        """The namespace in the path. Raises `BadRequest`."""
        return decode_namespace(self.params["namespace"], self.options.namespace_separator)

    @property
    def table(self) -> str:
        """The table in the path. Raises `BadRequest`."""
        return check_name(self.params["table"], "table")

    def path_name(self, parameter: str) -> str:
        """The name of anything else that the path names. Raises `BadRequest`."""
        return check_name(self.params[parameter], parameter)

    @property
    def view(self) -> str:
        """The view in the path. Raises `BadRequest`."""
        return check_name(self.params["view"], "view")

    @property
    def fields(self) -> Fields:
        """The body, to be read field by field."""
        return Fields(self.body or {}, "request")

    def check_identifier(self, name: str, what: str) -> None:
        """A commit may name what the path names, and nothing else. Raises `BadRequest`."""
        identifier = self.fields.optional("identifier", OBJECT)
        if identifier is None:
            return
        if read_identifier(identifier, "request.identifier", self.options.namespace_separator) != (
            self.namespace,
            name,
        ):
            raise BadRequest(f"Invalid request.identifier: it must name the {what} of the path")

    @property
    def spelling(self) -> Spelling:
        """How the client spells names in paths."""
        return spelling_of(self.headers)

    def check_new(self, name: str, what: str) -> str:
        """The name, if something new may have it: it must be possible to ask for it again. Raises `BadRequest`."""
        return check_routable(name, what, self.options.unroutable, self.spelling)

    def new_name(self) -> str:
        """The body's `name`, for something that is to be made. Raises `BadRequest`."""
        return self.check_new(read_name(self.fields), "request.name")

    def check_creation(self, change: JsonObject, name: str) -> None:
        """A commit that makes a table needs a name that can be asked for again. Raises `BadRequest`."""
        if creates(change):
            self.check_new(name, "table")

    def renaming(self) -> tuple[Identifier, Identifier]:
        """Source and destination of a rename. Raises `BadRequest`."""
        separator = self.options.namespace_separator
        source = required_identifier(self.fields, "source", separator)
        destination = required_identifier(self.fields, "destination", separator)
        self.check_new(destination[1], "request.destination.name")
        return source, destination

    @property
    def realm_service(self) -> "RealmService":
        """The realms of this server, on routes that are there only with them."""
        assert self.service.realms is not None
        return self.service.realms

    @property
    def required_realm(self) -> "Realm":
        """The realm of the request, on such routes."""
        assert self.realm is not None
        return self.realm

    async def look_up(self, name: str) -> None:
        """Takes the catalog of this name for the one that the request is for. Raises `NoSuchWarehouse`."""
        from arco_catalog.http.realms import catalog_of

        assert self.realm is not None
        self.named = await catalog_of(self.realm, self.realm.lookups(), name, self.caller.identity)

    def session(self) -> Session:
        """Opens this request's session: its deadline begins here. Raises `BadRequest` for a malformed key or source."""
        source = self._source()
        request = self._operation(self.catalog, source)
        session = self.catalog.session(request, self._access(self.catalog, source))
        session.stats.ignored_claim = source.ignored
        return session

    async def check_allowed(self) -> None:
        """For a request that looks at nothing: returns if its caller may make it. Raises as `Session.head` does."""
        session = self.session()
        if session.is_restricted:
            await session.head()

    async def check_visible(self) -> None:
        """Returns if the caller may know that the catalog of the path exists. Raises `NoSuchWarehouse`."""
        catalog = self.named
        if catalog is None or catalog.entry is None or not self.route.has_prefix:
            return
        deadline_ms = catalog.runtime.now_ms() + catalog.settings.request_ms
        request = OperationRequest("GET", "", "", None, self.caller.principal, {}, deadline_ms, hold=self.hold)
        access = self._access_for(catalog, ())
        if access.is_restricted:
            await catalog.session(request, access).head()

    def _operation(self, catalog: Catalog, source: Source) -> OperationRequest:
        route = self.route
        return OperationRequest(
            method=route.method,
            path=route.template if route.effect is Effect.READS else self.canonical_path(),
            query=self.query.canonical,
            body=self.body,
            principal=self.caller.principal,
            source=source.stored,
            deadline_ms=catalog.runtime.now_ms() + catalog.settings.request_ms,
            key=self.key,
            commit=route.commits,
            answer_limit=answer_limit(self.options, self.headers),
            body_bytes=self.body_bytes,
            role_session=self.caller.session,
            name=self.caller.name,
            id=self.id,
            hold=self.hold,
            attempts=self.attempts,
            key_text=self.key_text,
            key_policy=None if catalog.paths.folder == REALM_FOLDER else self.options.key_policy,
            key_settings=self.key_settings,
        )

    def _source(self) -> Source:
        """Where the request comes from. Raises `BadRequest`."""
        return update_source(self.headers, self.caller, self.options.source_principals)

    def _access(self, catalog: Catalog, source: Source, *, hides: bool = True) -> Access:
        """The access of this request to a catalog. Raises `BadRequest`."""
        if self.realm is None or not self._is_restricted:
            return ALLOW_ALL
        return self._access_for(catalog, self.required(), hides=hides, names_source=source.named)

    @property
    def _is_restricted(self) -> bool:
        """Whether the caller's rights are checked: in every realm, unless its server has access control off."""
        return self.realm is not None and self.realm_service.checks_access

    @property
    def _identity(self) -> Identity:
        """The identity whose rights are checked. Raises `InternalError` without one: such a request has no rights."""
        if self.caller.identity is None:
            raise InternalError(f"The caller of {self.route.endpoint} has no identity, and this realm checks access")
        return self.caller.identity

    def _access_for(
        self, catalog: Catalog, requirements: Sequence[Requirement], *, hides: bool = True, names_source: bool = False
    ) -> Access:
        if self.realm is None or not self._is_restricted:
            return ALLOW_ALL
        from arco_catalog.protocol.rights import CatalogAccess  # only where there are realms

        realm = self.realm
        assert catalog.entry is not None
        return CatalogAccess(
            realm.lookups(),
            realm.judged,
            catalog.settings.warehouse,
            catalog.entry,
            self._identity,
            requirements,
            hides=hides,
            names_source=names_source,
        )

    def realm_session(self, itself: str | None = None) -> Session:
        """A session with the registry of the realm, which judges what is done to the realm itself; `itself` is the
        principal that is acted on. Raises `BadRequest` for a malformed source."""
        from arco_catalog.protocol.rights import RealmAccess

        if not self._is_restricted:
            return self._registry_session(ALLOW_ALL)
        named = self._source().named
        return self._registry_session(RealmAccess(self._identity, self.required(), itself, names_source=named))

    def authorized_realm_session(self) -> Session:
        """A session with the registry of the realm, for a request that a catalog's registry has allowed."""
        return self._registry_session(ALREADY_AUTHORIZED)

    def _registry_session(self, access: Access) -> Session:
        assert self.realm is not None
        self._check_entities()
        return self.realm.registry.session(self._operation(self.realm.registry, self._source()), access)

    async def catalog_session(self, name: str, *, is_authorized: bool = False) -> Session:
        """A session with the registry of a catalog that the path of a management route names; `is_authorized` if the
        realm's registry has allowed the request. Raises `NotFound`, `Forbidden` for a caller who may not know that no
        catalog has this name, and `BadRequest` for a name that no catalog can have."""
        self._check_entities()
        try:
            await self.look_up(name)
        except NoSuchWarehouse:
            raise await self._unknown_catalog(name) from None
        source = self._source()
        request = self._operation(self.catalog, source)
        access = ALREADY_AUTHORIZED if is_authorized else self._access(self.catalog, source, hides=False)
        return self.catalog.session(request, access)

    def _check_entities(self) -> None:
        """Raises `BadRequest` if the path of a management route names something that can't be there."""
        from arco_catalog.operations.management.entities import check_entity_name

        for parameter in ENTITIES & self.params.keys():
            check_entity_name(self.params[parameter], parameter.replace("-", " "))

    async def _unknown_catalog(self, name: str) -> Refusal:
        from arco_catalog.protocol.rights import refuse_unknown

        if not self._is_restricted:
            return NotFound(f"Catalog does not exist: {name}")
        return await refuse_unknown(self.authorized_realm_session().state, name, self._identity)

    def required(self) -> Sequence[Requirement]:
        """The privileges that this request needs. Raises `BadRequest`."""
        if self.route.requires is None:
            raise InternalError(f"The route {self.route.endpoint} declares no requirements")
        return self.route.requires(self)

    def canonical_path(self) -> str:
        """The same text for the same path however it was encoded, and another for every other path: what an idempotency
        key is bound to, and what receipts show. Raises `BadRequest`."""
        return "/".join(
            quote(self._canonical(segment[1:-1]), safe="") if segment.startswith("{") else segment
            for segment in self.route.template.split("/")
        )

    def _canonical(self, parameter: str) -> str:
        return UNIT_SEPARATOR.join(self.namespace) if parameter == "namespace" else self.params[parameter]

    async def resolve_key(self) -> None:
        """Decides which marker stands for the key of a request that has one. Raises as `resolve_key` of the protocol
        does."""
        session = self.session()
        await resolve_key(session)
        self.key, self.key_settings = session.request.key, session.request.key_settings
