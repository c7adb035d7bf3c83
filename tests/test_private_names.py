"""Names that other projects do not publish, which may change in any version: where they are used, and the bounds of the
versions. The locks have the newest of these, with which all tests run."""

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.support.environment import PROJECT

SHIPPED = ("arco_catalog", "storage_backends", "lambda", "azure_functions", "reconciler")

USED = {
    ("arco_catalog/protocol/eager_tasks.py", "_enter_task"): "python 3.11",
    ("arco_catalog/protocol/eager_tasks.py", "_leave_task"): "python 3.11",
    ("arco_catalog/cli/connections.py", "_unset_keepalive_if_required"): "uvicorn",
    ("arco_catalog/cli/parent.py", "_exit"): "published",  # os._exit is documented
    ("arco_catalog/prove/campaign.py", "_retry_connection"): "aiohttp",
    ("arco_catalog/upkeep/fsck/codes.py", "_value_"): "published",  # the documentation of enum has it
    ("reconciler/maintain/iceberg.py", "_jvm"): "pyspark",
    ("reconciler/system/opened.py", "_stage"): "pyiceberg",
    ("reconciler/system/rest.py", "_split_identifier_for_path"): "pyiceberg",
    ("storage_backends/azure/sdk.py", "_credential_policy"): "azure-storage-blob",
    ("storage_backends/azure/sdk.py", "_pipeline"): "azure-storage-blob",
    ("storage_backends/azure/sdk.py", "_retry_connection"): "aiohttp",
    ("storage_backends/s3/sdk.py", "_retry_connection"): "aiohttp",
}
"""The project of each name, by the file that uses it."""
OVERRIDDEN = ("aiobotocore",)
"""Projects with a private method that a class of ours overrides."""


def names_defined_in(tree: ast.AST) -> Iterator[str]:
    """The private names that a file of ours gives to functions, classes and attributes."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name, ctx=ast.Store()):
                yield name
            case ast.AnnAssign(target=ast.Name(id=name)) | ast.Name(id=name, ctx=ast.Store()):
                yield name


def private_names_used_in(tree: ast.AST) -> Iterator[str]:
    """The private attributes that a file reads or sets, named tuples' own methods left out."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
            yield node.attr


def foreign_names(root: Path) -> set[tuple[str, str]]:
    """The private names that files of ours use, and that no file of ours defines."""
    files = [file for folder in SHIPPED for file in sorted((root / folder).rglob("*.py"))]
    trees = {file.relative_to(root).as_posix(): ast.parse(file.read_bytes()) for file in files}
    ours = {name for tree in trees.values() for name in names_defined_in(tree)} | {"_replace", "_asdict", "_fields"}
    return {(file, name) for file, tree in trees.items() for name in private_names_used_in(tree) if name not in ours}


def test_private_names_of_other_projects_are_used_where_the_list_has_them() -> None:
    assert foreign_names(PROJECT) == USED.keys()


def test_a_private_name_that_is_not_listed_is_found(tmp_path: Path) -> None:
    module = tmp_path / "arco_catalog" / "new.py"
    module.parent.mkdir()
    module.write_text("import asyncio\nasyncio.tasks._new_name()\nclass A:\n    def _own(self) -> None: self._own()\n")
    assert foreign_names(tmp_path) == {("arco_catalog/new.py", "_new_name")}


@pytest.mark.parametrize("project", sorted({*USED.values(), *OVERRIDDEN} - {"python 3.11", "published"}))
def test_each_version_with_private_names_is_bounded(project: str) -> None:
    extras = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    needed = [each for extra in extras.values() for each in extra if each.split(">")[0].split("[")[0] == project]
    bounded = [each for each in needed if "<" in each]
    assert bounded
    assert needed == bounded or project == "pyiceberg", needed  # `import` reads catalogs by its public names alone
