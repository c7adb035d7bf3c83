"""The principals of a served realm, and the pipeline as one of them."""

import asyncio
import json
from dataclasses import dataclass

import requests
from pyiceberg.catalog import load_catalog
from pyiceberg.catalog.rest import RestCatalog

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state.runtime import SystemRuntime
from reconciler.catalog_config import CatalogConfig
from reconciler.compact.driver import compact
from reconciler.compact.stats import CompactStats
from reconciler.executors import LocalExecutor
from reconciler.system.opened import SystemTables
from tests.engines.realm import MANAGEMENT, Realm
from tools.demo.server import WAREHOUSE

ALL_ROLES = "PRINCIPAL_ROLE:ALL"


@dataclass(frozen=True)
class Principals:
    """The principals of a served realm, as its root makes them."""

    realm: Realm

    @property
    def uri(self) -> str:
        return self.realm.owner.server.uri

    def headers(self, credential: str) -> dict[str, str]:
        client_id, _, secret = credential.partition(":")
        form = {"grant_type": "client_credentials", "client_id": client_id, "client_secret": secret}
        answer = requests.post(f"{self.uri}/v1/oauth/tokens", {**form, "scope": ALL_ROLES}, timeout=30)
        return {"Authorization": f"Bearer {answer.json()['access_token']}", "Content-Type": "application/json"}

    def manage(self, method: str, path: str, body: JsonObject) -> dict[str, dict[str, str]]:
        headers = self.headers(self.realm.owner.login["credential"])
        url = f"{self.uri}{MANAGEMENT}/{path}"
        answer = requests.request(method, url, data=json.dumps(body), headers=headers, timeout=30)
        assert answer.status_code < 300, answer.text
        made: dict[str, dict[str, str]] = answer.json() if answer.content else {}
        return made

    def make(self, name: str, *grants: JsonObject, **properties: str) -> str:
        """A principal with these grants in the catalog; its credential."""
        made = self.manage("POST", "principals", {"principal": {"name": name, "properties": {**properties}}})
        people: JsonObject = {"principalRole": {"name": f"{name}-role"}}
        doing: JsonObject = {"catalogRole": {"name": f"{name}-may"}}
        self.manage("POST", "principal-roles", people)
        self.manage("PUT", f"principals/{name}/principal-roles", people)
        self.manage("POST", f"catalogs/{WAREHOUSE}/catalog-roles", doing)
        self.manage("PUT", f"principal-roles/{name}-role/catalog-roles/{WAREHOUSE}", doing)
        for grant in grants:
            self.grant(name, grant)
        return f"{made['credentials']['clientId']}:{made['credentials']['clientSecret']}"

    def grant(self, name: str, grant: JsonObject) -> None:
        """Gives a principal a grant more in the catalog."""
        self.manage("PUT", f"catalogs/{WAREHOUSE}/catalog-roles/{name}-may/grants", {"grant": grant})

    def revoke(self, name: str, grant: JsonObject) -> None:
        """Takes a grant from it."""
        self.manage("POST", f"catalogs/{WAREHOUSE}/catalog-roles/{name}-may/grants", {"grant": grant})

    def login(self, credential: str) -> dict[str, str]:
        tokens = f"{self.uri}/v1/oauth/tokens"
        return {"credential": credential, "scope": ALL_ROLES, "oauth2-server-uri": tokens}

    def catalog(self, credential: str) -> RestCatalog:
        found = load_catalog("arco", type="rest", uri=self.uri, warehouse=WAREHOUSE, **self.login(credential))
        assert isinstance(found, RestCatalog)
        return found

    def system(self, credential: str, *in_trino: str) -> SystemTables:
        """As the job connects; `in_trino` are the names there of the catalog, and of the views' owner."""
        return SystemTables.connect(self.uri, WAREHOUSE, self.login(credential), SystemRuntime(), *in_trino)

    def compact(self, credential: str, *in_trino: str) -> CompactStats:
        """A run of the job, in this process."""
        config = CatalogConfig(self.realm.owner.server.store, WAREHOUSE)
        return asyncio.run(compact(self.system(credential, *in_trino), config, LocalExecutor()))
