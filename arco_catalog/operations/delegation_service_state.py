"""Opens the state of a delegation service in a store: the tasks and markers of the service
(docs/design/tasks.md#delegation)."""

from dataclasses import replace

from arco_catalog.protocol.catalog import Catalog
from arco_catalog.state.access import Caches
from arco_catalog.state.files import FileCache
from arco_catalog.state.paths import SERVICE

CACHE_BYTES = 1 << 20


def service_state(catalog: Catalog) -> Catalog:
    """Returns a `Catalog` by which the state of a delegation service is read and written, in the store that `catalog`
    has open: at the store's root, beside the folders of catalogs. It shares no cache with `catalog`."""
    return replace(catalog, paths=SERVICE, caches=Caches.of(CACHE_BYTES), files=FileCache(CACHE_BYTES))
