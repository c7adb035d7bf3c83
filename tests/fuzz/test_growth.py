"""Random programs of updates cost no more, turn for turn, on a larger table."""

import pytest

from arco_catalog.iceberg.refs import Refs
from tests.fuzz.growth import Step, check, run


def test_no_program_that_is_found_costs_more_on_a_larger_table() -> None:
    run(12)


def test_a_scan_for_each_update_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def scan(refs: Refs, snapshot_ids: set[int]) -> list[str]:
        return [name for name, ref in refs.stored().items() if ref["snapshot-id"] in snapshot_ids]

    monkeypatch.setattr(Refs, "of_snapshots", scan)
    with pytest.raises(AssertionError, match="more turns take"):
        check([Step("remove-snapshots", 0, 1)])
