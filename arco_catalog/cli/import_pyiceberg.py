"""Tables of a catalog that PyIceberg reads: Hive, Glue, SQL (JDBC), REST as Nessie, Polaris and others speak it.

PyIceberg blocks, and its clients are not all made for several threads: each thread has a catalog of its own. Alone in
importing PyIceberg, which comes with the extra `import`.
"""

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
from arco_catalog.upkeep.importing import SourceTable

T = TypeVar("T")

THREADS = 4
AT_ONCE = 16


class PyIcebergSource:
    """A catalog by its name in PyIceberg's configuration, and properties that go before those. Only tables in `only`, a
    namespace, are asked for."""

    def __init__(self, name: str, properties: Mapping[str, str], only: Namespace = ()) -> None:
        self._name = name
        self._properties = properties
        self._only = only
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="import")
        self._own = threading.local()

    async def tables(self) -> AsyncIterator[SourceTable]:
        """See `Source`. What it lists and can't load has its problem told."""
        try:
            await self._ask(lambda catalog: catalog)
            namespaces = await self._namespaces()
        except Exception as error:  # whatever the client of a foreign catalog raises
            raise CliError(f"can't read the catalog {self._name!r}: {_text(error)}") from error
        for namespace in namespaces:
            for table in await self._tables_in(namespace):
                yield table

    async def properties_of(self, namespace: Namespace) -> Mapping[str, str]:
        """See `Source`. A level that the other catalog does not have by itself has none. Raises `Failure`."""
        try:
            return await self._ask(lambda catalog: dict(catalog.load_namespace_properties(namespace)))
        except NoSuchNamespaceError:
            return {}
        except Exception as error:  # as above
            raise CliError(f"can't read the properties of {'.'.join(namespace)}: {_text(error)}") from error

    async def _namespaces(self) -> Sequence[Namespace]:
        """All namespaces, or `only` and what lies in it."""
        pending: list[Namespace] = [self._only] if self._only else await self._inner(())
        found: list[Namespace] = []
        while pending:
            namespace = pending.pop(0)
            found.append(namespace)
            pending = [*(inner for inner in await self._inner(namespace) if len(inner) > len(namespace)), *pending]
        return found

    async def _inner(self, namespace: Namespace) -> list[Namespace]:
        return sorted(tuple(levels) for levels in await self._ask(lambda catalog: catalog.list_namespaces(namespace)))

    async def _tables_in(self, namespace: Namespace) -> Sequence[SourceTable]:
        try:
            listed = await self._ask(lambda catalog: catalog.list_tables(namespace))
        except Exception as error:  # as above: the other namespaces go on
            return [SourceTable(namespace, "*", None, f"its tables can't be listed: {_text(error)}")]
        names = sorted(identifier[-1] for identifier in listed)
        loaded: list[SourceTable] = []
        for start in range(0, len(names), AT_ONCE):
            loaded += await gather(*(self._load(namespace, name) for name in names[start : start + AT_ONCE]))
        return [*loaded, *await self._views_in(namespace)]

    async def _load(self, namespace: Namespace, name: str) -> SourceTable:
        try:
            location = await self._ask(lambda catalog: catalog.load_table((*namespace, name)).metadata_location)
        except Exception as error:
            return SourceTable(namespace, name, None, f"it can't be loaded: {_text(error)}")
        return SourceTable(namespace, name, location)

    async def _views_in(self, namespace: Namespace) -> Sequence[SourceTable]:
        """PyIceberg does not tell where a view's metadata is."""
        try:
            views = await self._ask(lambda catalog: catalog.list_views(namespace))
        except NotImplementedError:  # most of its catalogs have none
            return ()
        except Exception as error:  # as above
            return [SourceTable(namespace, "*", None, f"its views can't be listed: {_text(error)}")]
        problem = "it is a view, and PyIceberg does not tell its metadata file: register it by hand (--view)"
        return [SourceTable(namespace, view[-1], None, problem) for view in sorted(views)]

    async def _ask(self, what: Callable[[Catalog], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, lambda: what(self._catalog()))

    def _catalog(self) -> Catalog:
        """This thread's."""
        if not hasattr(self._own, "catalog"):
            self._own.catalog = load_catalog(self._name, **self._properties)
        catalog: Catalog = self._own.catalog
        return catalog


def _text(error: Exception) -> str:
    return f"{error}" or type(error).__name__
