"""Where a delegation service keeps its tasks and markers (docs/design/tasks.md#delegation)."""

from dataclasses import replace

from arco_catalog.protocol.catalog import Catalog
from arco_catalog.state.access import Caches
from arco_catalog.state.files import FileCache
from arco_catalog.state.paths import SERVICE

CACHE_BYTES = 1 << 20


def service_state(catalog: Catalog) -> Catalog:
    """Returns the state of a delegation service in the store that `catalog` has open: at the store's root, beside the
    folders of catalogs, with separate caches."""
    return replace(catalog, paths=SERVICE, caches=Caches.of(CACHE_BYTES), files=FileCache(CACHE_BYTES))
