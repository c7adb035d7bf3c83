"""Where records live is spelled in one module."""

import ast
import re
from pathlib import Path

from tools.support.environment import PROJECT

OURS = re.compile(
    r"(?<![a-z])_catalog/|iceberg_pointers|iceberg_idempotency|metadata_claims|core/(manifest|commits|index)"
)


def spelled_in(file: Path) -> bool:
    nodes = ast.walk(ast.parse(file.read_text()))
    texts = (node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))
    return any(OURS.search(text) for text in texts)


def test_one_module_spells_the_paths_of_records() -> None:
    rooms = ("arco_catalog", "lambda", "reconciler", "tools", "tests/support")
    files = [file for room in rooms for file in sorted((PROJECT / room).rglob("*.py"))]

    assert [file for file in files if spelled_in(file)] == [PROJECT / "arco_catalog" / "state" / "paths.py"]
