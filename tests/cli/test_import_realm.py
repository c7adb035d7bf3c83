"""`arco import realm`: from a server of Polaris's specification, and from one of our own, step by step."""

import asyncio
import json
import stat
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from aiohttp import web
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import ForbiddenError

from tests.access.management_specification import known
from tests.cli.foreign_realm import MANAGEMENT, TOKEN, ForeignRealm, polaris, serving_polaris, show
from tests.cli.in_process import arco
from tests.cli.process import CompletedProcess, serving
from tests.support.served_realms import LOGINS, Root, bootstrapped, token_of


class Move:
    """A realm without catalogs, into which another is moved."""

    def __init__(self, folder: Path, uri: str, allowed: str = "src") -> None:
        self.folder, self.uri = folder, uri
        self.store = f"file:{folder}/new"
        self.at = ("--store", self.store, "--allowed-location", f"file://{folder}/{allowed}")
        (folder / "token").write_text(TOKEN)

    async def prepare(self) -> Root:
        root = await bootstrapped(self.store)
        await self.run("catalogs", "drop", "arco", "--store", self.store)
        return root

    async def run(self, *arguments: str, code: int = 0, home: str = "") -> CompletedProcess:
        ended = await arco(*arguments, **({"XDG_CONFIG_HOME": home} if home else {}))
        assert ended.code == code, (arguments, ended)
        return ended

    async def report(self, *options: str, code: int = 0) -> Any:
        """The report of an import with these options."""
        source = ("--from", self.uri, "--token-file", f"{self.folder}/token")
        ended = await self.run("import", "realm", *source, *self.at, *options, "--json", code=code)
        return json.loads(ended.out)


def results(report: Any, *kinds: str) -> list[tuple[str, str, str]]:
    """Kind, name and result of each object of the report, of these kinds."""
    return [(e["kind"], e["name"], e["result"]) for e in report["objects"] if not kinds or e["kind"] in kinds]


def counts(report: Any) -> dict[str, int]:
    return {result: count for result, count in report["counts"].items() if count}


def reasons(report: Any, result: str) -> dict[str, str]:
    return {each["name"]: each["reason"] for each in report["objects"] if each["result"] == result}


def files_in(folder: Path) -> Counter[str]:
    paths = (path for path in folder.rglob("*") if path.is_file() and ".arco-store" not in path.parts)
    return Counter(f"{path} {path.stat().st_mtime_ns}" for path in paths)


def test_the_server_of_the_tests_answers_as_polaris_specifies(tmp_path: Path) -> None:
    specification = known()
    faults = [
        fault
        for path, document in polaris(tmp_path).managed.items()
        for fault in specification.faults(document, specification.operations[f"GET {_template(path)}"].answer or "")
    ]
    expected = ("is not described", "TABLE_OF_A_LATER_VERSION", "'index'")
    assert [fault for fault in faults if not any(text in fault for text in expected)] == []
    assert len(faults) == 5


def _template(path: str) -> str:
    """The template of a path of the management API: in these, each second segment is a name."""
    segments = path.removeprefix(f"{MANAGEMENT}/").split("/")
    return "/" + "/".join("{}" if place % 2 else segment for place, segment in enumerate(segments))


async def test_a_plan_names_what_is_to_be_made_and_what_has_no_counterpart_and_writes_nothing(tmp_path: Path) -> None:
    async with serving_polaris(polaris(tmp_path)) as source:
        move = Move(tmp_path, source.uri)
        await move.prepare()
        before = files_in(tmp_path / "new")
        report = await move.report()
        assert files_in(tmp_path / "new") == before
    assert all(line.startswith("GET ") for line in source.requests)
    assert (report["dry_run"], report["secrets"]) == (True, [])
    assert results(report, "table", "catalog", "principal") == [
        ("principal", "root", "equal"),
        ("principal", "ann", "would make"),
        ("principal", "etl", "would make"),
        ("catalog", "lake: property polaris.config.drop-with-purge.enabled", "no counterpart"),
        ("catalog", "lake: property polaris.internal", "no counterpart"),
        ("catalog", "lake: storage field storageName", "no counterpart"),
        ("catalog", "lake: storage field fieldOfALaterVersion", "no counterpart"),
        ("catalog", "lake", "would make"),
        ("catalog", "federated", "no counterpart"),
        ("table", "lake.sales.t", "would make"),
        ("table", "lake.sales.u", "would make"),
    ]
    lacking = reasons(report, "no counterpart")
    assert "the catalog is federated" in lacking["federated"]
    assert "is no privilege" in lacking["TABLE_OF_A_LATER_VERSION on namespace lake.sales to readers"]
    assert "the type 'index'" in lacking["INDEX_READ on index lake.sales.i to readers"]
    doubtful = {name: reason for name, reason in reasons(report, "would make").items() if reason}
    assert (
        doubtful["POLICY_READ on policy lake.sales.gone to readers"] == "if it can be: the source lists no such policy"
    )
    assert "attach it" in doubtful["lake.sales.p"]
    assert reasons(report, "skipped")["federated.catalog_admin"] == "catalog federated has no counterpart"


async def test_what_was_planned_is_made_and_a_second_run_changes_nothing(tmp_path: Path) -> None:
    async with serving_polaris(polaris(tmp_path)) as source:
        move = Move(tmp_path, source.uri)
        await move.prepare()
        planned = await move.report()
        made = await move.report("--apply", "--secrets", f"{tmp_path}/secrets", code=1)
        before = files_in(tmp_path / "new")
        again = await move.report("--apply", "--secrets", f"{tmp_path}/secrets", code=1)
        compared = await move.report("--compare", code=1)
    wanted = {each for each in _with(planned, "would make") if "gone" not in each[1]}
    assert wanted == _with(made, "made")
    assert counts(again)["equal"] == counts(made)["made"] + counts(made)["equal"]
    assert not {"made", "replaced", "would make"} & {*counts(again)}
    assert files_in(tmp_path / "new") == before
    assert set(reasons(compared, "missing")) == {"POLICY_READ on policy lake.sales.gone to readers"}
    lines = [json.loads(line) for line in (tmp_path / "secrets").read_text().splitlines()]
    assert {line["principal"] for line in lines} == {"ann", "etl"}
    assert stat.S_IMODE((tmp_path / "secrets").stat().st_mode) == 0o600
    assert made["secrets"] == []


def _with(report: Any, wanted: str) -> set[tuple[str, str]]:
    return {(kind, name) for kind, name, result in results(report) if result == wanted}


async def test_people_and_engines_of_the_source_may_do_the_same_here(tmp_path: Path) -> None:
    async with serving_polaris(polaris(tmp_path)) as source:
        move = Move(tmp_path, source.uri)
        await move.prepare()
        made = await move.report("--apply", code=1)
    secrets = {each["principal"]: (each["clientId"], each["clientSecret"]) for each in made["secrets"]}
    async with serving(move.store, *move.at[2:], "--quiet", **LOGINS) as server:

        def work() -> None:
            with closing(Root(None, *secrets["ann"]).catalog(server.uri, "lake")) as ann:
                assert ann.load_table("sales.t").scan().to_arrow().num_rows == 0
                assert sorted(name for _, name in ann.list_tables("sales")) == ["t", "u"]
                with pytest.raises(ForbiddenError):
                    ann.load_table("sales.u")
                with pytest.raises(ForbiddenError):
                    ann.load_table("sales.t").append(pa.table({"x": [1]}))
            with closing(Root(None, *secrets["etl"]).catalog(server.uri, "lake")) as etl:
                etl.load_table("sales.u").append(pa.table({"x": [1]}))
                assert etl.load_namespace_properties("sales")["comment"] == "theirs"

        await asyncio.to_thread(work)


async def test_a_commit_at_the_source_after_the_import_is_found_and_taken_over(tmp_path: Path) -> None:
    async with serving_polaris(polaris(tmp_path)) as source:
        move = Move(tmp_path, source.uri)
        await move.prepare()
        await move.report("--apply", code=1)

        def commit(name: str, value: int) -> None:
            theirs = load_catalog(
                "src", type="sql", uri=f"sqlite:///{tmp_path}/src.db", warehouse=f"file://{tmp_path}/src"
            )
            theirs.load_table(("sales", name)).append(pa.table({"x": [value]}))
            show(source.documents, name, theirs.load_table(("sales", name)).metadata_location)

        await asyncio.to_thread(commit, "t", 1)
        compared = await move.report("--compare", code=1)
        why = reasons(compared, "different")
        assert [*why] == ["lake.sales.t"]
        assert "the source has committed to it since the import" in why["lake.sales.t"]
        refused = await move.report("--apply", code=1)
        assert "lake.sales.t" in reasons(refused, "failed")
        plan = await move.report("--refresh")
        assert set(reasons(plan, "would replace")) == {"lake.sales.t"}
        assert "TABLE_READ_DATA on table lake.sales.t to readers" in reasons(plan, "would make")
        refreshed = await move.report("--apply", "--refresh", code=1)
        assert set(reasons(refreshed, "replaced")) == {"lake.sales.t"}
        # The grants of the table that was replaced are those of the new one.
        assert set(reasons(refreshed, "made")) == {"TABLE_READ_DATA on table lake.sales.t to readers"}
        assert not reasons(await move.report("--compare", code=1), "different")

        async with serving(move.store, *move.at[2:], "--quiet", "--auth", "none") as server:
            await asyncio.to_thread(_append, server.uri, "sales.u")
        await asyncio.to_thread(commit, "u", 2)
        diverged = await move.report("--compare", code=1)
        assert "both catalogs have committed" in reasons(diverged, "different")["lake.sales.u"]
        kept = await move.report("--apply", "--refresh", code=1)
        assert "lake.sales.u" in reasons(kept, "failed")


def _append(uri: str, table: str) -> None:
    with closing(load_catalog("new", type="rest", uri=uri, warehouse="lake")) as here:
        here.load_table(table).append(pa.table({"x": [7]}))


async def test_a_comparison_names_what_is_only_here_and_what_differs(tmp_path: Path) -> None:
    async with serving_polaris(polaris(tmp_path)) as source:
        move = Move(tmp_path, source.uri)
        await move.prepare()
        await move.report("--apply", code=1)
        at = ("--store", move.store)
        await move.run("principals", "create", "eve", *at)
        await move.run("grants", "add", "readers", "TABLE_READ_DATA", "--warehouse", "lake", *move.at)
        await move.run("grants", "revoke", "writers", "CATALOG_MANAGE_CONTENT", "--warehouse", "lake", *move.at)
        await move.run("principals", "update", "ann", "--property", "team=x", *at)
        await move.run("catalogs", "update", "lake", "--remove-property", "owner", *move.at)
        await move.run("rename", "sales.u", "sales.v", "--warehouse", "lake", *move.at)
        compared = await move.report("--compare", code=1)
    assert set(reasons(compared, "only here")) == {
        "eve",
        "TABLE_READ_DATA on catalog lake to readers",
        "lake.sales.v",
    }
    assert reasons(compared, "different") == {
        "ann": "here differ: property team",
        "lake": "here differ: property owner",
    }
    assert set(reasons(compared, "missing")) == {
        "lake.sales.u",
        "CATALOG_MANAGE_CONTENT on catalog lake to writers",
        "POLICY_READ on policy lake.sales.gone to readers",
    }


async def test_a_login_at_polaris_is_used(tmp_path: Path) -> None:
    async with serving_polaris(polaris(tmp_path)) as source:
        move = Move(tmp_path, source.uri)
        await move.prepare()
        (tmp_path / "secret").write_text("theirs")
        home = str(tmp_path / "config")
        await move.run("login", source.uri, "--client-id", "a", "--secret-file", f"{tmp_path}/secret", home=home)
        ended = await move.run("import", "realm", "--from", source.uri, *move.at, home=home)
        assert "would make" in ended.out
        no_login = await move.run("import", "realm", "--from", source.uri, *move.at, code=1)
        assert "accepts no request without a login" in no_login.err


async def test_a_source_that_can_not_be_read_whole_changes_nothing(tmp_path: Path) -> None:
    async with serving_polaris(polaris(tmp_path)) as source:
        move = Move(tmp_path, source.uri)
        await move.prepare()
        del source.documents[f"{MANAGEMENT}/catalogs/lake/catalog-roles/readers/grants"]
        arguments = ("--from", source.uri, "--token-file", f"{tmp_path}/token", *move.at)
        ended = await move.run("import", "realm", *arguments, "--apply", code=1)
        assert "the one here changed while it was read: nothing at" in ended.err
        source.documents[f"{MANAGEMENT}/catalogs/lake/catalog-roles/readers/grants"] = {"grants": [{"type": "table"}]}
        ended = await move.run("import", "realm", *arguments, "--apply", code=1)
        assert "the answer is none of" in ended.err
    assert "ann" not in (await move.run("principals", "list", "--store", move.store)).out


async def test_a_file_that_others_may_read_gets_no_secrets(tmp_path: Path) -> None:
    async with serving_polaris(polaris(tmp_path)) as source:
        move = Move(tmp_path, source.uri)
        await move.prepare()
        (tmp_path / "open").write_text("")
        (tmp_path / "open").chmod(0o644)
        (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
        for name in ("open", "link"):
            arguments = ("--from", source.uri, "--token-file", f"{tmp_path}/token", *move.at)
            await move.run("import", "realm", *arguments, "--apply", "--secrets", f"{tmp_path}/{name}", code=1)
    assert source.requests == []
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize(
    "wrong",
    [
        (),
        ("--from", "http://127.0.0.1:1", "name"),
        ("--from", "http://127.0.0.1:1", "--only", "a"),
        ("--from", "http://127.0.0.1:1", "--compare", "--apply"),
    ],
)
async def test_options_that_do_not_go_together_are_wrong_usage(tmp_path: Path, wrong: Sequence[str]) -> None:
    assert (await arco("import", "realm", *wrong, "--store", f"file:{tmp_path}")).code == 2
    assert (await arco("import", "folder", f"file:{tmp_path}", "--compare", "--store", f"file:{tmp_path}")).code == 2


async def test_redirects_and_other_servers_are_not_followed(tmp_path: Path) -> None:
    realm = ForeignRealm()
    async with serving_polaris(realm), serving_polaris(ForeignRealm()) as other:
        realm.documents[f"{MANAGEMENT}/catalogs"] = web.Response(
            status=307, headers={"location": f"{other.uri}{MANAGEMENT}/catalogs"}
        )
        move = Move(tmp_path, realm.uri)
        await move.prepare()
        arguments = ("--token-file", f"{tmp_path}/token", *move.at)
        ended = await move.run("import", "realm", "--from", realm.uri, *arguments, code=1)
        assert "status 307" in ended.err
        assert other.requests == []
    ended = await move.run("import", "realm", "--from", "http://polaris.example.com", *arguments, code=1)
    assert "must be an https URL" in ended.err


async def test_a_realm_of_our_own_is_moved_switched_and_moved_back(tmp_path: Path) -> None:
    """The steps of docs/migration.md, with our own server on both sides."""
    old, key = f"file:{tmp_path}/old", {**LOGINS}
    root = await bootstrapped(old)
    async with serving(old, "--quiet", **key) as server:

        def fill() -> None:
            with closing(root.catalog(server.uri)) as catalog:
                catalog.create_namespace(("a",))
                catalog.create_namespace(("a", "b"))
                for name in (("a", "t"), ("a", "b", "u")):
                    catalog.create_table(name, schema=pa.schema([("x", pa.int64())])).append(pa.table({"x": [1]}))

        await asyncio.to_thread(fill)
        move = Move(tmp_path, server.uri, "old/arco")
        (tmp_path / "token").write_text(await token_of(server.uri, root.client_id, root.secret))
        await move.prepare()
        made = await move.report("--apply")
        assert ("table", "arco.a.b.u", "made") in results(made)
        assert counts(await move.report("--compare")).keys() == {"equal"}
    # The switch: people write here, and the source is stopped.
    async with serving(move.store, *move.at[2:], "--quiet", **key) as here:
        new = json.loads((await move.run("bootstrap", "--reset-root", "--store", move.store, "--json")).out)
        back = Root(None, new["client_id"], new["client_secret"])

        def write() -> None:
            with closing(back.catalog(here.uri)) as catalog:
                catalog.load_table(("a", "t")).append(pa.table({"x": [2]}))

        await asyncio.to_thread(write)
    # The way back: the source gets the table as it is here now.
    async with serving(old, "--quiet", **key) as server:
        (tmp_path / "token").write_text(await token_of(server.uri, root.client_id, root.secret))
        to = ("--to", server.uri, "--to-warehouse", "arco", "--token-file", f"{tmp_path}/token", "--json")
        export = ("export", *to, "--warehouse", "arco", *move.at, "--apply")
        kept = json.loads((await move.run(*export, code=1)).out)
        assert set(reasons(kept, "different")) == {"a.t"}
        assert set(reasons(json.loads((await move.run(*export, "--replace")).out), "replaced")) == {"a.t"}

        def read() -> list[int]:
            with closing(root.catalog(server.uri)) as catalog:
                return sorted(catalog.load_table(("a", "t")).scan().to_arrow()["x"].to_pylist())

        assert await asyncio.to_thread(read) == [1, 2]


async def test_a_second_run_does_not_send_its_user_to_the_secrets_of_the_first(tmp_path: Path) -> None:
    async with serving_polaris(polaris(tmp_path)) as source:
        move = Move(tmp_path, source.uri)
        await move.prepare()
        arguments = ("--from", source.uri, "--token-file", f"{tmp_path}/token", *move.at)
        options = ("--apply", "--secrets", f"{tmp_path}/secrets")
        first = await move.run("import", "realm", *arguments, *options, code=1)
        second = await move.run("import", "realm", *arguments, *options, code=1)
    assert "New secrets of principals are in" in first.out
    assert "secrets" not in second.out
