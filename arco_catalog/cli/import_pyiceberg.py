"""Reads the tables of a catalog through PyIceberg: Hive, Glue, SQL (JDBC), or REST as in Nessie, Polaris and others.

PyIceberg blocks, so it runs in threads, and not all of its clients are thread-safe, so each thread has its own catalog.
Of the other modules of arco_catalog only `collected_edges` imports PyIceberg, which the extra `import` installs."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import NoSuchNamespaceError

from arco_catalog.cli.errors import CliError
from arco_catalog.protocol.concurrency import gather
from arco_catalog.state.index import Namespace
from arco_catalog.upkeep.source_tables import SourceTable

T = TypeVar("T")

THREADS = 4
AT_ONCE = 16


class PyIcebergSource:
    """The source of an import that is another catalog, by the name that it has in PyIceberg's configuration;
    `properties` override that configuration. Only tables in the namespace `only` and below are read; () means all."""

    def __init__(self, name: str, properties: Mapping[str, str], only: Namespace = ()) -> None:
        self._name = name
        self._properties = properties
        self._only = only
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="import")
        self._own = threading.local()

    async def tables(self) -> AsyncIterator[SourceTable]:
        """Yields all tables and views of the chosen namespaces. A table that can't be loaded, and every view, has a
        problem instead of a location. If the tables or the views of a namespace can't be listed, it yields an entry
        with the name `*` and the problem, and goes on with other namespaces. That a catalog has no views at all is no
        problem. Raises `CliError` if the catalog or the list of namespaces can't be read."""
        try:
            await self._call(lambda catalog: catalog)
            namespaces = await self._namespaces()
        except Exception as error:  # whatever the client of a foreign catalog raises
            raise CliError(
                f"can't read the source catalog {self._name!r}: {_text(error)}; nothing was imported: check the name "
                "and properties in PyIceberg's configuration, or give properties by -P"
            ) from error
        for namespace in namespaces:
            for table in await self._tables_in(namespace):
                yield table

    async def properties_of(self, namespace: Namespace) -> Mapping[str, str]:
        """Returns the properties of a namespace of the source; none if the source has no such namespace, only
        namespaces below it. Raises `CliError` if they can't be read."""
        try:
            return await self._call(lambda catalog: dict(catalog.load_namespace_properties(namespace)))
        except NoSuchNamespaceError:
            return {}
        except Exception as error:  # as above
            raise CliError(
                f"can't read the properties of namespace {'.'.join(namespace)} in the source catalog: {_text(error)}; "
                "the command ends here, and with --apply the same command continues the import"
            ) from error

    async def _namespaces(self) -> Sequence[Namespace]:
        """Returns all namespaces, or `only` and those below it, each before its children."""
        pending: list[Namespace] = [self._only] if self._only else await self._inner(())
        found: list[Namespace] = []
        while pending:
            namespace = pending.pop(0)
            found.append(namespace)
            pending = [*(inner for inner in await self._inner(namespace) if len(inner) > len(namespace)), *pending]
        return found

    async def _inner(self, namespace: Namespace) -> list[Namespace]:
        """Returns the namespaces directly below one, sorted."""
        return sorted(tuple(levels) for levels in await self._call(lambda catalog: catalog.list_namespaces(namespace)))

    async def _tables_in(self, namespace: Namespace) -> Sequence[SourceTable]:
        """Returns the tables in a namespace, sorted, and the views. A table that can't be loaded is returned with the
        problem. If the tables can't be listed, returns only an entry with the name `*` and the problem."""
        try:
            listed = await self._call(lambda catalog: catalog.list_tables(namespace))
        except Exception as error:  # as above: the other namespaces go on
            return [SourceTable(namespace, "*", None, f"its tables can't be listed: {_text(error)}")]
        names = sorted(identifier[-1] for identifier in listed)
        loaded: list[SourceTable] = []
        for start in range(0, len(names), AT_ONCE):
            loaded += await gather(*(self._load(namespace, name) for name in names[start : start + AT_ONCE]))
        return [*loaded, *await self._views_in(namespace)]

    async def _load(self, namespace: Namespace, name: str) -> SourceTable:
        """Returns a table with the metadata file, or with the problem of loading it."""
        try:
            location = await self._call(lambda catalog: catalog.load_table((*namespace, name)).metadata_location)
        except Exception as error:
            return SourceTable(namespace, name, None, f"it can't be loaded: {_text(error)}")
        return SourceTable(namespace, name, location)

    async def _views_in(self, namespace: Namespace) -> Sequence[SourceTable]:
        """Returns each view with a problem, since PyIceberg has no location of its metadata; none if the source does
        not support views, and the name `*` with a problem if they can't be listed."""
        try:
            views = await self._call(lambda catalog: catalog.list_views(namespace))
        except NotImplementedError:  # many of its catalogs do not support views
            return ()
        except Exception as error:  # as above
            return [SourceTable(namespace, "*", None, f"its views can't be listed: {_text(error)}")]
        problem = (
            "it is a view, and PyIceberg does not have the location of its metadata: "
            "register it with arco register --view"
        )
        return [SourceTable(namespace, view[-1], None, problem) for view in sorted(views)]

    async def _call(self, what: Callable[[Catalog], T]) -> T:
        """Calls a function on PyIceberg's catalog in a thread, and returns its result."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, lambda: what(self._catalog()))

    def _catalog(self) -> Catalog:
        """Returns PyIceberg's catalog for the thread that calls this, loaded at the first use."""
        if not hasattr(self._own, "catalog"):
            self._own.catalog = load_catalog(self._name, **self._properties)
        catalog: Catalog = self._own.catalog
        return catalog


def _text(error: Exception) -> str:
    """Returns the text of an error; the name of the type if it has none."""
    return f"{error}" or type(error).__name__
