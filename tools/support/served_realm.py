"""A realm with the catalog `main`, served without a network, for tools that trace or count the requests to it."""

from dataclasses import dataclass

from arco_catalog.authentication.authentication import Authentication
from arco_catalog.authentication.authenticator import AuthenticationResult, RequestCredentials
from arco_catalog.authentication.secrets import Secrets, new_secret
from arco_catalog.http.app import create_app
from arco_catalog.http.realms import RealmService
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.management.bootstrap import bootstrap
from arco_catalog.operations.management.principals import NewCredentials, principal_of_client
from arco_catalog.operations.open import location_of
from arco_catalog.operations.realms import Deployment, Realm
from arco_catalog.planning.access import Identity
from arco_catalog.protocol.access import ALLOW_ALL
from arco_catalog.protocol.catalog import Settings
from arco_catalog.protocol.operation_request import OperationRequest
from arco_catalog.state.files import Mount
from arco_catalog.state.runtime import SystemRuntime
from storage_backends import ObjectStore
from tools.support.asgi_client import Client

_URL = "memory:///"
_ROLE = "/api/management/v1/catalogs/main/catalog-roles/catalog_admin/grants"


@dataclass(frozen=True, slots=True)
class RootAuthenticator:
    """An authenticator that takes every caller for the root principal of a realm."""

    realm: str
    entity: str

    async def authenticate(self, presented: RequestCredentials) -> AuthenticationResult:
        return AuthenticationResult(self.realm, Identity(self.entity), "root")


@dataclass(frozen=True, slots=True)
class ServedRealm:
    """The realm `name` of a store, in the folder of its name, and the id of its root principal, `root`. Locations in
    its catalog begin with `memory:`, wherever the store is."""

    store: ObjectStore
    runtime: SystemRuntime
    name: str
    root: str

    @classmethod
    async def made(cls, store: ObjectStore, runtime: SystemRuntime, name: str = "r") -> "ServedRealm":
        """Makes the realm and its catalog, in which the root principal may do everything. Raises `RuntimeError` if the
        realm has no root principal."""
        request = OperationRequest("POST", "", "", None, "operator", {}, runtime.now_ms() + 20_000)
        session = _realm(store, runtime, name).registry.session(request, ALLOW_ALL)
        secret = await Secrets(runtime.entropy).keep(new_secret(runtime.entropy))
        await bootstrap(session, NewCredentials("root", secret))
        root = await principal_of_client(session, "root")
        if root is None:
            raise RuntimeError("The realm has no root principal")
        made = cls(store, runtime, name, root.entity)
        client, home = made.client(), f"{_URL}{name}"
        storage: JsonObject = {"storageType": "FILE", "allowedLocations": [home]}
        catalog: JsonObject = {
            "type": "INTERNAL",
            "name": "main",
            "properties": {"default-base-location": home},
            "storageConfigInfo": storage,
        }
        await client.post("/api/management/v1/catalogs", {"catalog": catalog})
        await client.put(_ROLE, {"grant": {"type": "catalog", "privilege": "CATALOG_MANAGE_CONTENT"}})
        return made

    def client(self) -> Client:
        """A client of another process, which has nothing in memory."""
        realm = _realm(self.store, self.runtime, self.name)
        authentication = Authentication([RootAuthenticator(self.name, self.root)])
        entropy = self.runtime.entropy
        service = RealmService({self.name: realm}, self.name, Secrets(entropy), entropy, authentication, None)
        return Client(create_app({}, realms=service))


def _realm(store: ObjectStore, runtime: SystemRuntime, name: str) -> Realm:
    """The realm as a fresh process opens it."""
    base = location_of(_URL)
    return Realm(name, Deployment(Settings("-"), store, base, [Mount(base, store)], runtime), at_root=False)
