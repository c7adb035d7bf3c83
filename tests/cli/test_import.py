"""`arco import`: from lists, from folders of Hadoop's catalog, and from catalogs that PyIceberg reads."""

import asyncio
import io
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

from arco_catalog.cli.errors import CliError
from arco_catalog.cli.import_pyiceberg import PyIcebergSource
from arco_catalog.cli.import_sources import FolderSource, parse_list
from arco_catalog.cli.program import main
from arco_catalog.iceberg.errors import Unavailable
from arco_catalog.operations.drop import drop_table
from arco_catalog.upkeep.importing import AT_ONCE, Importer
from arco_catalog.upkeep.source_tables import Outcome, SourceTable
from storage_backends import ABSENT, StoreUnavailable, When
from storage_backends.base import Outcome as WriteOutcome
from storage_backends.local.store import LocalStore
from storage_backends.memory import MemoryStore
from tests.cli.process import serving
from tools.support.catalog_fixture import CatalogFixture
from tools.support.wrapped_stores import CountingStore

Captured = pytest.CaptureFixture[str]
SCHEMA = Schema(NestedField(1, "x", LongType()))


@pytest.fixture
def store(tmp_path: Path, capsys: Captured) -> str:
    url = f"file:{tmp_path}/store"
    assert main(["init", "--store", url], {}) == 0
    capsys.readouterr()
    return url


@pytest.fixture
def source(tmp_path: Path) -> Catalog:
    """A catalog in SQLite with a.t and a.u."""
    (tmp_path / "src").mkdir()
    made = load_catalog("src", type="sql", uri=f"sqlite:///{tmp_path}/src.db", warehouse=f"file://{tmp_path}/src")
    made.create_namespace("a", {"comment": "theirs", "arco.owner": "theirs", "location": f"file://{tmp_path}/src/a"})
    for name in ("t", "u"):
        made.create_table(("a", name), schema=SCHEMA)
    return made


def imported(capsys: Captured, store: str, tmp_path: Path, *arguments: str, code: int = 0) -> dict[str, object]:
    allowed = ["--allowed-location", f"file://{tmp_path}/src", "--store", store]
    ended = main(["import", *arguments, "--json", *allowed], {})
    report = capsys.readouterr()
    assert ended == code, report.err + report.out
    document = json.loads(report.out)
    assert isinstance(document, dict)
    return document


def results(document: dict[str, object]) -> list[tuple[str, str]]:
    tables = document["tables"]
    assert isinstance(tables, list)
    return [(each["name"], each["result"]) for each in tables]


def sql(tmp_path: Path) -> list[str]:
    return ["catalog", "src", "-P", "type=sql", "-P", f"uri=sqlite:///{tmp_path}/src.db"]


def state_of(store: str) -> set[str]:
    """The names of all that the catalog keeps, but for the store's own locks."""
    folder = Path(store.removeprefix("file:"))
    return {str(path) for path in folder.rglob("*") if path.is_file() and ".arco-store" not in path.parts}


def test_a_dry_run_states_what_it_would_do_and_writes_nothing(
    store: str, source: Catalog, tmp_path: Path, capsys: Captured
) -> None:
    before = state_of(store)
    report = imported(capsys, store, tmp_path, *sql(tmp_path))
    assert (report["dry_run"], report["namespaces"]) == (True, ["a"])
    assert results(report) == [("a.t", "would register"), ("a.u", "would register")]
    assert state_of(store) == before


def test_what_was_imported_is_left_as_it_is_and_the_rest_follows(
    store: str, source: Catalog, tmp_path: Path, capsys: Captured
) -> None:
    assert results(imported(capsys, store, tmp_path, *sql(tmp_path), "--apply")) == [
        ("a.t", "registered"),
        ("a.u", "registered"),
    ]
    source.create_table("a.w", schema=SCHEMA)
    again = imported(capsys, store, tmp_path, *sql(tmp_path), "--apply")
    assert results(again) == [("a.t", "already registered"), ("a.u", "already registered"), ("a.w", "registered")]
    assert again["namespaces"] == []
    assert main(["info", "a.w", "--store", store, "--allowed-location", f"file://{tmp_path}/src", "--json"], {}) == 0
    assert json.loads(capsys.readouterr().out)["metadata_location"] == source.load_table("a.w").metadata_location


def test_a_table_that_moved_on_over_there_is_reported_and_the_others_go_on(
    store: str, source: Catalog, tmp_path: Path, capsys: Captured
) -> None:
    imported(capsys, store, tmp_path, *sql(tmp_path), "--apply", "--only", "a")
    with source.load_table("a.t").transaction() as change:
        change.set_properties(a="1")

    for more in ([], ["--apply"]):
        report = imported(capsys, store, tmp_path, *sql(tmp_path), *more, code=1)
        assert results(report) == [("a.t", "failed"), ("a.u", "already registered")]
        assert "the table a.t of this catalog has the metadata file" in json.dumps(report)


async def test_a_table_that_was_committed_to_here_counts_as_imported(
    store: str, source: Catalog, tmp_path: Path, capsys: Captured
) -> None:
    location = source.load_table("a.t").metadata_location
    listed = tmp_path / "list"
    listed.write_text(f"a.t {location}\n")
    allowed = ["--allowed-location", f"file://{tmp_path}/src"]
    async with serving(store, *allowed) as server:
        assert (await server.call("POST", "/v1/arco/namespaces", {"namespace": ["a"]}))[0] == 200
        body = {"name": "t", "metadata-location": location}
        assert (await server.call("POST", "/v1/arco/namespaces/a/register", body))[0] == 200
        change = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "1"}}]}
        assert (await server.call("POST", "/v1/arco/namespaces/a/tables/t", change))[0] == 200

    command = ["import", "list", str(listed), "--store", store, *allowed]
    ended = await run_in_thread(command)
    assert ended == 0
    assert "this catalog has committed to it since" in capsys.readouterr().out


async def run_in_thread(command: list[str]) -> int:
    """A command runs a loop of its own."""
    return await asyncio.to_thread(main, command, {})


async def test_a_catalog_that_speaks_rest_is_a_source(
    store: str, source: Catalog, tmp_path: Path, capsys: Captured
) -> None:
    allowed = ["--allowed-location", f"file://{tmp_path}/src"]
    other = f"file:{tmp_path}/other"
    assert await run_in_thread(["init", "--store", other]) == 0
    assert await run_in_thread(["import", *sql(tmp_path), "--apply", "--store", other, *allowed]) == 0
    capsys.readouterr()
    async with serving(other, *allowed) as server:
        rest = ["catalog", "rest", "-P", "type=rest", "-P", f"uri={server.uri}", "-P", "warehouse=arco"]
        command = ["import", *rest, "--into", "mig.rated", "--apply", "--json", "--store", store, *allowed]
        assert await run_in_thread(command) == 0
    report = json.loads(capsys.readouterr().out)
    assert results(report) == [("mig.rated.a.t", "registered"), ("mig.rated.a.u", "registered")]
    assert report["namespaces"] == ["mig", "mig.rated", "mig.rated.a"]


def test_a_catalog_that_cannot_be_read_is_one_clear_line(store: str, capsys: Captured) -> None:
    assert main(["import", "catalog", "none", "-P", "type=sql", "--store", store], {}) == 1
    assert capsys.readouterr().err.startswith("arco: can't read the source catalog 'none': URI missing")
    assert main(["import", "catalog", "none", "-P", "typesql", "--store", store], {}) == 1
    assert "KEY=VALUE" in capsys.readouterr().err


def test_properties_for_another_kind_of_source_than_a_catalog_are_misuse(store: str, capsys: Captured) -> None:
    with pytest.raises(SystemExit) as exited:
        main(["import", "folder", "file:///none", "-P", "type=sql", "--store", store], {})
    assert exited.value.code == 2
    assert "-P sets properties for PyIceberg" in capsys.readouterr().err


def hadoop_table(folder: Path, source: Catalog, name: str, hint: str | None, *versions: str) -> None:
    """A table as Hadoop's catalog lays it out, with these metadata files, made of one that is somewhere else."""
    table = source.create_table(("a", f"copied_{name.replace('/', '_')}"), schema=SCHEMA)
    document = json.loads(Path(table.metadata_location.removeprefix("file://")).read_bytes())
    metadata = folder / name / "metadata"
    metadata.mkdir(parents=True)
    for version in versions:
        (metadata / version).write_text(json.dumps({**document, "location": f"file://{folder}/{name}"}))
    if hint is not None:
        (metadata / "version-hint.text").write_text(hint)


def test_a_folder_of_hadoops_catalog_is_a_source(store: str, source: Catalog, tmp_path: Path, capsys: Captured) -> None:
    folder = tmp_path / "src" / "hadoop"
    hadoop_table(folder, source, "sales/orders", "2\n", "v1.metadata.json", "v2.metadata.json", "v3.metadata.json")
    hadoop_table(folder, source, "sales/deep/gone", None, "v9.metadata.json", "v10.metadata.json")
    hadoop_table(folder, source, "top", "1", "v1.metadata.json")
    hadoop_table(folder, source, "sales/hive", None, "00000-a.metadata.json")
    hadoop_table(folder, source, "sales/hinted", "1", "00000-a.metadata.json")
    hadoop_table(folder, source, "sales/jumped", "2", "v1.metadata.json", "v2.metadata.json", "v9.metadata.json")

    report = imported(capsys, store, tmp_path, "folder", f"file:{folder}", "--apply", code=1)

    tables = report["tables"]
    assert isinstance(tables, list)
    printed = {each["name"]: (each["result"], each["metadata_location"], each["reason"]) for each in tables}
    root = f"file://{folder}"
    assert printed["sales.orders"] == ("registered", f"{root}/sales/orders/metadata/v3.metadata.json", None)
    assert printed["sales.jumped"] == ("registered", f"{root}/sales/jumped/metadata/v2.metadata.json", None)
    assert printed["sales.deep.gone"] == ("registered", f"{root}/sales/deep/gone/metadata/v10.metadata.json", None)
    assert "its folder has no vN.metadata.json" in printed["sales.hive"][2]
    assert "its folder has no vN.metadata.json" in printed["sales.hinted"][2]
    assert "The table is in no namespace: choose one with --into" in printed["top"][2]
    into = imported(capsys, store, tmp_path, "folder", f"file:{folder}", "--into", "x", code=1)
    assert ("x.top", "would register") in results(into)
    assert ("x.sales.orders", "failed") in results(into), "its location is held by sales.orders"


async def test_a_folder_without_tables_reports_it() -> None:
    with pytest.raises(CliError, match="there are no tables in memory:"):
        await anext(FolderSource("memory:///", MemoryStore()).tables())


@given(st.integers(0, 12), st.sets(st.integers(1, 9), min_size=1))
async def test_the_current_version_is_what_hadoops_catalog_takes(hint: int, versions: set[int]) -> None:
    store = MemoryStore()
    for version in versions:
        await store.put(f"n/t/metadata/v{version}.metadata.json", b"{}", ABSENT)
    await store.put("n/t/metadata/version-hint.text", str(hint).encode(), ABSENT)

    [table] = [each async for each in FolderSource("s3://b/w", store).tables()]

    expected = hint if hint in versions else max(versions)
    while expected + 1 in versions:
        expected += 1
    assert table == SourceTable(("n",), "t", f"s3://b/w/n/t/metadata/v{expected}.metadata.json")


LEVEL = st.text(st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp")), min_size=1, max_size=6)
LOCATION = st.from_regex(r"s3://[a-z]{1,5}/[a-z /%]{0,8}[a-z]", fullmatch=True)


@given(st.lists(st.tuples(st.lists(LEVEL, min_size=2, max_size=4), LOCATION), max_size=5), st.sampled_from(" \t"))
def test_a_list_is_read_as_it_was_written(written: list[tuple[list[str], str]], blank: str) -> None:
    lines = ["# comment", ""]
    for levels, location in written:
        quoted = ['"' + level.replace('"', '""') + '"' for level in levels]
        lines.append(f"{'.'.join(quoted)}{blank}{location}")
    assert parse_list(lines, "x") == [
        SourceTable(tuple(levels[:-1]), levels[-1], location) for levels, location in written
    ]


@given(st.text(max_size=40))
def test_no_line_breaks_the_reader_of_lists(line: str) -> None:
    printed = ""
    found: list[SourceTable] = []
    try:
        found = parse_list([line], "x")
    except CliError as failure:
        printed = str(failure)
    means_nothing = not line.strip() or line.strip().startswith("#")
    assert printed.startswith("x, line 1: ") or len(found) == (0 if means_nothing else 1)


def test_a_bad_line_is_named_before_anything_is_done(
    store: str, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("a.b file:///x\nnonsense file:///y\n"))
    before = state_of(store)
    assert main(["import", "list", "-", "--apply", "--store", store], {}) == 1
    assert "arco: standard input, line 2: expected NAMESPACE.TABLE, got 'nonsense'" in capsys.readouterr().err
    assert state_of(store) == before


def test_a_list_that_is_not_there_is_one_clear_line(store: str, capsys: Captured) -> None:
    assert main(["import", "list", "/nowhere/list", "--store", store], {}) == 1
    assert capsys.readouterr().err.startswith("arco: can't read /nowhere/list: ")


@pytest.mark.parametrize("apply", [[], ["--apply"]])
def test_no_namespace_is_created_for_tables_that_fail(
    apply: list[str], store: str, source: Catalog, tmp_path: Path, capsys: Captured
) -> None:
    location = source.load_table("a.t").metadata_location
    listed = tmp_path / "list"
    listed.write_text(f"gone.t {location}x\nfar.t file:///far/v1.metadata.json\nkept.t {location}\n")

    report = imported(capsys, store, tmp_path, "list", str(listed), *apply, code=1)

    done = [result for _, result in results(report)]
    assert done == ["failed", "failed", "registered" if apply else "would register"]
    assert report["namespaces"] == ["kept"]


def test_a_dry_run_finds_what_tables_of_the_list_do_to_each_other(
    store: str, source: Catalog, tmp_path: Path, capsys: Captured
) -> None:
    t, u = (source.load_table(("a", name)).metadata_location for name in ("t", "u"))
    listed = tmp_path / "list"
    listed.write_text(f"n.t {t}\nn.t {t}\nn.t {u}\nn.again {t}\nn.gone {t}x\nn.plain {u.removeprefix('file://')}\n")

    dry = imported(capsys, store, tmp_path, "list", str(listed), code=1)

    assert [result for _, result in results(dry)] == [
        "would register",
        "already registered",
        "failed",
        "failed",
        "failed",
        "would register",
    ]
    assert main(["import", "list", str(listed), "--store", store, "--limit", "1"], {}) == 1
    text = capsys.readouterr().out
    assert "... and 5 more" in text
    assert text.endswith("6 tables: 6 failed.\n"), "nothing is allowed there without --allowed-location"


class Silent(LocalStore):
    """A store that no longer answers after `silent` is set."""

    silent = False

    async def put(self, key: str, body: bytes, when: When) -> WriteOutcome:
        if self.silent:
            raise StoreUnavailable("no answer")
        return await super().put(key, body, when)


async def test_a_run_ends_once_the_store_answers_no_one(tmp_path: Path) -> None:
    silent = Silent(str(tmp_path / "w"))
    fixture = CatalogFixture(silent, url=f"file:{tmp_path}/w")
    await fixture.namespace("db")
    location = (await fixture.table("t")).metadata_location
    await drop_table(fixture.session(), ("db",), "t", purge=False)
    silent.silent = True
    requests: list[int] = []

    async def tables() -> AsyncIterator[SourceTable]:
        for number in range(100):
            requests.append(number)
            yield SourceTable(("db",), f"t{number}", location)

    async def properties_of(namespace: tuple[str, ...]) -> dict[str, str]:
        return {}

    importer = Importer(fixture.session, properties_of, apply=True)
    with pytest.raises(Unavailable, match="no answer"):
        _ = [each async for each in importer.run(tables())]
    assert len(requests) == AT_ONCE

    silent.silent = False
    importer = Importer(fixture.session, properties_of, apply=True)
    outcomes = [each.outcome async for each in importer.run(tables())]
    assert (outcomes.count(Outcome.REGISTERED), outcomes.count(Outcome.FAILED)) == (1, 99)


async def test_a_plan_looks_once_for_each_table_that_is_here() -> None:
    store = CountingStore(MemoryStore())
    fixture = CatalogFixture(store)
    await fixture.namespace("db")
    here = [SourceTable(("db",), f"t{n}", (await fixture.table(f"t{n}")).metadata_location) for n in range(2 * AT_ONCE)]

    async def tables() -> AsyncIterator[SourceTable]:
        for table in here:
            yield table

    async def properties_of(namespace: tuple[str, ...]) -> dict[str, str]:
        return {}

    with store.measure() as measured:
        importer = Importer(fixture.session, properties_of, apply=False)
        outcomes = {each.outcome async for each in importer.run(tables())}

    assert outcomes == {Outcome.ALREADY}
    assert measured.calls <= 1 + 2 * len(here)  # HEAD to plan on; HEAD and a pointer for each


async def test_what_a_foreign_catalog_does_not_give_is_reported_and_the_others_go_on(
    source: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = type(source)
    load, views = whole.load_table, whole.list_views

    def ailing_load(self: Catalog, identifier: tuple[str, ...]) -> object:
        if identifier[-1] == "t":
            raise OSError("the metastore hung up")
        return load(self, identifier)

    monkeypatch.setattr(whole, "load_table", ailing_load)
    monkeypatch.setattr(whole, "list_views", lambda self, namespace: [(*namespace, "v")])
    read = PyIcebergSource("src", {"type": "sql", "uri": f"sqlite:///{tmp_path}/src.db"})

    found = {each.name: each.problem async for each in read.tables()}

    assert found["t"] == "it can't be loaded: the metastore hung up"
    assert found["u"] is None
    assert "it is a view" in (found["v"] or "")
    assert await read.properties_of(("nowhere",)) == {}
    assert (await read.properties_of(("a",)))["comment"] == "theirs"
    monkeypatch.setattr(whole, "list_views", views)
    assert {each.name async for each in read.tables()} == {"t", "u"}
