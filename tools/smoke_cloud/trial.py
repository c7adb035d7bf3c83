"""The trial of a bucket: makes a catalog under a fresh prefix, uses it, and removes what it made, whatever failed."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from arco_catalog.cli import checks
from arco_catalog.cli.clients import clients_of
from arco_catalog.cli.command import CatalogOptions
from arco_catalog.cli.store_doctor import report
from arco_catalog.http.app import create_app
from arco_catalog.http.options import HttpOptions
from arco_catalog.operations.open import long_lived, open_catalog
from arco_catalog.planning.upkeep_settings import PurgeSettings
from arco_catalog.protocol.catalog import Catalog, Settings
from arco_catalog.state.runtime import SystemRuntime
from arco_catalog.upkeep.purge.worker import task_worker
from storage_backends import Cursor, ObjectStore
from storage_backends.open import canonical_url
from storage_backends.url import StoreUrl
from tools.smoke_cloud import requests
from tools.smoke_cloud.requests import TABLES, WAREHOUSE, expected, made_table
from tools.smoke_cloud.steps import FAILED, PRICES, Steps, require
from tools.smoke_cloud.vended import VendingOptions, use_vended
from tools.support.asgi_client import Client

PURGE_S = 120.0
PAUSE_S = 1.0
MAX_PAGES = 50


@dataclass
class Trial:
    """A trial in the folder at the URL `root`, which nothing else uses."""

    root: str
    steps: Steps
    options: VendingOptions

    @classmethod
    def below(cls, url: str, environment: Mapping[str, str], options: VendingOptions) -> "Trial":
        """Returns a trial in a fresh folder below a URL. Raises `ValueError` for a URL of no cloud."""
        if StoreUrl.parse(url).scheme not in PRICES:
            raise ValueError(f"{url} is no URL of a bucket: use {', '.join(f'{scheme}://' for scheme in PRICES)}")
        folder = f"{canonical_url(url, environment).rstrip('/')}/arco-smoke-{SystemRuntime().ulid().lower()}"
        return cls(folder, Steps(environment), options)

    async def run(self) -> None:
        """Makes the steps, one after the other; the steps of the catalog end with the first that fails. Then, in every
        case, removes all objects in the folder."""
        try:
            await self._store()
            if not self.steps.failed:
                await self._catalog()
        finally:
            await self._remove()

    async def _store(self) -> None:
        with self.steps.step("store: conditional writes, races, lists") as step:
            found = await report(self.root, self.steps.environment, clients_of(self.root))
            require(not found.faults, "; ".join(found.faults))
            step.found = f"by {', '.join(found.examined)}"

    async def _catalog(self) -> None:
        steps, settings = self.steps, Settings(WAREHOUSE, purge=PurgeSettings(undrop_window_ms=0))
        with steps.step("catalog: init"):
            catalog = await open_catalog(settings, self.root, (), SystemRuntime(), steps.open)
        if steps.failed:
            return
        async with long_lived(catalog) as opened:
            client = _client(opened)
            with steps.step("catalog: two tables"):
                namespace = {"namespace": ["db"]}
                expected(await client.post(f"/v1/{WAREHOUSE}/namespaces", namespace), 200)
                location = await made_table(client, "t")
                await made_table(client, "u")
            if not steps.failed:
                await self._requests(opened, client, location)

    async def _requests(self, catalog: Catalog, client: Client, location: str) -> None:
        steps, store, root = self.steps, catalog.store, f"{self.root}/"
        with steps.step("arco doctor"):
            await self._doctor()
        with steps.step(f"{requests.WRITERS} concurrent commits under keys") as step:
            another = await open_catalog(catalog.settings, self.root, (), SystemRuntime(), steps.open)
            async with long_lived(another) as opened:
                step.found = await requests.commit_concurrently([client, _client(opened)], "t")
        with steps.step("transaction") as step:
            step.found = await requests.commit_together(client, ("t", "u"))
        with steps.step("append"):
            await requests.append_files(client, store, root, "t", location)
        with steps.step("scan plan") as step:
            step.found = await requests.plan_scan(client, "t")
        with steps.step("vended credentials") as step:
            step.found = await use_vended(self.root, location, steps.environment, self.options)
        with steps.step("drop with purge") as step:
            step.found = await self._purge(catalog, client, location.removeprefix(root))

    async def _doctor(self) -> None:
        options = CatalogOptions(self.root, WAREHOUSE, environment=self.steps.environment)
        found = await checks.Checks(options).run()
        failed = [f"{each.name}: {each.found}" for each in found if each.status is checks.Status.FAILED]
        require(not failed, "; ".join(failed))

    async def _purge(self, catalog: Catalog, client: Client, folder: str) -> str:
        """Drops the table with a purge, and works until its task has ended, under a lease."""
        before = len(await _keys(catalog.store, f"{folder}/"))
        expected(await client.delete(f"{TABLES}/t?purgeRequested=true"), 204)
        worker, runtime = task_worker(catalog), SystemRuntime()
        async with asyncio.timeout(PURGE_S):
            while left := await _keys(catalog.store, f"{folder}/"):
                await worker.run_until_idle()
                require(not worker.stats.failed, f"the purge failed: {len(left)} of {before} files are left")
                await runtime.sleep(PAUSE_S)
        return f"{before} files deleted by a leased task"

    async def _remove(self) -> None:
        """Removes all objects in the folder of this trial."""
        with self.steps.step("removal") as step:
            store = self.steps.open(self.root)
            try:
                for _ in range(MAX_PAGES):
                    keys = await _keys(store, "")
                    if not keys:
                        return
                    await store.delete_many(keys)
                    step.found = f"{len(keys)} objects removed"
                step.status, step.found = FAILED, f"remove what is left of {self.root}"
            finally:
                await store.close()


def _client(catalog: Catalog) -> Client:
    """Returns a client of an app in this process over a catalog, without logins."""
    return Client(create_app({WAREHOUSE: catalog}, HttpOptions()))


async def _keys(store: ObjectStore, prefix: str) -> list[str]:
    """Returns the first keys under a prefix: a thousand, or as many as the store lists in `MAX_PAGES` pages."""
    found: list[str] = []
    after: Cursor | None = None
    for _ in range(MAX_PAGES):
        page = await store.list(prefix, after)
        found += (entry.key for entry in page.entries)
        after = page.after
        if after is None or len(found) >= 1_000:
            break
    return found
