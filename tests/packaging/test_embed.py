"""The public Python API: its examples are run, and PyIceberg works with what the fixtures give."""

import ast
import doctest
import http.client
import re
import socket
import sys
import threading
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from urllib.request import urlopen

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.types import StringType

import arco_catalog.cuts
import arco_catalog.embed
import arco_catalog.testing
import storage_backends
from arco_catalog.embed import RunningCatalog, open_app, serving
from arco_catalog.testing import arco_in_memory, arco_on_files
from storage_backends import StoreError
from tools.support.asgi_client import Client
from tools.support.s3_servers import S3Server

__all__ = ["arco_in_memory", "arco_on_files"]
PROJECT = Path(__file__).resolve().parents[2]
ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64())})


@pytest.mark.parametrize(("module", "least"), [(arco_catalog.embed, 9), (storage_backends, 4)])
def test_the_examples_of_the_api_say_the_truth(module: ModuleType, least: int) -> None:
    result = doctest.testmod(module)
    assert result.attempted >= least
    assert result.failed == 0


def documented(source: Path) -> set[str]:
    """The top-level names of a module that have a docstring: of their own, or below them."""
    body = ast.parse(source.read_text()).body
    found = {
        node.name
        for node in body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and ast.get_docstring(node)
    }
    for node, after in pairwise(body):
        match node, after:
            case ast.Assign(targets=[ast.Name(id=name)]), ast.Expr(value=ast.Constant(value=str())):
                found.add(name)
    return found


@pytest.mark.parametrize("module", [arco_catalog.embed, arco_catalog.testing, arco_catalog.cuts, storage_backends])
def test_the_reference_shows_every_public_name(module: ModuleType) -> None:
    """It leaves out what has no docstring."""
    page = (PROJECT / "docs" / "api.md").read_text()
    directives = dict(re.findall(r"(?m)^::: (\S+)\n((?: .*\n)*)", page))
    shown = re.search(r"members: \[(.*)\]", directives[module.__name__])
    names = set(shown[1].split(", ")) if shown else set(module.__all__)
    assert set(module.__all__) - names <= set(arco_catalog.embed.__all__)
    sources = (arco_catalog.embed, arco_catalog.testing, arco_catalog.cuts, storage_backends.base)
    assert names <= set().union(*(documented(Path(str(source.__file__))) for source in sources))


def test_pyiceberg_makes_and_changes_a_table_in_memory(arco_in_memory: RunningCatalog) -> None:
    catalog = load_catalog("arco", **arco_in_memory.settings)
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", ROWS.schema)
    with table.update_schema() as change:
        change.add_column("name", StringType())
    assert catalog.load_table("db.t").schema().column_names == ["id", "name"]


def test_pyiceberg_writes_and_reads_rows_on_files(arco_on_files: RunningCatalog) -> None:
    catalog = load_catalog("arco", **arco_on_files.settings)
    catalog.create_namespace("db")
    catalog.create_table("db.t", ROWS.schema).append(ROWS)
    assert catalog.load_table("db.t").scan().to_arrow() == ROWS


async def test_an_app_serves_the_warehouse_it_was_opened_with(tmp_path: Path) -> None:
    async with open_app(f"file:{tmp_path}", warehouse="lake") as app:
        client = Client(app)
        assert (await client.post("/v1/lake/namespaces", {"namespace": ["db"]})).status == 200
        assert (await client.get("/v1/lake/namespaces")).json["namespaces"] == [["db"]]
    async with open_app(f"file:{tmp_path}", warehouse="lake") as app:
        assert (await Client(app).get("/v1/lake/namespaces")).json["namespaces"] == [["db"]]


async def test_an_app_queries_no_policy_as_its_page_states(tmp_path: Path) -> None:
    """Nothing listens at the address: a server would answer 503."""
    given = {"ARCO_OPA_URL": "http://127.0.0.1:9/allow"}
    async with open_app(f"file:{tmp_path}", environment=given) as app:
        assert (await Client(app).get("/v1/arco/namespaces")).status == 200
    assert "queries no [policy](opa.md)" in (PROJECT / "docs" / "python.md").read_text()


async def test_an_app_reaches_its_store_by_the_environment_that_it_is_given(
    s3_server: S3Server, s3_bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = s3_server.environment
    for name, value in S3Server("http://127.0.0.1:9", "wrong", "wrong").environment.items():
        monkeypatch.setenv(name, value)

    async with open_app(f"s3://{s3_bucket}/catalog", environment=given) as app:
        answer = await Client(app).post("/v1/arco/namespaces", {"namespace": ["db"]})

    assert answer.status == 200


def test_a_server_ends_with_its_context_and_leaves_no_thread() -> None:
    with serving("memory:") as server, urlopen(f"{server.uri}/health", timeout=30) as answer:
        assert answer.status == 200
    with pytest.raises(OSError, match="refused"):
        urlopen(f"{server.uri}/health", timeout=30)
    with serving("memory:"):
        pass
    assert "arco-catalog" not in {thread.name for thread in threading.enumerate()}


def test_a_server_sends_each_part_of_an_answer_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the second part would wait until the client acknowledges the first: 40 ms."""
    accepted = []
    accept = socket.socket.accept

    def noted(listener: socket.socket) -> tuple[socket.socket, object]:
        accepted.append(accept(listener))
        return accepted[-1]

    monkeypatch.setattr(socket.socket, "accept", noted)
    with (
        serving("memory:") as server,
        closing(http.client.HTTPConnection(server.uri.removeprefix("http://"))) as client,
    ):
        client.request("GET", "/health")
        client.getresponse().read()
        [(connection, _)] = accepted
        assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@pytest.mark.parametrize(("store", "warehouse"), [("ftp://host", "arco"), ("memory:", "a/b")])
def test_what_can_not_be_opened_is_told_to_whoever_asked(store: str, warehouse: str) -> None:
    with (
        pytest.raises(ValueError, match=r"unsupported store URL|warehouse's name"),
        serving(store, warehouse=warehouse),
    ):
        raise AssertionError("nothing is served")


def test_a_store_that_can_not_be_written_is_told_to_whoever_asked(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises((StoreError, OSError)), serving(f"file:{tmp_path}/file"):
        raise AssertionError("nothing is served")


def test_a_missing_server_says_which_extra_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(ModuleNotFoundError, match="the extra 'serve' of arco-catalog"), serving("memory:"):
        raise AssertionError("nothing is served")
