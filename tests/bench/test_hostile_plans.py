"""What `make bench-hostile_plans` measures, of a small table."""

from pathlib import Path

from tools.bench.hostile_plans import HEADINGS, measure
from tools.bench.hostile_tables import TABLES, HostileTable, TableFiles
from tools.support.entry_files import entry


def small(folder: Path) -> Path:
    """A table with two manifests of three files."""
    made = TableFiles(folder)
    made.add((entry(number, partition={"part": 1}) for number in range(3)), copies=2)
    return made.finish()


def test_eight_plans_of_a_table_at_once_are_measured() -> None:
    cells = [cell.strip() for cell in measure(HostileTable("small", small), requests=3).strip("|").split("|")]

    assert len(cells) == len(HEADINGS)
    assert cells[:2] == ["small", "8 x 200"]
    assert float(cells[-1]) > 0


def test_a_refusal_is_counted() -> None:
    table = HostileTable("small", small, {"filter": {"type": "eq", "term": "nowhere", "value": 1}})

    assert "| 8 x 400 |" in measure(table, requests=3)


def test_tables_have_names_of_their_own() -> None:
    assert len({table.name for table in TABLES}) == len(TABLES)
