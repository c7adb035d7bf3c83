"""Finds the tables and views of a catalog by Iceberg's REST API, for `arco import`; `arco export` uses the same client.
Pages, names and numbers of a server are bounded, whatever it sends."""

from collections.abc import AsyncIterator, Mapping, Sequence
from urllib.parse import quote, unquote

from arco_catalog.cli.errors import CliError, NotThere
from arco_catalog.cli.management import ApiClient, Exchange
from arco_catalog.http.options import UNIT_SEPARATOR
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.protocol.concurrency import gather
from arco_catalog.state.fields import mapping, objects, optional_text, sequence, texts
from arco_catalog.state.index import Namespace
from arco_catalog.upkeep.source_tables import SourceTable

BASE = "/api/catalog/v1"
"""Where Polaris has Iceberg's API, and this catalog too."""
FOREIGN = "the answer is none of Iceberg's REST API: does the URL name a catalog's server?"
POLARIS_BASE = "/api/catalog/polaris/v1"
"""Where both have Polaris's API of policies and generic tables."""
AT_ONCE = 4
"""Tables that are loaded concurrently: the metadata of one may take many megabytes."""
PAGE_SIZE = "1000"
MAX_PAGES = 10_000
"""Maximum number of pages of one list."""
MAX_NAMES = 1_000_000
"""Maximum number of names of one list, and of all namespaces."""
LEFT_OUT = "left out; after a list of namespaces, policies or generic tables, so is the rest of the catalog"
"""How a message on a list that can't be read ends."""
MAX_LEVELS = 64
MAX_TOKEN = 16 << 10
"""Maximum number of characters of a page token."""


class RestSource:
    """The tables and views of the catalog that clients call `warehouse`, in the namespace `only` and below; () means
    all."""

    def __init__(self, exchange: Exchange, warehouse: str, only: Namespace = (), base: str = BASE) -> None:
        self._exchange, self._warehouse, self._only, self._base = exchange, warehouse, only, base
        self._api: ApiClient | None = None
        self._prefix: str | None = None
        self._separator = UNIT_SEPARATOR
        self.endpoints: Sequence[str] = ()
        """The endpoints that the server lists; empty before the first request, and if it names none."""

    async def tables(self) -> AsyncIterator[SourceTable]:
        """Yields all tables and views. One that can't be loaded has a problem in place of a location; if the tables or
        views of a namespace can't be listed, yields an entry with the name `*` and the problem. That a server has no
        views at all is no problem. Raises `CliError` if the server, the catalog or the list of namespaces can't be
        read, or there are too many namespaces."""
        async for namespace in self.namespaces():
            for kind in ("tables", "views"):
                try:
                    names = await self._names(namespace, kind, await self.client())
                except NotThere as error:
                    if kind == "views":
                        continue  # a server without views
                    yield SourceTable(namespace, "*", None, f"its tables can't be listed: {error}")
                    continue
                except CliError as error:
                    yield SourceTable(namespace, "*", None, f"its {kind} can't be listed: {error}", kind == "views")
                    continue
                for start in range(0, len(names), AT_ONCE):
                    batch = names[start : start + AT_ONCE]
                    for found in await gather(*(self._load(namespace, name, kind) for name in batch)):
                        yield found

    async def namespaces(self) -> AsyncIterator[Namespace]:
        """Yields all namespaces down to `MAX_LEVELS` levels, depth first, outer before inner ones; if one is chosen,
        that and its inner ones only. Raises `CliError`, also if there are too many."""
        await self.client()  # whose configuration has the separator
        pending: list[Namespace] = [self._only] if self._only else [*reversed(await self._inner(()))]
        count = 0
        while pending:
            namespace = pending.pop()
            count += 1
            if count > MAX_NAMES or len(pending) > MAX_NAMES:
                raise CliError(
                    f"the catalog {self._warehouse!r} at the source has more than {MAX_NAMES:,} namespaces: the rest "
                    "of them and all tables and views are left out; what was imported so far is kept"
                )
            yield namespace
            if len(namespace) < MAX_LEVELS:
                pending += reversed(await self._inner(namespace))

    async def properties_of(self, namespace: Namespace) -> Mapping[str, str]:
        """Returns the properties of a namespace, as far as they are texts. Raises `CliError`."""
        api = await self.client()
        found = mapping(await api.get("namespaces", self.joined(namespace)), "properties")
        return {name: value for name, value in found.items() if isinstance(value, str)}

    async def client(self) -> ApiClient:
        """Returns the client of the catalog's API. The first call reads the server's configuration, which has the API's
        prefix, the separator of namespaces and the endpoints. Raises `CliError`."""
        if self._api is None:
            named = {"warehouse": self._warehouse} if self._warehouse else {}
            api = ApiClient(self._exchange, self._base, FOREIGN)
            config = await api.send("GET", "config", has="defaults", query=named)
            settings = {**mapping(config, "defaults"), **mapping(config, "overrides")}
            prefix = optional_text(settings, "prefix")
            self._separator = unquote(optional_text(settings, "namespace-separator") or "")[:1] or UNIT_SEPARATOR
            self.endpoints = texts(config, "endpoints")
            self._prefix = prefix
            self._api = ApiClient(self._exchange, _below(self._base, prefix), FOREIGN)
        return self._api

    def joined(self, namespace: Namespace) -> str:
        """Returns a namespace as it stands in paths and queries, with the separator of the server's configuration. Call
        it after the first request."""
        return self._separator.join(namespace)

    async def native_names(self, namespace: Namespace, collection: str) -> Sequence[str]:
        """Returns the names of the policies or generic tables of a namespace, sorted, by Polaris's own API; none for
        the status 404, which a server without that API sends, or one without the namespace. Raises `CliError`."""
        try:
            return await self._names(namespace, collection, await self._native())
        except NotThere:
            return ()

    async def native(self, namespace: Namespace, collection: str, name: str, field: str) -> JsonObject:
        """Returns the JSON of a policy or generic table, from the `field` of the answer. Raises `CliError`: `NotThere`
        if there is none."""
        path = ("namespaces", self.joined(namespace), collection, name)
        return mapping(await (await self._native()).send("GET", *path, has=field), field)

    async def _native(self) -> ApiClient:
        """Returns the client for Polaris's own endpoints of the catalog."""
        await self.client()
        return ApiClient(self._exchange, _below(POLARIS_BASE, self._prefix), FOREIGN)

    async def _inner(self, namespace: Namespace) -> list[Namespace]:
        """Returns the namespaces directly in a namespace, sorted, without any others that the server lists. Raises
        `CliError`, also if there are too many."""
        query = {"parent": self.joined(namespace)} if namespace else {}
        depth = len(namespace) + 1
        found: set[Namespace] = set()
        async for page in self._pages(await self.client(), ("namespaces",), query, "namespaces"):
            listed = (texts({"levels": item}, "levels") for item in sequence(page, "namespaces"))
            found |= {item for item in listed if len(item) == depth and item[:-1] == namespace and all(item)}
            self._check_count(len(found))
        return sorted(found)

    async def _names(self, namespace: Namespace, kind: str, api: ApiClient) -> Sequence[str]:
        """Returns the names of a kind of objects in a namespace, sorted. Raises `CliError`, also for too many, and as
        `NotThere` for the status 404."""
        found: set[str] = set()
        path = ("namespaces", self.joined(namespace), kind)
        async for page in self._pages(api, path, {}, "identifiers"):
            found |= {name for item in objects(page, "identifiers") if (name := optional_text(item, "name"))}
            self._check_count(len(found))
        return sorted(found)

    def _check_count(self, count: int) -> None:
        """Raises `CliError` for more than `MAX_NAMES` names in a list."""
        if count > MAX_NAMES:
            raise CliError(
                f"a list of the catalog {self._warehouse!r} at the source has more than {MAX_NAMES:,} names, "
                f"and is {LEFT_OUT}"
            )

    async def _pages(
        self, api: ApiClient, path: Sequence[str], query: Mapping[str, str], has: str
    ) -> AsyncIterator[JsonObject]:
        """Yields the pages of a list. Raises `CliError` as `ApiClient.send` does, if there are too many pages, and for
        a token that is malformed or arrived before, with which the list would have no end."""
        token = ""
        seen: set[str] = set()
        for _ in range(MAX_PAGES):
            page = await api.send("GET", *path, has=has, query={**query, "pageToken": token, "pageSize": PAGE_SIZE})
            yield page
            following = page.get("next-page-token")
            if following is None or following == "":
                return
            if not isinstance(following, str) or len(following) > MAX_TOKEN or following in seen:
                raise CliError(
                    f"the server repeats a page token of {'/'.join(path)}, or it is malformed: this list is {LEFT_OUT}"
                )
            seen.add(token := following)
        raise CliError(f"the list {'/'.join(path)} at the source has more than {MAX_PAGES:,} pages, and is {LEFT_OUT}")

    async def _load(self, namespace: Namespace, name: str, kind: str) -> SourceTable:
        """Loads a table or view; one that can't be loaded has the problem."""
        view = kind == "views"
        try:
            return await self.load(namespace, name, view=view)
        except CliError as error:
            return SourceTable(namespace, name, None, f"it can't be loaded: {error}", view)

    async def load(self, namespace: Namespace, name: str, *, view: bool) -> SourceTable:
        """Loads a table or view, with the metadata file and the UUID; one that is not in the response is None. Raises
        `CliError`: `NotThere` if there is none."""
        api = await self.client()
        path = ("namespaces", self.joined(namespace), "views" if view else "tables", name)
        query = {} if view else {"snapshots": "refs"}
        loaded = await api.send("GET", *path, has="metadata", query=query)
        metadata = mapping(loaded, "metadata")
        uuid = optional_text(metadata, "view-uuid" if view else "table-uuid")
        return SourceTable(namespace, name, optional_text(loaded, "metadata-location"), None, view, uuid)


def _below(base: str, prefix: str | None) -> str:
    """Returns a base path with the catalog's prefix after it."""
    return base if not prefix else f"{base}/{quote(prefix, safe='/')}"
