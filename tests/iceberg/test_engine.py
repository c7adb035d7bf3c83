"""Which engine a commit is by, as the summaries of its snapshots say."""

from dataclasses import replace

import pytest

from arco_catalog.iceberg.commit import SUMMARIES_READ, engine_of, parse_commit
from arco_catalog.iceberg.json import JsonObject


def commit(summary: JsonObject) -> JsonObject:
    snapshot: JsonObject = {
        "snapshot-id": 1,
        "timestamp-ms": 1,
        "manifest-list": "s3://b/m.avro",
        "summary": {"operation": "append", **summary},
    }
    return {"requirements": [], "updates": [{"action": "add-snapshot", "snapshot": snapshot}]}


@pytest.mark.parametrize(
    ("summary", "engine"),
    [
        ({"engine-name": "spark", "engine-version": "4.1.4"}, "spark/4.1.4"),
        ({"engine-name": "flink"}, "flink"),
        ({"trino_query_id": "20261122_030405_00001_abcde"}, "trino"),
        ({}, None),
        ({"engine-name": "\u202espark"}, None),
        ({"engine-name": "spark", "engine-version": "x" * 41}, None),
    ],
)
def test_a_snapshots_summary_names_its_engine(summary: JsonObject, engine: str | None) -> None:
    assert engine_of(parse_commit(commit(summary))) == engine


def test_a_commit_without_snapshots_has_no_engine() -> None:
    assert engine_of(parse_commit({"requirements": [], "updates": []})) is None


@pytest.mark.parametrize(("silent", "engine"), [(SUMMARIES_READ - 1, "spark"), (SUMMARIES_READ, None)])
def test_of_very_many_snapshots_the_first_are_asked(silent: int, engine: str | None) -> None:
    parsed, named = parse_commit(commit({})), parse_commit(commit({"engine-name": "spark"}))
    many = replace(parsed, updates=(*parsed.updates * silent, *named.updates))

    assert engine_of(many) == engine
