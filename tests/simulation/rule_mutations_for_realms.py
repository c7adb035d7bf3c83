"""The code with one rule on a realm's catalogs left out: the simulation must find each
(docs/design/access.md#rule-11)."""

from collections.abc import Sequence
from contextlib import nullcontext

import pytest

from arco_catalog.http import realms
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.management import catalog_drops, catalog_undrop, catalogs
from arco_catalog.planning import purge
from arco_catalog.planning.attempt import Attempt
from arco_catalog.state.catalog_state import CatalogState
from arco_catalog.state.index import Edits, Index
from arco_catalog.state.needs import Needs, Steps
from arco_catalog.state.realm import CatalogEntry, catalog_key, find_catalog
from arco_catalog.state.tombstone import Tombstone
from arco_catalog.upkeep.purge import executor


def a_name_removed_from_any_catalog(patch: pytest.MonkeyPatch) -> None:
    def remove(self: catalog_drops._Remove, index: Index, attempt: Attempt) -> Steps[tuple[Edits, JsonObject | None]]:
        key = catalog_key(self.entry.name)
        yield Needs(keys=[key])
        return ({} if find_catalog(index, self.entry.name) is None else {key: None}), None

    patch.setattr(catalog_drops._Remove, "edits", remove)


def a_change_by_rights_on_a_predecessor(patch: pytest.MonkeyPatch) -> None:
    def whichever(index: Index, name: str, entity: str) -> CatalogEntry:
        return catalogs.existing_catalog(index, name)

    patch.setattr(catalogs, "_same_catalog", whichever)


def a_catalog_closed_over_its_purges(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(catalog_drops, "unfinished_purges", lambda index: [])


def purges_that_pass_a_closed_registry(patch: pytest.MonkeyPatch) -> None:
    def always_open(index: Index) -> Steps[None]:
        yield from ()

    patch.setattr(purge, "require_open", always_open)
    patch.setattr(executor, "require_open", always_open)


def an_undrop_that_goes_on_purging(patch: pytest.MonkeyPatch) -> None:
    rightly = catalog_drops.unfinished_purges

    def of_an_open_catalog(index: Index) -> Sequence[Tombstone]:
        return [] if CatalogState.of(index).is_closed else rightly(index)

    patch.setattr(catalog_drops, "unfinished_purges", of_an_open_catalog)


def a_drop_by_an_id_of_before_the_undrop(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(CatalogState, "former", property(lambda self: ()))


def segments_of_a_cached_head_believed_to_be_there(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(realms, "suppress", lambda *errors: nullcontext())


def an_undrop_at_a_location_that_was_taken(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(catalog_undrop, "_require_apart", lambda entry, other: None)
