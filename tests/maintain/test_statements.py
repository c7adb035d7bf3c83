"""Texts of users in Spark's SQL: one place of the product makes statements, each name and text in them is quoted, and
no session substitutes variables."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.__main__ import JOBS
from reconciler.maintain.calls import Call, Procedure

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = ("reconciler", "arco_catalog", "storage_backends", "lambda", "azure_functions")
SQL = frozenset({"sql", "expr", "selectExpr", "createOrReplaceTempView", "registerJavaFunction"})
"""Methods of PySpark whose texts are SQL."""
CONDITIONS = frozenset({"row_filter", "overwrite_filter", "delete_filter"})
"""Arguments of PyIceberg's that are conditions."""
CONTEXTS = frozenset({"SparkContext", "SparkSession"})
TEXTS = st.text(st.sampled_from("ab.`'\"\\${}:;-/*\n\t\0é😀#@(),=>") | st.characters(codec="utf-8"), max_size=30)

_TOKEN = re.compile(r"`((?:[^`]|``)*)`|'((?:[^'\\]|\\.)*)'|([A-Za-z_.]+)|(=>|[(),])|\s+", re.DOTALL)


def calls() -> Iterator[tuple[str, ast.Call]]:
    """Every call in the product, with its file."""
    for room in PRODUCT:
        for file in sorted((ROOT / room).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.Call):
                    yield str(file.relative_to(ROOT)), node


def test_one_place_makes_statements() -> None:
    made = {
        (file, node.func.attr)
        for file, node in calls()
        if isinstance(node.func, ast.Attribute) and node.func.attr in SQL
    }
    assert made == {("reconciler/maintain/procedures.py", "sql")}


def test_only_maintenance_has_what_reads_sql() -> None:
    """All other jobs have Spark's contexts and RDDs alone, which read no text. Names of modules are written out."""
    having: set[str] = set()
    for room in PRODUCT:
        for file in sorted((ROOT / room).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text())):
                names = [each.name for each in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
                module = node.module or "" if isinstance(node, ast.ImportFrom) else ""
                if any(f"{module}.{name}".strip(".").startswith("pyspark.sql") for name in names):
                    having.add(str(file.relative_to(ROOT)))
    assert having == {"reconciler/maintain/job.py", "reconciler/maintain/procedures.py"}


def test_every_job_makes_its_context_where_substitution_is_off() -> None:
    for module, _ in JOBS.values():
        source = (ROOT / f"{module.replace('.', '/')}.py").read_text()
        assert "with spark_of(" in source, module


def test_conditions_on_system_tables_are_no_texts() -> None:
    """PyIceberg parses a condition that is a text: those of the product are expressions."""
    texts = [
        (file, keyword.arg)
        for file, node in calls()
        for keyword in node.keywords
        if keyword.arg in CONDITIONS and isinstance(keyword.value, ast.Constant | ast.JoinedStr)
    ]
    assert texts == []


def test_every_context_of_spark_is_made_without_substitution() -> None:
    made: set[str] = set()
    for file, node in calls():
        name = node.func.value if isinstance(node.func, ast.Attribute) else node.func
        if isinstance(name, ast.Name) and name.id in CONTEXTS:
            made.add(file)
    assert made == {"reconciler/session.py", "reconciler/purge.py", "reconciler/maintain/job.py"}
    for file in ("reconciler/session.py", "reconciler/purge.py"):
        assert "NO_SUBSTITUTION]" in (ROOT / file).read_text()
    assert "with spark_of(" in (ROOT / "reconciler/maintain/job.py").read_text()  # whose context the session takes


def tokens(statement: str) -> list[str]:
    """A statement as Spark reads it: names and texts without their quotes, and marked as such."""
    found: list[str] = []
    place = 0
    while place < len(statement):
        token = _TOKEN.match(statement, place)
        assert token is not None, statement[place:]
        name, text, word, sign = token.groups()
        if name is not None:
            found.append(f"name {name.replace('``', '`')}")
        elif text is not None:
            found.append("text " + re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL))
        elif word or sign:
            found.append(word or sign)
        place = token.end()
    return found


@given(table=st.lists(TEXTS, min_size=1, max_size=4), order=TEXTS, option=TEXTS, value=TEXTS)
def test_no_text_of_users_leaves_its_quotes(table: list[str], order: str, option: str, value: str) -> None:
    call = Call(Procedure.REWRITE_DATA_FILES, {"sort_order": order, "options": {option: value}})

    read = tokens(call.statement("arco", table))

    assert read[:5] == ["CALL", "name arco", ".system.rewrite_data_files", "(", "table"]
    named = read[read.index("table") + 2]
    assert named.startswith("text ")
    inner = [token.removeprefix("name ") for token in tokens(named.removeprefix("text ")) if token.startswith("name ")]
    assert inner == ["arco", *table]
    assert read[read.index("sort_order") + 2] == f"text {order}"
    options = read[read.index("options") + 2 :]
    assert options == ["map", "(", f"text {option}", ",", f"text {value}", ")", ")"]


@pytest.mark.parametrize("name", ["${spark:x}", "a`b", "it's", "a\\'b", "x -- y", "/*", "\n", "payroll${env:HOME}"])
def test_names_that_mean_something_to_a_parser_are_quoted_whole(name: str) -> None:
    read = tokens(Call(Procedure.EXPIRE_SNAPSHOTS, {}).statement("arco", ("db", name)))
    assert tokens(read[-2].removeprefix("text "))[-1] == f"name {name}"
