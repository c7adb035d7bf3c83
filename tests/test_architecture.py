"""Imports point one way only (docs/design/README.md#rooms-and-imports). A rule is a fact about one import; this file
lists the rules, holds the code to them, and shows that each of them catches a planted violation."""

import ast
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

# From the outermost room inwards: a room may import itself and the rooms on later lines.
ROOMS = (
    ("arco_catalog.testing",),
    ("lambda", "azure_functions", "reconciler", "arco_catalog.cli", "arco_catalog.embed", "arco_catalog.cuts"),
    ("arco_catalog.http",),
    ("arco_catalog.telemetry",),
    ("arco_catalog.upkeep",),
    ("arco_catalog.operations",),
    ("arco_catalog.tasks",),
    ("arco_catalog.authentication",),
    ("arco_catalog.protocol",),
    ("arco_catalog.vending",),
    ("arco_catalog.planning",),
    ("arco_catalog.state",),
    ("arco_catalog.config",),
    ("storage_backends",),
)
DATACLASSES = "storage_backends.lazy_dataclass"  # a form of the standard library's, for every module
PROVE = "arco_catalog.prove"  # a program for any catalog, which `arco prove` runs
SEMANTICS = "arco_catalog.iceberg"  # pure functions that every room of the catalog may use
UPKEEP = "arco_catalog.upkeep"  # programs that take longer than a request
# The part of the HTTP room that may import UPKEEP: the delegation service's own application, which submits purges to a
# program of that room and reports how far they are. It serves catalogs, not clients of a catalog.
SUBMITS_UPKEEP = "arco_catalog.http.delegation_service"
OUTSIDE = ("tests", "tools")  # look at everything; nothing that ships looks at them

CLOUD_SDKS = ("boto3", "botocore", "aiobotocore", "google", "gcloud", "azure", "obstore", "s3fs", "gcsfs", "adlfs")
HTTP_STACKS = ("starlette", "fastapi", "uvicorn", "mangum", "granian", "hypercorn", "httptools", "uvloop", "asgiref")
PLATFORM = "azure.functions"  # no client of a service: how the platform finds and calls the functions
HTTP_CLIENT = ("storage_backends.wire.http1", "httptools")  # who may parse answers, and with what
ENVIRONMENT = ("os.environ", "os.environb", "os.getenv")
# Who starts a process's work, and hands the environment on; the reconciler's, since each executor opens stores itself.
ENTRY_POINTS = (
    "lambda",
    "azure_functions",
    "arco_catalog.cli.program",
    "arco_catalog.embed",
    "reconciler.catalog_config",
)
# The modules that use PyIceberg, each for one command, and which modules import them.
PYICEBERG = {
    "arco_catalog.cli.import_pyiceberg": ("arco_catalog.cli.import_tables",),
    "arco_catalog.cli.collected_edges": ("arco_catalog.cli.lineage", "arco_catalog.cli.lineage_tree"),
}
HEAVY = ("pyiceberg", "pyarrow", "pydantic", "pyspark", "pandas", "numpy")
# What reaches beyond the process, or asks it for time or chance.
IMPURE = (
    *("asyncio", "concurrent", "fcntl", "glob", "http", "io", "mmap", "multiprocessing", "os", "pathlib", "select"),
    *("secrets", "shutil", "signal", "socket", "ssl", "subprocess", "tempfile", "threading", "urllib.request"),
    *("random", "sched", "time", "ulid"),
)
# Third-party modules of the semantics: they turn bytes into values and do nothing else.
PURE_LIBRARIES = ("orjson", "rfc8785")


@dataclass(frozen=True)
class Import:
    """`importer`, a module of ours, names `imported` on this line of this file."""

    importer: str
    imported: str
    file: Path
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.importer} imports {self.imported}"


def within(module: str, package: str) -> bool:
    """Whether `module` is `package` or lies in it."""
    return module == package or module.startswith(package + ".")


def room_of(module: str) -> str | None:
    rooms = [room for level in (*ROOMS, (SEMANTICS,), (PROVE,), OUTSIDE) for room in level]
    return next((room for room in rooms if within(module, room)), None)


def depth_of(room: str) -> int:
    return next(depth for depth, level in enumerate(ROOMS) if room in level)


def one_way(edge: Import) -> str | None:
    """The rule of rooms: left may import right, everything in the catalog may use the semantics, nothing else."""
    here, there = room_of(edge.importer), room_of(edge.imported)
    if here in OUTSIDE:
        return "tools run without the tests" if (here, there) == ("tools", "tests") else None
    if here is None and within(edge.imported, "arco_catalog"):
        return "the root package imports nothing of ours"
    if here is None or there is None or here == there:
        return None
    if there in OUTSIDE:
        return "what ships never imports tests, benches, tools or the demo"
    if here == PROVE:
        return "what tests any catalog imports nothing of this one"
    if there == PROVE:
        return None if here == "arco_catalog.cli" else "only a command starts what tests catalogs"
    if here == SEMANTICS:
        return "the Iceberg semantics import nothing of ours"
    if there == SEMANTICS:
        return "a store does not know what a table is" if here == "storage_backends" else None
    if depth_of(here) >= depth_of(there):
        return f"imports point one way only: {there} is not to the right of {here}"
    return None


def semantics_are_pure(edge: Import) -> str | None:
    if not within(edge.importer, SEMANTICS):
        return None
    if any(within(edge.imported, module) for module in IMPURE):
        return "the Iceberg semantics do no I/O and read no clock"
    top = edge.imported.partition(".")[0]
    if top in sys.stdlib_module_names or top in PURE_LIBRARIES or room_of(edge.imported) or top == "arco_catalog":
        return None
    return "the Iceberg semantics use plain values, and no library beyond the JSON ones"


def clouds_stay_behind_the_store(edge: Import) -> str | None:
    if within(edge.importer, "azure_functions") and within(edge.imported, PLATFORM):
        return None
    if within(edge.importer, "storage_backends") or not any(within(edge.imported, sdk) for sdk in CLOUD_SDKS):
        return None
    return "a cloud's SDK is imported in storage_backends only"


def protocols_know_no_http(edge: Import) -> str | None:
    if edge.importer == HTTP_CLIENT[0] and within(edge.imported, HTTP_CLIENT[1]):
        return None
    inner = (
        "arco_catalog.telemetry",
        UPKEEP,
        "arco_catalog.operations",
        "arco_catalog.authentication",
        "arco_catalog.protocol",
        "arco_catalog.vending",
        "arco_catalog.state",
        "storage_backends",
        SEMANTICS,
    )
    if any(within(edge.importer, room) for room in inner) and any(within(edge.imported, x) for x in HTTP_STACKS):
        return "protocols and state know nothing of ASGI"
    return None


def planning_is_pure(edge: Import) -> str | None:
    if not within(edge.importer, "arco_catalog.planning"):
        return None
    if any(within(edge.imported, module) for module in (*IMPURE, "storage_backends", "arco_catalog.state.access")):
        return "a plan is a function of values: it reads nothing, and no clock"
    return None


def a_cold_start_is_light(edge: Import) -> str | None:
    if edge.importer in PYICEBERG and within(edge.imported, "pyiceberg"):
        return None
    if edge.importer not in PYICEBERG.get(edge.imported, (edge.importer,)):
        return "PyIceberg is imported by `arco import catalog` and `arco lineage` alone"
    ships = within(edge.importer, "arco_catalog") or within(edge.importer, "storage_backends")
    if ships and any(within(edge.imported, library) for library in HEAVY):
        return "no data library on the path of a load or a commit (docs/design/budgets.md)"
    return None


def requests_are_short(edge: Import) -> str | None:
    serves_clients = within(edge.importer, "arco_catalog.http") and not within(edge.importer, SUBMITS_UPKEEP)
    if serves_clients and within(edge.imported, UPKEEP):
        return "a route of clients runs nothing that takes longer than a request"
    return None


def the_environment_is_read_at_the_edge(edge: Import) -> str | None:
    if edge.imported not in ENVIRONMENT or any(within(edge.importer, entry) for entry in ENTRY_POINTS):
        return None
    return "the environment is read where a process starts, and handed on"


RULES = (
    one_way,
    semantics_are_pure,
    planning_is_pure,
    clouds_stay_behind_the_store,
    protocols_know_no_http,
    a_cold_start_is_light,
    requests_are_short,
    the_environment_is_read_at_the_edge,
)


@cache
def imports_in(file: Path, root: Path) -> Sequence[Import]:
    """Every import in `file`, wherever it stands: at the top, in a function, under TYPE_CHECKING, or by name; and what
    is taken from the module `os`."""
    relative = file.relative_to(root)
    package, importer = relative.with_suffix("").parts[:-1], module_of(relative)
    return [
        Import(importer, name, relative, getattr(node, "lineno", 0))
        for node in ast.walk(ast.parse(file.read_bytes(), str(relative)))
        for name in imported_by(node, package)
    ]


def module_of(file: Path) -> str:
    """The module of a file, by its path below the root."""
    parts = file.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported_by(node: ast.AST, package: tuple[str, ...]) -> list[str]:
    match node:
        case ast.Import(names=names):
            return [alias.name for alias in names]
        case ast.ImportFrom(module=module, names=names, level=level):
            base = [*package[: len(package) - level + 1]] if level else []
            origin = ".".join([*base, *([module] if module else [])])
            return [f"{origin}.{alias.name}" for alias in names]  # the name may be a module of its own
        case ast.Attribute(value=ast.Name(id="os"), attr=attribute):
            return [f"os.{attribute}"]
        case ast.Call(func=ast.Name(id="__import__" | "import_module"), args=[ast.Constant(value=str(name)), *_]):
            return [name]
        case ast.Call(func=ast.Attribute(attr="import_module"), args=[ast.Constant(value=str(name)), *_]):
            return [name]
    return []


def source_files(root: Path) -> Iterator[Path]:
    for folder in ("arco_catalog", "storage_backends", "lambda", "azure_functions", "reconciler", "tools"):
        yield from sorted((root / folder).rglob("*.py"))


def violations(root: Path) -> list[str]:
    """Of what ships, against every rule; of tools, that they import no tests."""
    imports = [edge for file in source_files(root) for edge in imports_in(file, root)]
    edges = [edge for edge in imports if not within(edge.imported, DATACLASSES)]
    held = [(edge, (one_way,) if room_of(edge.importer) in OUTSIDE else RULES) for edge in edges]
    return [f"{edge}: {why}" for edge, rules in held for rule in rules if (why := rule(edge))]


def test_imports_point_one_way_only() -> None:
    assert violations(ROOT) == []


def module_files(root: Path) -> dict[str, Path]:
    """The file of each module, of the tests too."""
    files = [*source_files(root), *sorted((root / "tests").rglob("*.py"))]
    return {module_of(file.relative_to(root)): file for file in files}


def import_circles(root: Path) -> list[list[str]]:
    """Modules that import each other, directly or through others, wherever the import stands. An import for types alone
    is one, too: none of the modules can be read, or moved, without the others."""
    files = module_files(root)
    imported: dict[str, set[str]] = {}
    for module, file in files.items():
        names = [edge.imported for edge in imports_in(file, root)]
        imported[module] = {each for name in names for each in (name, name.rpartition(".")[0]) if each in files}
        for name in names:  # `from package import module` names the module, and not the package
            if name in files:
                imported[module].discard(name.rpartition(".")[0])
    circles: list[list[str]] = []
    left = {module: {each for each in names if each != module} for module, names in imported.items()}
    _remove_leaves(left)
    while left:  # each module that is left leads into a circle
        path = [next(iter(left))]
        while (following := min(left[path[-1]] & left.keys())) not in path:
            path.append(following)
        circle = path[path.index(following) :]
        circles.append(sorted(circle))
        del left[circle[0]]
        _remove_leaves(left)
    return circles


def _remove_leaves(imported: dict[str, set[str]]) -> None:
    """Removes modules that import none of the others, until there are none."""
    while leaves := [module for module, names in imported.items() if not names & imported.keys()]:
        for module in leaves:
            del imported[module]


def test_no_modules_import_each_other() -> None:
    assert import_circles(ROOT) == []


@pytest.mark.parametrize(
    "statement",
    [
        "from arco_catalog.state.pointer import Pointer",
        "from arco_catalog.state import pointer",
        "def later() -> None:\n    from arco_catalog.state.pointer import Pointer",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from arco_catalog.state.pointer import Pointer",
    ],
    ids=["module", "package", "function", "types"],
)
def test_a_planted_circle_is_found(tmp_path: Path, statement: str) -> None:
    state = tmp_path / "arco_catalog" / "state"
    state.mkdir(parents=True)
    (state / "pointer.py").write_text("from arco_catalog.state.receipt import Receipt\n")
    (state / "receipt.py").write_text("from arco_catalog.state.entries import Entry\n")
    (state / "entries.py").write_text(statement + "\n")

    assert import_circles(tmp_path) == [[f"arco_catalog.state.{name}" for name in ("entries", "pointer", "receipt")]]


def test_every_room_is_looked_at() -> None:
    looked_at = {room_of(edge.importer) for file in source_files(ROOT) for edge in imports_in(file, ROOT)}
    assert {"arco_catalog.operations", "arco_catalog.state", "storage_backends", SEMANTICS} <= looked_at


@pytest.mark.parametrize(
    ("file", "statement", "why"),
    [
        ("storage_backends/local/store.py", "from arco_catalog.state import paths", "one way only"),
        ("storage_backends/local/store.py", "from arco_catalog.iceberg import errors", "what a table is"),
        ("arco_catalog/state/pointer.py", "import arco_catalog.operations.commit", "one way only"),
        ("arco_catalog/state/pointer.py", "from ..operations import commit", "one way only"),
        ("arco_catalog/state/pointer.py", "from arco_catalog import operations", "one way only"),
        ("arco_catalog/operations/commit.py", "def f():\n    from arco_catalog.http.app import app", "one way only"),
        (
            "arco_catalog/operations/commit.py",
            "import importlib\nimportlib.import_module('arco_catalog.http')",
            "one way",
        ),
        ("arco_catalog/telemetry/request_log.py", "from arco_catalog.http.requests import Request", "one way only"),
        ("arco_catalog/operations/commit.py", "from arco_catalog.telemetry import lines", "one way only"),
        ("arco_catalog/operations/tasks.py", "from arco_catalog.upkeep.purge import executor", "one way only"),
        ("arco_catalog/upkeep/jobs.py", "from arco_catalog.telemetry import lines", "one way only"),
        ("arco_catalog/upkeep/jobs.py", "from starlette.requests import Request", "ASGI"),
        ("arco_catalog/http/tables.py", "from arco_catalog.upkeep.fsck import check", "longer than a request"),
        ("arco_catalog/http/delegation.py", "def f():\n    import arco_catalog.upkeep.walk", "longer than a request"),
        ("arco_catalog/cli/serve.py", "import reconciler.walk", "one way only"),
        ("arco_catalog/embed.py", "from arco_catalog import testing", "one way only"),
        ("arco_catalog/http/app.py", "from arco_catalog.embed import serving", "one way only"),
        ("arco_catalog/http/app.py", "from arco_catalog.cli import main", "one way only"),
        ("arco_catalog/http/app.py", "from tests.support import loggers", "tests, benches"),
        ("arco_catalog/__init__.py", "from arco_catalog.http import app", "root package"),
        ("arco_catalog/iceberg/schema.py", "from arco_catalog.state import fields", "nothing of ours"),
        ("arco_catalog/iceberg/schema.py", "from storage_backends.base import ABSENT", "nothing of ours"),
        ("arco_catalog/iceberg/schema.py", "from pathlib import Path", "no I/O"),
        ("arco_catalog/iceberg/schema.py", "import time", "no clock"),
        ("arco_catalog/iceberg/schema.py", "import requests", "plain values"),
        ("arco_catalog/planning/creation.py", "import asyncio", "a function of values"),
        ("arco_catalog/planning/creation.py", "from arco_catalog.state.access import State", "a function of values"),
        ("arco_catalog/planning/creation.py", "from arco_catalog.protocol.catalog import Session", "one way only"),
        ("arco_catalog/protocol/driver.py", "from arco_catalog.operations import commit", "one way only"),
        ("arco_catalog/vending/sts.py", "import botocore.session", "SDK"),
        ("arco_catalog/vending/sts.py", "from arco_catalog.protocol.catalog import Session", "one way only"),
        ("lambda/catalog.py", "from google.cloud import storage", "SDK"),
        ("azure_functions/catalog.py", "from azure.storage import blob", "SDK"),
        ("arco_catalog/http/app.py", "import azure.functions", "SDK"),
        ("arco_catalog/operations/commit.py", "from starlette.requests import Request", "ASGI"),
        ("arco_catalog/telemetry/lines.py", "import asgiref.typing", "ASGI"),
        ("storage_backends/local/store.py", "import httptools", "ASGI"),
        ("arco_catalog/http/app.py", "from pyiceberg.table import Table", "data library"),
        ("arco_catalog/cli/serve.py", "import pyspark.sql", "data library"),
        ("arco_catalog/cli/import_pyiceberg.py", "import pyarrow", "data library"),
        ("tools/bench/cost.py", "from tests.support.fake_runtime import FakeRuntime", "without the tests"),
        ("arco_catalog/cli/import_sources.py", "from pyiceberg.catalog import load_catalog", "data library"),
        ("arco_catalog/cli/serve.py", "from arco_catalog.cli import import_pyiceberg", "arco lineage` alone"),
        ("arco_catalog/cli/serve.py", "from arco_catalog.cli import collected_edges", "arco lineage` alone"),
        ("arco_catalog/cli/lineage.py", "from pyiceberg.table import Table", "data library"),
        ("storage_backends/s3/client.py", "import os\ndef f():\n    return os.environ['AWS_REGION']", "handed on"),
        ("arco_catalog/operations/open.py", "from os import getenv", "handed on"),
        ("arco_catalog/config/variable.py", "import os\nenvironment = dict(os.environ)", "handed on"),
        ("arco_catalog/cli/session.py", "import os\nos.getenv('ARCO_STORE')", "handed on"),
    ],
)
def test_a_planted_violation_is_caught(tmp_path: Path, file: str, statement: str, why: str) -> None:
    planted = tmp_path / file
    planted.parent.mkdir(parents=True)
    planted.write_text(statement + "\n")

    found = violations(tmp_path)

    assert any(why in line and line.startswith(file) for line in found), found


@pytest.mark.parametrize(
    ("file", "statement"),
    [
        ("lambda/catalog.py", "from arco_catalog.http.app import app\nfrom mangum import Mangum"),
        ("azure_functions/catalog.py", "import azure.functions as func"),
        ("reconciler/spark.py", "import pyspark.sql\nfrom arco_catalog.upkeep import walk"),
        ("arco_catalog/http/delegation_service/app.py", "from arco_catalog.upkeep.delegation_service import service"),
        ("arco_catalog/http/app.py", "from starlette.requests import Request\nfrom arco_catalog.iceberg import errors"),
        ("arco_catalog/state/pointer.py", "import ulid\nfrom storage_backends.base import ABSENT"),
        ("arco_catalog/iceberg/json.py", "import orjson\nfrom . import errors\nfrom urllib.parse import quote"),
        ("storage_backends/s3/store.py", "import botocore.session\nfrom .base import ABSENT"),
        ("arco_catalog/cli/import_pyiceberg.py", "from pyiceberg.catalog import load_catalog"),
        ("arco_catalog/cli/lineage.py", "from arco_catalog.cli.collected_edges import Source"),
        ("storage_backends/wire/http1.py", "from httptools import HttpResponseParser"),
        ("lambda/api.py", "import os\nfrom arco_catalog.config.variables import STORE\nSTORE.read(os.environ)"),
        ("arco_catalog/cli/program.py", "import os\nenvironment = os.environ"),
        ("storage_backends/local/store.py", "import os\nos.fsync(1)"),
    ],
)
def test_what_the_rooms_may_do_is_let_through(tmp_path: Path, file: str, statement: str) -> None:
    allowed = tmp_path / file
    allowed.parent.mkdir(parents=True)
    allowed.write_text(statement + "\n")

    assert violations(tmp_path) == []


@pytest.mark.parametrize("described", [("operations", "protocol", "planning"), ("upkeep",)])
def test_the_readme_of_a_room_describes_each_module(described: tuple[str, ...]) -> None:
    rooms = [ROOT / "arco_catalog" / room for room in described]
    page = (rooms[0] / "README.md").read_text()
    table = [line for line in page.splitlines() if line.startswith("| `")]
    documented = {word for line in table for word in re.findall(r"`(\w+\.py)`", line)}
    assert documented == {file.name for room in rooms for file in room.glob("*.py")} - {"__init__.py"}
