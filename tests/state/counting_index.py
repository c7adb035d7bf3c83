"""Indexes that count: what one is copied from, searched in and walked through is part of what work costs."""

from collections.abc import Mapping

import pytest

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state.index import Index, SegmentLookup, no_segments
from arco_catalog.state.segments import Directory
from tests.iceberg.counted import Fields, Items, Text


def count_indexes(patch: pytest.MonkeyPatch) -> None:
    """Makes every index that is made from now on count."""
    rightly = Index.__init__

    def counting(
        self: Index,
        edits: Mapping[str, JsonObject | None],
        directory: Directory | None = None,
        segment_lookup: SegmentLookup = no_segments,
        order: list[str] | None = None,
    ) -> None:
        if type(self) is Index and not isinstance(edits, Fields):
            edits = Fields(edits)
        rightly(self, edits, directory, segment_lookup, None if order is None else Items(order))

    patch.setattr(Index, "__init__", counting)


def keyed(entries: Mapping[str, JsonObject | None]) -> dict[str, JsonObject | None]:
    """The entries under keys that count comparisons."""
    return {Text(key): entry for key, entry in entries.items()}
