"""`arco plan`: what a scan reads, and what rules out the rest; and how its condition is read."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arco_catalog.cli.errors import CliError
from arco_catalog.cli.where import parse_where
from arco_catalog.iceberg.expressions.expression_json import parse_expression
from arco_catalog.iceberg.json import JsonObject, JsonValue, loads
from arco_catalog.iceberg.manifests import FieldSummary
from arco_catalog.operations.create import create_view
from tests.cli.in_process import arco
from tests.cli.test_operator import catalog_in, output
from tests.support.scanned_tables import Manifest, ScannedTable, commit_of, entry
from tools.support.catalog_fixture import CatalogFixture
from tools.support.request_bodies import view_request


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = 1", {"type": "eq", "term": "a", "value": 1}),
        ("a.b <> -1.5e3", {"type": "not-eq", "term": "a.b", "value": -1500.0}),
        ("\"my column\" >= 'it''s'", {"type": "gt-eq", "term": "my column", "value": "it's"}),
        ("`q`<DATE '2026-11-01'", {"type": "lt", "term": "q", "value": "2026-11-01"}),
        ("a is null", {"type": "is-null", "term": "a"}),
        ("a IS NOT NaN", {"type": "not-nan", "term": "a"}),
        ("a IN (1, 2,3)", {"type": "in", "term": "a", "values": [1, 2, 3]}),
        ("a NOT IN ('x')", {"type": "not-in", "term": "a", "values": ["x"]}),
        ("a LIKE 'ab%'", {"type": "starts-with", "term": "a", "value": "ab"}),
        ("a NOT LIKE 'ab%'", {"type": "not-starts-with", "term": "a", "value": "ab"}),
        ("a = true", {"type": "eq", "term": "a", "value": True}),
        ("TRUE", True),
        (
            "NOT (a = 1 OR b = 2) AND c = 3",
            {
                "type": "and",
                "left": {
                    "type": "not",
                    "child": {
                        "type": "or",
                        "left": {"type": "eq", "term": "a", "value": 1},
                        "right": {"type": "eq", "term": "b", "value": 2},
                    },
                },
                "right": {"type": "eq", "term": "c", "value": 3},
            },
        ),
        (
            "a BETWEEN 1 AND 2 OR FALSE",
            {
                "type": "or",
                "left": {
                    "type": "and",
                    "left": {"type": "gt-eq", "term": "a", "value": 1},
                    "right": {"type": "lt-eq", "term": "a", "value": 2},
                },
                "right": False,
            },
        ),
    ],
)
def test_a_condition_is_read(text: str, expected: JsonValue) -> None:
    assert parse_where(text) == expected
    parse_expression(expected)


@pytest.mark.parametrize(
    "text",
    [
        *("", "a", "a =", "= 1", "a = 1 b", "a = 'x", "a == 1", "a IN ()", "a IN (1", "a IS 1", "a LIKE '%x'"),
        *("a LIKE 1", "(a = 1", "a NOT = 1", "a = b", "NOT", "a = 1; DROP TABLE t", "(" * 200 + "a = 1" + ")" * 200),
    ],
)
def test_another_text_is_refused(text: str) -> None:
    with pytest.raises(CliError, match="--where"):
        parse_where(text)


@given(st.text("ab=<>()'\" 1,.%`ANDORNTILKE", max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        parse_expression(parse_where(text))
    except CliError:
        return


@pytest.fixture
async def fixture(folder: Path) -> CatalogFixture:
    """The table `db.t`, partitioned by `x`, with ten files in two manifests, and one of them without summaries."""
    made = catalog_in(folder)
    await made.namespace("db")
    fields: JsonObject = {"fields": [{"source-id": 1, "name": "x", "transform": "identity"}]}
    more: JsonObject = {"partition-spec": fields}
    metadata = loads((await made.table("t", None, **more)).metadata)
    assert isinstance(metadata, dict)
    table = ScannedTable(made.store, str(metadata["location"]), root=f"file://{folder}/")

    def manifest(first: int) -> Manifest:
        files = [
            entry(f"{table.location}/{number}", x=(number, number), partition={"x": number})
            for number in range(first, first + 5)
        ]
        low, high = (number.to_bytes(8, "little") for number in (first, first + 4))
        summaries = [FieldSummary(contains_null=False, contains_nan=False, lower_bound=low, upper_bound=high)]
        return Manifest(files, partition={"x": "long"}, summaries=summaries)

    await made.commit(commit_of(await table.snapshot(1, [manifest(0), manifest(5)])))
    return made


async def test_what_a_scan_reads_is_shown_with_what_rules_out_the_rest(fixture: CatalogFixture, folder: Path) -> None:
    shown = await output(folder, "plan", "db.t", "--where", "x IN (1, 2)")
    assert shown.splitlines() == [
        "snapshot      1",
        "manifests     1 read of 2",
        "files         2 read of 10",
        "ruled out     5 by the partitions of their manifests",
        "ruled out     3 by their partition",
        "match whole   2 files, by their partition",
        "rows          20 in 200 bytes, before the filter",
        "delete files  0 read of 0",
    ]
    whole = json.loads(await output(folder, "plan", "db.t", "--json"))
    assert whole["data"]["files"]["read"] == whole["data"]["files"]["match-whole"] == 10


async def test_a_table_without_snapshots_and_a_wrong_condition_are_shown(fixture: CatalogFixture, folder: Path) -> None:
    await fixture.table("empty")
    assert (await output(folder, "plan", "db.empty")).splitlines()[:2] == [
        "snapshot      none",
        "manifests     0 read of 0",
    ]
    for arguments in (("db.t", "--where", "y = 1"), ("db.t", "--where", "x ="), ("db.absent",)):
        ended = await arco("plan", *arguments, "--store", f"file:{folder}")
        assert ended.code != 0


async def test_a_date_or_time_is_not_compared_with_a_number(fixture: CatalogFixture, folder: Path) -> None:
    columns: list[JsonValue] = [
        {"id": number, "name": name, "required": False, "type": type_}
        for number, (name, type_) in enumerate({"day": "date", "at": "timestamptz", "n": "long"}.items(), 1)
    ]
    await fixture.table("dated", None, schema={"type": "struct", "fields": columns})

    for where, problem in {
        "day = 3": "The column 'day' is a date, and is compared with the number 3",
        "day IN ('2024-01-01', 5)": "The column 'day' is a date, and is compared with the number 5",
        "n = 1 OR NOT at IN (5, 6)": "The column 'at' is a timestamptz, and is compared with the number 5",
        "n = 'x'": "for the column 'n'",
        "day = '3'": "for the column 'day'",
    }.items():
        ended = await arco("plan", "db.dated", "--where", where, "--store", f"file:{folder}")
        assert (ended.code, problem in ended.err) == (1, True), ended
    assert await output(folder, "plan", "db.dated", "--where", "day = DATE '2026-11-01' AND n = 3 AND at IS NULL")


@pytest.mark.parametrize("command", ["plan", "lineage"])
async def test_a_view_is_named_as_one(fixture: CatalogFixture, folder: Path, command: str) -> None:
    await create_view(fixture.session(view_request(), path="/create/v"), ("db",), view_request())

    ended = await arco(command, "db.v", "--store", f"file:{folder}")

    assert (ended.code, ended.err) == (
        1,
        "arco: db.v is a view: name a table, such as one that its query reads\n",
    )
