"""A client pins its session to one consistent cut: it reads each table as it was at that instant, whatever is committed
later (docs/resolve.md#pin-a-session)."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from pyiceberg.catalog import Catalog, load_catalog

from arco_catalog import cuts
from arco_catalog.cuts import Cut, CutError, read_cut
from arco_catalog.embed import RunningCatalog
from arco_catalog.http import resolve as resolving

pytest_plugins = ["arco_catalog.testing"]
COLUMNS = pa.schema([("id", pa.int64())])


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": [*ids]}, COLUMNS)


@pytest.fixture
def catalog(arco_on_files: RunningCatalog) -> Catalog:
    """`db.orders` with a row, and `db.items` without one."""
    catalog = load_catalog("arco", **arco_on_files.settings)
    catalog.create_namespace("db")
    catalog.create_table("db.orders", COLUMNS).append(rows(1))
    catalog.create_table("db.items", COLUMNS)
    return catalog


def cut_of(server: RunningCatalog, *names: str, tries: int = 5) -> Cut:
    return read_cut(server.uri, server.warehouse, names, tries=tries)


def test_tables_are_read_as_they_were_at_the_cut(arco_on_files: RunningCatalog, catalog: Catalog) -> None:
    cut = cut_of(arco_on_files, "db.orders", "db.items")
    for name in ("db.orders", "db.items"):
        catalog.load_table(name).append(rows(2))

    def read(name: str, row_filter: str = "true") -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = cut.scan(catalog.load_table(name), row_filter).to_arrow().to_pylist()
        return found

    assert (read("db.orders"), read("db.orders", "id > 1"), read("db.items")) == ([{"id": 1}], [], [])
    later = cut_of(arco_on_files, "db.orders", "db.items")
    assert sorted(row["id"] for row in later.scan(catalog.load_table("db.orders")).to_arrow().to_pylist()) == [1, 2]
    assert later.snapshot_id("db.items") == catalog.load_table("db.items").metadata.current_snapshot_id


def test_states_that_exceed_one_answer_are_loaded_in_parts_first(
    arco_on_files: RunningCatalog, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resolving, "MAX_RESPONSE_BYTES", 1_500)
    real, sent = cuts._Endpoint.send, list[bool]()

    def send(endpoint: Any, items: Any, *, consistent: bool = False) -> dict[str, Any]:
        sent.append(consistent)
        return real(endpoint, items, consistent=consistent)

    monkeypatch.setattr(cuts._Endpoint, "send", send)
    whole = cut_of(arco_on_files, "db.orders", "db.items")
    assert whole.snapshots == {
        ("db", "orders"): catalog.load_table("db.orders").metadata.current_snapshot_id,
        ("db", "items"): None,
    }
    assert sent == [True, False, False, True]


def test_a_name_without_a_table_is_an_error(arco_on_files: RunningCatalog, catalog: Catalog) -> None:
    with pytest.raises(LookupError, match=r"There is no table db\.none"):
        cut_of(arco_on_files, "db.orders", "db.none")
    with pytest.raises(CutError, match="at least one item"):
        cut_of(arco_on_files)


def replies(*bodies: Mapping[str, object] | CutError) -> object:
    """A catalog that gives these answers, one after the other."""
    left = [*bodies]

    def send(endpoint: object, items: Sequence[object], *, consistent: bool = False) -> Mapping[str, object]:
        body = left.pop(0)
        if isinstance(body, CutError):
            raise body
        return body

    return send


CHANGING = CutError("some changed", "ServiceUnavailableException", 0.0)
EMPTY: Mapping[str, object] = {
    "identifier": ["db", "t"],
    "status": "loaded",
    "etag": "x",
    "result": {"object-type": "table", "table": {"metadata": {"current-snapshot-id": -1}}},
}


def test_tables_that_change_too_often_are_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuts._Endpoint, "send", replies(CHANGING, CHANGING, {"relations": [EMPTY], "consistent": True}))
    assert read_cut("http://x", "wh", ["db.t"]).snapshots == {("db", "t"): None}

    monkeypatch.setattr(cuts._Endpoint, "send", replies(CHANGING, CHANGING, {}))
    with pytest.raises(CutError, match="some changed"):
        read_cut("http://x", "wh", ["db.t"], tries=2)


def test_a_catalog_that_ignores_the_field_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuts._Endpoint, "send", replies({"relations": [EMPTY]}))
    with pytest.raises(CutError, match="makes no consistent cuts"):
        read_cut("http://x", "wh", ["db.t"])


def test_a_catalog_that_loads_nothing_is_not_called_forever(monkeypatch: pytest.MonkeyPatch) -> None:
    rest = {"relations": [], "unprocessed": {"relations": [{"identifier": ["db", "t"]}]}}
    too_large = CutError("too large", "AnswerTooLargeException")
    monkeypatch.setattr(cuts._Endpoint, "send", replies(too_large, *[rest] * 3))
    with pytest.raises(CutError, match="loaded none of the 1 tables"):
        read_cut("http://x", "wh", ["db.t"])


def test_spark_reads_each_table_at_its_snapshot() -> None:
    cut = Cut({("db", "orders"): 7, ("db", "in`ner", "items"): None})

    assert cut.spark_table("rest", "db.orders") == "`rest`.`db`.`orders` VERSION AS OF 7"
    assert cut.spark_views("rest") == [
        "CREATE OR REPLACE TEMPORARY VIEW `orders` AS SELECT * FROM `rest`.`db`.`orders` VERSION AS OF 7",
        "CREATE OR REPLACE TEMPORARY VIEW `items` AS SELECT * FROM "
        "(SELECT * FROM `rest`.`db`.`in``ner`.`items` WHERE false)",
    ]
    with pytest.raises(ValueError, match="Several tables have the name orders"):
        Cut({("a", "orders"): 1, ("b", "orders"): 2}).spark_views("rest")
    with pytest.raises(KeyError):
        cut.snapshot_id("db.other")


def test_the_module_needs_nothing_but_the_standard_library() -> None:
    source = Path(cuts.__file__).read_text()
    assert "arco_catalog" not in source.partition('"""\n\n')[2]
