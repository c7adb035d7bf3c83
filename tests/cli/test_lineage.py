"""`arco lineage`: trees around a table, the same at the store and at a server, and which runs have no edge."""

import json
from collections.abc import Sequence
from pathlib import Path

import aiohttp
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

from arco_catalog.cli.lineage_tree import MAX_SHOWN
from arco_catalog.embed import serving as embedded
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.lineage import receive_event
from tests.cli.in_process import arco
from tests.cli.process import serving
from tests.cli.test_login import answering, response
from tests.cli.test_operator import catalog_in, output
from tests.support.served_realms import LOGINS, bootstrapped, token_of
from tools.support.catalog_fixture import CatalogFixture

HOSTILE = "daily\x1b[31m\n\u202e\r" + "x" * 400


SCHEMA = Schema(NestedField(1, "id", LongType()))


def named(name: str) -> JsonObject:
    return {"namespace": "http://lake", "name": name}


def event(
    inputs: Sequence[JsonObject],
    outputs: Sequence[JsonObject],
    job: str = "daily",
    last: int = 0,
    state: str = "COMPLETE",
) -> JsonObject:
    return {
        "eventType": state,
        "eventTime": "2026-11-22T10:00:00Z",
        "producer": "x",
        "schemaURL": "x",
        "run": {"runId": f"0190b7a5-1f7c-7c6a-b9ad-3c2c5c1b2f{last:02x}"},
        "job": {"namespace": "nightly", "name": job},
        "inputs": [*inputs],
        "outputs": [*outputs],
    }


CLICKS: JsonObject = {"namespace": "kafka://b", "name": "clicks"}
EVENTS = (
    event([named("db.t"), CLICKS], [named("db.u")], HOSTILE),
    event([named("db.u")], [named("db.v")], "weekly", 1),
    event([named("db.v")], [named("db.t")], "back", 2),
    event([CLICKS], [{"namespace": "kafka://b\x1b[2J", "name": "db.u"}], HOSTILE, 3),
    event([named("db.u")], [], "reads", 4),
    event([named("db.w")], [named("db.absent")], "others", 5),
)


@pytest.fixture
async def fixture(folder: Path) -> CatalogFixture:
    """Four tables in the warehouse `arco` of a folder, with runs in a circle and others without edges."""
    made = catalog_in(folder)
    await made.namespace("db")
    for name in ("t", "u", "v", "w"):
        await made.table(name)
    for each in EVENTS:
        await receive_event(made.session(each), each, "ada")
    return made


def lines_with(report: str, *words: str) -> list[str]:
    return [line for line in report.splitlines() if all(word in line for word in words)]


async def test_each_edge_is_a_line_below_its_node_up_and_down(fixture: CatalogFixture, folder: Path) -> None:
    report = await output(folder, "lineage", "db.u", "--depth", "3")

    lines = report.splitlines()
    assert lines[0] == "db.u"
    assert len(lines_with(report, "   <- kafka://b clicks", "of ada", "DeclaredUnverified")) == 1
    assert [line.split("  by ")[0] for line in lines if line.lstrip().startswith(("<-", "->"))] in (
        _trees("   <- db.t", "   <- kafka://b clicks"),
        _trees("   <- kafka://b clicks", "   <- db.t"),
    )
    assert "arco pipeline run compact" in report


def _trees(*first: str) -> list[str]:
    up: list[str] = []
    for line in first:
        up.append(line)
        if line.endswith("db.t"):
            up += ["      <- db.v", "         <- db.u"]
    return [*up, "   -> db.v", "      -> db.t", "         -> db.u"]


async def test_a_node_that_a_tree_has_twice_has_its_edges_once(fixture: CatalogFixture, folder: Path) -> None:
    report = await output(folder, "lineage", "db.u", "--up", "--depth", "5")

    assert len(lines_with(report, "<- db.u", "(its edges are above)")) == 1
    assert not lines_with(report, "->")


async def test_runs_without_an_edge_have_a_reason(fixture: CatalogFixture, folder: Path) -> None:
    report = await output(folder, "lineage", "db.u", "--down")

    assert lines_with(report, "5 runs without an edge here, of 6 events of 7 days")
    assert lines_with(report, "its edges are of the other direction", "db.t")
    assert lines_with(report, "it names db.u in the namespace kafka://b\\u001b[2J, which is that of no catalog")
    assert lines_with(report, "and 1 more; of all 5:", "1 other-tables")
    assert lines_with(report, "reads of ada: its events name no output")


@pytest.mark.parametrize("options", [(), ("--up",), ("--json",)])
async def test_names_in_events_do_not_reach_the_terminal(
    fixture: CatalogFixture, folder: Path, options: Sequence[str]
) -> None:
    report = await output(folder, "lineage", "db.u", *options)

    assert all(character == "\n" or character.isprintable() for character in report)
    assert "\\u001b[31m" in report
    if "--json" not in options:
        assert max(map(len, report.splitlines())) < 3 * MAX_SHOWN


async def test_a_direction_without_edges_is_one_sentence(folder: Path) -> None:
    made = catalog_in(folder)
    await made.namespace("db")
    await made.table("t")

    report = await output(folder, "lineage", "db.t", "--down")

    assert report.startswith("No lineage of db.t was found.\n\nEvery run has an edge here, of 0 events of 7 days")


async def test_both_directions_at_once_are_wrong_usage(folder: Path) -> None:
    ended = await arco("lineage", "db.t", "--up", "--down", "--store", f"file:{folder}")

    assert (ended.code, "--up and --down exclude each other" in ended.err) == (2, True)


async def test_a_server_and_the_store_answer_the_same(fixture: CatalogFixture, folder: Path) -> None:
    with embedded(f"file:{folder}", warehouse="arco") as server:
        for options in (("--depth", "2"), ("--up", "--json")):
            ended = await arco("lineage", "db.u", *options, "--url", server.uri)
            assert (ended.code, ended.out) == (0, await output(folder, "lineage", "db.u", *options)), ended.err
        absent = await arco("lineage", "db.absent", "--url", server.uri)
        other = await arco("lineage", "db.u", "--warehouse", "other", "--url", server.uri)

    assert (absent.code, absent.err) == (1, "arco: Table does not exist: db.absent\n")
    assert (other.code in (1, 2), "other" in other.err) == (True, True)


async def test_the_json_is_that_of_the_api(fixture: CatalogFixture, folder: Path) -> None:
    graph = json.loads(await output(folder, "lineage", "db.t", "--depth", "2", "--json"))

    assert {node["name"] for node in graph["nodes"]} == {"t", "u", "v", None}
    assert graph["without-edges"]["reasons"]


async def test_a_realm_wants_a_login_and_keeps_reasons_for_those_who_may_read_all(tmp_path: Path) -> None:
    store = f"file:{tmp_path}/lake"
    root = await bootstrapped(store)
    async with serving(store, "--workers", "1", "--quiet", **LOGINS) as server:
        made = root.catalog(server.uri)
        made.create_namespace("db")
        for name in ("t", "u"):
            made.create_table(f"db.{name}", SCHEMA)
        token = tmp_path / "token"
        token.write_text(await token_of(server.uri, root.client_id, root.secret))
        async with aiohttp.ClientSession() as client:
            headers = {"authorization": f"Bearer {token.read_text()}"}
            sent = event([named("arco.db.t")], [named("arco.db.u")])
            async with client.post(f"{server.uri}/api/v1/arco/lineage", json=sent, headers=headers) as answer:
                assert answer.status == 201

        refused = await arco("lineage", "db.u", "--url", server.uri)
        shown = await arco("lineage", "db.u", "--url", server.uri, "--token-file", str(token))

    assert (refused.code, "arco login" in refused.err) == (1, True)
    assert (shown.code, bool(lines_with(shown.out, "<- db.t", "of root"))) == (0, True), shown


@pytest.mark.parametrize(
    "graph",
    [
        {"without-edges": None},
        {"without-edges": None, "collected": False, "root": "x", "nodes": [], "edges": [], "notes": []},
        {"without-edges": 5, "collected": False, "root": "n0", "nodes": [{"id": "n0"}], "edges": [], "notes": []},
    ],
)
async def test_a_server_of_something_else_is_one_clear_line(graph: JsonObject) -> None:
    config: JsonObject = {"overrides": {"prefix": "arco"}}
    answers = {
        "/v1/config?warehouse=arco": response(json.dumps(config)),
        "/v1/arco/namespaces/db/tables/t/lineage?direction=both&depth=1&explain=true": response(json.dumps(graph)),
    }
    async with answering(answers) as url:
        ended = await arco("lineage", "db.t", "--url", url)

    assert (ended.code, ended.err.count("\n"), "catalog's APIs" in ended.err) == (1, 1, True), ended
