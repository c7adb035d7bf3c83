"""A purge beside other tables reads what has changed since the last one (docs/design/purge.md#rule-27)."""

from arco_catalog.state.file_directories import SHARDS
from tools.bench.purge_neighbours import measure

TABLES, MANIFESTS, CHANGED = 120, 20, 3
OTHER_CALLS = 110
"""Calls of a purge that reads no other table, without those for shards, and for pages of the registry."""


async def test_a_purge_costs_no_more_than_reading_the_tables_that_have_changed() -> None:
    first, second, third = [purge.calls for purge in await measure(TABLES, MANIFESTS, CHANGED)]

    of_a_table = MANIFESTS + 3  # pointer, metadata file and manifest list
    assert first > TABLES * of_a_table
    assert second < SHARDS + OTHER_CALLS
    assert third < SHARDS + OTHER_CALLS + CHANGED * (of_a_table + 3)  # shards are written
