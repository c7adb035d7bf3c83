"""The demo's own judgement: it must not say that all is well when it is not."""

import datetime
from collections import Counter
from decimal import Decimal

import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from tools.demo import checks, receipts

ROWS = pa.table(
    {
        "key": pa.array([1, 2, 3], pa.int64()),
        "price": pa.array([Decimal("1.10"), None, Decimal("2.20")], pa.decimal128(15, 2)),
        "name": pa.array(["a", "bé", None], pa.string()),
        "day": pa.array([datetime.date(1970, 1, 2), datetime.date(1970, 1, 11), None], pa.date32()),
    }
)


def test_totals_are_exact_sums_of_numbers_lengths_and_days() -> None:
    assert checks.of_arrow(ROWS) == checks.Totals(
        3, {"key": Decimal(6), "price": Decimal("3.30"), "name": Decimal(3), "day": Decimal(11)}
    )


def test_an_empty_table_sums_to_nothing() -> None:
    assert checks.of_arrow(ROWS.slice(0, 0)) == checks.Totals(0, dict.fromkeys(ROWS.column_names, Decimal(0)))


def test_equal_totals_pass() -> None:
    checks.compare("t", checks.of_arrow(ROWS), checks.of_arrow(ROWS.take([2, 0, 1])))


@pytest.mark.parametrize(
    ("found", "difference"),
    [
        (ROWS.slice(1), "2 rows, not 3"),
        (ROWS.drop_columns(["day"]), "columns key, price, name, not key, price, name, day"),
        (ROWS.select(["price", "key", "name", "day"]), "columns price, key, name, day, not"),
        (ROWS.set_column(0, "key", pa.array([1, 2, 4], pa.int64())), "the sum over key is 7, not 6"),
        (ROWS.set_column(2, "name", pa.array(["a", "b", None])), "the sum over name is 2, not 3"),
    ],
)
def test_a_difference_is_a_mismatch_that_names_it(found: pa.Table, difference: str) -> None:
    with pytest.raises(checks.Mismatch, match=f"^t: .*{difference}"):
        checks.compare("t", checks.of_arrow(found), checks.of_arrow(ROWS))


def test_the_receipts_are_those_of_the_files_that_were_current() -> None:
    receipts.compare("t", Counter(["a", "b"]), ["b", "a"])


@pytest.mark.parametrize(
    ("with_receipt", "difference"),
    [
        (["a"], r"without one: \['b'\]"),
        (["a", "b", "c"], r"too many: \['c'\]"),
        (["a", "b", "b"], r"too many: \['b'\]"),
    ],
)
def test_a_missing_extra_or_double_receipt_is_a_mismatch(with_receipt: list[str], difference: str) -> None:
    with pytest.raises(checks.Mismatch, match=difference):
        receipts.compare("t", Counter(with_receipt), ["a", "b"])
