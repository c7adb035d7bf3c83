"""An app over a realm in memory, in which a token is the name of its principal. Verification is tested elsewhere."""

import hashlib
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace

from arco_catalog.authentication.authentication import Authentication
from arco_catalog.authentication.authenticator import AuthenticationResult, Authenticator, RequestCredentials
from arco_catalog.authentication.secrets import Secrets, new_secret
from arco_catalog.authentication.token_endpoint import TokenEndpoint
from arco_catalog.authentication.tokens import InternalAuthenticator, OwnTokens
from arco_catalog.http.app import create_app
from arco_catalog.http.asgi import Asgi
from arco_catalog.http.console.files import Console
from arco_catalog.http.options import HttpOptions
from arco_catalog.http.rates import RequestRates
from arco_catalog.http.realms import RealmService
from arco_catalog.iceberg.errors import NotAuthorized
from arco_catalog.iceberg.json import JsonObject, dumps
from arco_catalog.operations.management.bootstrap import bootstrap
from arco_catalog.operations.management.principals import NewCredentials, principal_of_client, principal_of_name
from arco_catalog.operations.open import location_of
from arco_catalog.operations.realms import Deployment, Realm
from arco_catalog.planning.access import Identity
from arco_catalog.protocol.access import ALLOW_ALL
from arco_catalog.protocol.catalog import Session, Settings
from arco_catalog.protocol.operation_request import OperationRequest
from arco_catalog.protocol.policy import Policy
from arco_catalog.state.files import Mount
from arco_catalog.state.runtime import Runtime
from arco_catalog.telemetry.telemetry import Telemetry
from arco_catalog.vending.service import Vending
from arco_catalog.vending.storage_policy import StoragePolicy
from storage_backends import ObjectStore
from storage_backends.memory import MemoryStore
from tests.support.fake_runtime import FakeRuntime
from tools.support.asgi_client import Answer, Client
from tools.support.request_bodies import schema, uuid7

MANAGEMENT = "/api/management/v1"


class BelievedTokens:
    """Believes every token: `realm/id`, `realm/id/role,role`."""

    async def authenticate(self, presented: RequestCredentials) -> AuthenticationResult | None:
        if presented.bearer is None:
            return None
        realm, _, rest = presented.bearer.partition("/")
        principal, _, roles = rest.partition("/")
        if not principal:
            raise NotAuthorized("no token of this kind")
        return AuthenticationResult(
            realm, Identity(principal, frozenset(roles.split(",")) if roles else None), principal
        )


@dataclass
class Entropy:
    """Bytes that differ each time, and are the same in each run."""

    count: int = 0

    def __call__(self, size: int) -> bytes:
        self.count += 1
        return hashlib.shake_128(str(self.count).encode()).digest(size)


@dataclass
class RealmApp:
    """Servers over one store, with the realms that are named; `root` is a client of the first one's root principal.
    `url` is where the store believes to be."""

    names: tuple[str, ...] = ("r",)
    clock: Runtime = field(default_factory=FakeRuntime)
    store: ObjectStore | None = None
    options: HttpOptions = field(default_factory=HttpOptions)
    settings: Settings = field(default_factory=lambda: Settings("-"))
    entropy: Entropy = field(default_factory=Entropy)
    tokens: OwnTokens | None = None
    """If given, tokens are taken for what they prove."""
    url: str = "memory:///"
    vending: Callable[[], Vending] | None = None
    telemetry: Telemetry | None = None
    rates: RequestRates | None = None
    storage_policy: StoragePolicy = field(default_factory=StoragePolicy)
    console: Console | None = None
    policy: Policy | None = None
    judged: bool = True
    """Whether grants are checked."""

    async def start(self) -> "RealmApp":
        """Bootstraps the realms, and serves them."""
        self.ids: dict[tuple[str, str], str] = {}
        self.clear: dict[str, str] = {}
        self.store = self.store or MemoryStore(now_ms=self.clock.now_ms)
        for name, realm in self.realms().items():
            self.clear[name] = new_secret(self.entropy)
            secret = await self.secrets.keep(self.clear[name])
            await bootstrap(self.session(realm), NewCredentials(f"root-{name}", secret))
            root = await principal_of_client(self.session(realm), f"root-{name}")
            assert root is not None
            self.ids[name, "root"] = root.entity
        self.app = self.serve()
        self.root = self.client("root")
        return self

    def copy(self) -> "RealmApp":
        """A server over a copy of the store, with a copy of the clock: what was done so far is there too."""
        clock, store, entropy = deepcopy((self.clock, self.store, self.entropy))  # at once: the store has the clock
        made = replace(self, clock=clock, store=store, entropy=entropy)
        made.ids, made.clear = {**self.ids}, {**self.clear}
        made.app = made.serve()
        made.root = made.client("root")
        return made

    @property
    def secrets(self) -> Secrets:
        return Secrets(self.entropy)

    def realms(self) -> dict[str, Realm]:
        """Realms as a fresh process opens them."""
        assert self.store is not None
        base = location_of(self.url)
        deployment = Deployment(
            self.settings,
            self.store,
            base,
            [Mount(base, self.store)],
            self.clock,
            vending=self.vending,
            storage_policy=lambda: self.storage_policy,
        )
        return {name: Realm(name, deployment, at_root=len(self.names) == 1) for name in self.names}

    def serve(self) -> Asgi:
        """Another server over the same store."""
        authenticator: Authenticator = BelievedTokens()
        endpoint = None
        if self.tokens is not None:
            authenticator = InternalAuthenticator(self.tokens, self.clock.now_ms)
            endpoint = TokenEndpoint(self.tokens, self.secrets)
        authentication = Authentication([authenticator])
        realms, secrets = self.realms(), self.secrets
        service = RealmService(realms, self.names[0], secrets, self.entropy, authentication, endpoint, self.judged)
        return create_app(
            {}, self.options, self.telemetry, service, rates=self.rates, console=self.console, policy=self.policy
        )

    def session(self, realm: Realm) -> Session:
        """An operator's session with a realm's registry."""
        deadline = self.clock.now_ms() + 20_000
        return realm.registry.session(OperationRequest("POST", "", "", None, "operator", {}, deadline), ALLOW_ALL)

    def client(self, principal: str, realm: str | None = None, roles: str = "", app: Asgi | None = None) -> Client:
        """Requests of a principal, by the name that it was made under."""
        name = realm or self.names[0]
        token = "/".join(filter(None, (name, self.ids.get((name, principal), principal), roles)))
        return Client(app or self.app, {"authorization": f"Bearer {token}"})

    # What most tests need.

    async def manage(
        self, method: str, path: str, body: JsonObject | None = None, client: Client | None = None
    ) -> Answer:
        """Send a request to the management API, as the root unless a client is given, and return the response."""
        headers: Mapping[str, str] = {}
        data = b"" if body is None else dumps(body)
        if data:
            headers = {"content-type": "application/json", "content-length": str(len(data))}
        return await (client or self.root).send(method, f"{MANAGEMENT}/{path}", data, {**headers})

    async def ok(
        self, method: str, path: str, body: JsonObject | None = None, client: Client | None = None
    ) -> JsonObject:
        """Send a request to the management API that must succeed, and return the JSON of the response."""
        answer = await self.manage(method, path, body, client)
        assert answer.status < 300, (path, answer.status, answer.body)
        return answer.json if answer.body else {}

    def base(self, catalog: str, realm: str | None = None) -> str:
        """The default base location of a catalog."""
        root = self.url.removesuffix("/")
        return f"{root}/{catalog}" if len(self.names) == 1 else f"{root}/{realm or self.names[0]}/{catalog}"

    async def catalog(
        self,
        name: str = "lake",
        client: Client | None = None,
        base: str | None = None,
        storage: JsonObject | None = None,
        kind: str = "INTERNAL",
    ) -> None:
        """Makes a catalog."""
        base = base or self.base(name)
        await self.ok(
            "POST",
            "catalogs",
            {
                "catalog": {
                    "type": kind,
                    "name": name,
                    "properties": {"default-base-location": base},
                    "storageConfigInfo": {"allowedLocations": [base], **(storage or {"storageType": "FILE"})},
                }
            },
            client,
        )

    async def principal(self, name: str, *grants: JsonObject, catalog: str = "lake") -> Client:
        """Makes a principal with a role of its own that holds these grants in a catalog, and gives a client of it."""
        await self.ok("POST", "principals", {"principal": {"name": name}})
        await self.adopt(name)
        role: JsonObject = {"principalRole": {"name": f"{name}-role"}}
        await self.ok("POST", "principal-roles", role)
        await self.ok("PUT", f"principals/{name}/principal-roles", role)
        if grants:
            await self.grant(name, *grants, catalog=catalog)
        return self.client(name)

    async def adopt(self, name: str) -> None:
        """Lets `client` know a principal that was made otherwise."""
        found = await principal_of_name(self.session(self.realms()[self.names[0]]), name)
        assert found is not None
        self.ids[self.names[0], name] = found.entity

    async def grant(self, name: str, *grants: JsonObject, catalog: str = "lake") -> None:
        """Gives the role of a principal grants in a catalog, by a catalog role of its own."""
        role: JsonObject = {"catalogRole": {"name": f"{name}-in-{catalog}"}}
        made = await self.manage("POST", f"catalogs/{catalog}/catalog-roles", role)
        assert made.status in (201, 409), made.body
        await self.ok("PUT", f"principal-roles/{name}-role/catalog-roles/{catalog}", role)
        for grant in grants:
            await self.ok("PUT", f"catalogs/{catalog}/catalog-roles/{name}-in-{catalog}/grants", {"grant": grant})

    async def revoke(self, name: str, *grants: JsonObject, catalog: str = "lake") -> None:
        """Takes grants away again."""
        for grant in grants:
            await self.ok("POST", f"catalogs/{catalog}/catalog-roles/{name}-in-{catalog}/grants", {"grant": grant})

    def key(self) -> str:
        """A fresh idempotency key."""
        return uuid7(self.clock.now_ms(), self.clock)


def on_catalog(privilege: str) -> JsonObject:
    """A grant on the catalog."""
    return {"type": "catalog", "privilege": privilege}


def on_namespace(privilege: str, *levels: str) -> JsonObject:
    """A grant on a namespace."""
    return {"type": "namespace", "privilege": privilege, "namespace": [*levels]}


def on_table(privilege: str, namespace: str, name: str) -> JsonObject:
    """A grant on a table."""
    return {"type": "table", "privilege": privilege, "namespace": [namespace], "tableName": name}


def on_policy(privilege: str, namespace: str, name: str) -> JsonObject:
    """A grant on a policy."""
    return {"type": "policy", "privilege": privilege, "namespace": [namespace], "policyName": name}


def table_request(name: str) -> JsonObject:
    """A request to create a table."""
    return {"name": name, "schema": schema("x")}
