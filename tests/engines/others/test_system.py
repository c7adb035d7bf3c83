"""The tables of `system`, as DuckDB reads them. It knows no views of Iceberg's: it is asked the text."""

import pytest
from pyiceberg.types import IcebergType, LongType

from reconciler.system.questions import SAVINGS, Question
from tests.engines.asking import ASKED, expected, ordered, stale_at_once
from tests.engines.lake import Lake
from tests.engines.shell import Sql

WORDS: dict[IcebergType, str] = {LongType(): "BIGINT"}
"""DuckDB's type of a column. Times are texts: its Python library wants another one for them."""


@pytest.mark.parametrize("question", ASKED, ids=lambda question: question.name)
def test_duckdb_answers_what_pyiceberg_finds(duckdb_on_system: Sql, telling_lake: Lake, question: Question) -> None:
    answer = expected(telling_lake, question)
    assert answer
    columns = (f'CAST("{name}" AS {WORDS.get(type_, "VARCHAR")})' for name, type_ in question.columns)
    of_duckdb = duckdb_on_system(f"SELECT {', '.join(columns)} FROM ({stale_at_once(question)}) answer")
    assert ordered(of_duckdb) == answer


def test_what_policies_saved_can_be_asked_where_none_acted_yet(duckdb_on_system: Sql) -> None:
    assert duckdb_on_system(SAVINGS.text()) == []
