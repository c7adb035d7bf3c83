"""The commands over a store with a realm: its catalogs by name, what happened to it, and all catalogs at once."""

import asyncio
import json
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from arco_catalog.cli import bootstrap, catalogs
from arco_catalog.cli.bootstrap import storage_of
from arco_catalog.cli.command import CatalogOptions
from arco_catalog.cli.finders import find_catalog
from arco_catalog.cli.program import main
from arco_catalog.cli.session import open_session
from arco_catalog.iceberg.errors import NoSuchNamespace, NoSuchTable, Unavailable
from arco_catalog.operations.create import create_table
from arco_catalog.operations.drop import drop_table
from arco_catalog.operations.namespaces import create_namespace, drop_namespace
from arco_catalog.protocol.catalog import Session
from arco_catalog.state.locations import Location
from arco_catalog.state.realm import CatalogEntry
from storage_backends import StoreUnavailable
from tests.cli.in_process import arco
from tests.cli.process import TIMEOUT_SECONDS, serving
from tests.support.served_realms import LOGINS, Root
from tools.support.request_bodies import schema

Captured = pytest.CaptureFixture[str]


class Store:
    """A store with a realm, and `arco` over it."""

    def __init__(self, folder: Path, captured: Captured, realm: str | None = None) -> None:
        self.url = f"file:{folder}"
        self.folder = folder
        self.realm = realm
        self.captured = captured
        self.root = self.json("bootstrap")

    @property
    def options(self) -> Sequence[str]:
        return ("--store", self.url, *(("--realm", self.realm) if self.realm is not None else ()))

    def run(self, *command: str, code: int = 0) -> str:
        """Runs a command, and returns its output; if it fails, its error."""
        assert main([*command, *self.options], {}) == code
        out, err = self.captured.readouterr()
        return err if code else out

    def json(self, *command: str, code: int = 0) -> Any:
        """The document that it prints."""
        assert main([*command, *self.options, "--json"], {}) == code
        return json.loads(self.captured.readouterr().out)

    def empty(self, catalog: str) -> None:
        """Drops all tables of `db`, and `db`, if the catalog has it."""

        async def drop() -> None:
            async with open_session(
                CatalogOptions(self.url, catalog, realm=self.realm), "test", find_catalog, writes=True
            ) as session:
                for name in ("t", "u"):
                    with suppress(NoSuchTable, NoSuchNamespace):
                        await drop_table(session, ("db",), name, purge=False)
                with suppress(NoSuchTable, NoSuchNamespace):
                    await drop_namespace(session, ("db",))

        asyncio.run(drop())

    def without_namespace(self, catalog: str) -> None:
        """Drops `db` of a catalog."""

        async def drop() -> None:
            async with open_session(
                CatalogOptions(self.url, catalog, realm=self.realm), "test", find_catalog, writes=True
            ) as session:
                await drop_namespace(session, ("db",))

        asyncio.run(drop())

    def table(self, catalog: str, name: str) -> None:
        """Makes a table in `db` of a catalog."""

        async def make() -> None:
            options = CatalogOptions(self.url, catalog, realm=self.realm)
            async with open_session(options, "test", find_catalog, writes=True) as session:
                if name == "t":
                    await create_namespace(session, ("db",), {})
                await create_table(session, ("db",), {"name": name, "schema": schema("x")})

        asyncio.run(make())


@pytest.fixture(params=[None, "acme"])
def store(request: pytest.FixtureRequest, tmp_path: Path, capsys: Captured) -> Store:
    """One with the catalogs `arco` and `sales`, of a realm at its root, or below a folder."""
    made = Store(tmp_path / "store", capsys, request.param)
    made.run("catalogs", "create", "sales")
    return made


def test_catalogs_are_made_listed_shown_changed_and_dropped(store: Store) -> None:
    base = f"file://{store.folder}{'' if store.realm is None else '/acme'}"
    made = store.json("catalogs", "create", "hr", "--type", "EXTERNAL", "--property", "owner=ada", "--property", "x=y")
    assert (made["type"], made["properties"]) == (
        "EXTERNAL",
        {"default-base-location": f"{base}/hr", "owner": "ada", "x": "y"},
    )
    assert made["storageConfigInfo"] == {"storageType": "FILE", "allowedLocations": [f"{base}/hr"]}
    assert [each["name"] for each in store.json("catalogs", "list")] == ["arco", "hr", "sales"]
    assert f"sales  INTERNAL  FILE     {base}/sales\n" in store.run("catalogs", "list")

    more = ("--catalog-location", f"{base}/old", f"{base}/older", "--storage-config", '{"note": "kept", "gone": null}')
    store.run("catalogs", "update", "hr", "--remove-property", "x", "--property", "owner=bob", *more)
    shown = store.json("catalogs", "show", "hr")
    assert shown["entityVersion"] == 2
    assert shown["properties"] == {"default-base-location": f"{base}/hr", "owner": "bob"}
    assert shown["storageConfigInfo"] == {
        "storageType": "FILE",
        "allowedLocations": [f"{base}/hr", f"{base}/old", f"{base}/older"],
        "note": "kept",
    }
    text = store.run("catalogs", "show", "hr")
    assert f"allowed location  {base}/old\n" in text
    assert "property          owner=bob" in text

    assert store.run("catalogs", "drop", "hr") == "Dropped catalog 'hr'.\n"
    assert "Catalog does not exist: hr" in store.run("catalogs", "show", "hr", code=2)


def test_what_the_management_api_refuses_is_refused_here(store: Store) -> None:
    store.table("sales", "t")
    base = store.json("catalogs", "show", "sales")["properties"]["default-base-location"]
    refused: Mapping[str, tuple[str, ...]] = {
        "Catalog sales is not empty": ("drop", "sales"),
        "Catalog already exists: sales": ("create", "sales"),
        f"overlaps {base}, a location of another catalog": ("create", "x", "--default-base-location", f"{base}/x"),
        "outside the locations that this server may use": ("create", "x", "--default-base-location", "file:///x"),
        "lies in a catalog's own state": ("create", "x", "--catalog-location", f"{base}/_catalog"),
        "has the reserved prefix": ("create", "x", "--property", "polaris.x=y"),
        "storageType must be S3, GCS, AZURE or FILE": ("create", "x", "--storage-config", '{"storageType": "TAPE"}'),
        "is not a location of storage type S3": ("create", "x", "--storage-config", '{"storageType": "S3"}'),
        "Cannot modify storage type": ("update", "sales", "--storage-config", '{"storageType": "GCS"}'),
        "--storage-config takes a JSON object": ("create", "x", "--storage-config", "[]"),
        "--property takes KEY=VALUE": ("create", "x", "--property", "x"),
        "give --default-base-location": ("create", "a b"),
    }
    for why, command in refused.items():
        assert why in store.run("catalogs", *command, code=1), command
    assert "Catalog does not exist: x" in store.run("catalogs", "drop", "x", code=2)
    assert [each["name"] for each in store.json("catalogs", "list")] == ["arco", "sales"]


def test_without_a_realm_there_are_none(tmp_path: Path, capsys: Captured) -> None:
    store = f"file:{tmp_path}/store"
    for action in (["list"], ["create", "x"], ["drop", "x"]):
        assert main(["catalogs", *action, "--store", store], {}) == 2
        assert "there is no realm" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", [["list", "x"], ["create"], ["drop"], ["rename", "x"], ["update", "x"]])
def test_which_catalog_is_reported_unless_they_are_listed(words: list[str], tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["catalogs", *words, "--store", f"file:{tmp_path}"], {})


def test_every_command_for_tables_works_on_a_catalog_by_its_name(store: Store) -> None:
    store.table("sales", "t")
    there = ("--warehouse", "sales")
    metadata = store.json("show", "db.t", *there)["metadata_location"]

    assert [each["full_name"] for each in store.json("ls", "-R", *there)] == ["db", "db.t"]
    assert store.json("info", "db.t", *there)["name"] == "db.t"
    assert len(store.json("receipts", "db.t", *there)) == 1
    assert store.json("fsck", *there)["ok"]
    store.run("rename", "db.t", "db.u", *there)
    store.run("drop", "db.u", *there)
    store.run("undrop", "db.u", *there)
    store.run("drop", "db.u", *there)
    store.run("register", "db.v", metadata, *there)
    assert store.json("ls", "db", *there)[0]["full_name"] == "db.v"
    listed = store.folder / "tables.txt"
    listed.write_text(f"other.w {metadata}\n")
    assert store.json("import", "list", str(listed), *there, code=1)["counts"]["failed"] == 1  # db.v has it
    store.run("drop", "db.v", *there)
    assert store.json("import", "list", str(listed), "--apply", *there)["counts"]["registered"] == 1
    kinds = [each["kind"] for each in store.json("history", *there)]
    assert {"rename-table", "drop-table", "undrop", "register-table"} & {*kinds}
    assert store.json("ls", "-R", "--warehouse", "arco") == []
    assert "`arco catalogs list`" in store.run("ls", "--warehouse", "hr", code=2)
    assert main(["ls", *store.options, "--json"], {"ARCO_WAREHOUSE": "sales"}) == 0


def test_history_shows_who_changed_a_role_and_a_grant(store: Store) -> None:
    realm = [each["kind"] for each in store.json("history", "--realm-history")]
    assert realm == ["create-catalog", "create-catalog", "bootstrap"]
    text = store.run("history", "--realm-history")
    assert "bootstrap       root   operator (arco)" in text


async def test_history_names_role_and_privilege_where_they_were_given_over_http(tmp_path: Path) -> None:
    store = f"file:{tmp_path}/store"
    made = json.loads((await arco("bootstrap", "--store", store, "--json")).out)
    root = Root(None, made["client_id"], made["client_secret"])
    async with serving(store, "--workers", "1", "--quiet", **LOGINS) as server:
        session = root.catalog(server.uri)._session
        management = f"{server.uri}/api/management/v1"
        for method, path, body in (
            ("POST", "principals", {"principal": {"name": "ada"}}),
            ("POST", "principal-roles", {"principalRole": {"name": "analysts"}}),
            ("PUT", "principals/ada/principal-roles", {"principalRole": {"name": "analysts"}}),
            ("POST", "catalogs/arco/catalog-roles", {"catalogRole": {"name": "reading"}}),
            ("PUT", "principal-roles/analysts/catalog-roles/arco", {"catalogRole": {"name": "reading"}}),
            (
                "PUT",
                "catalogs/arco/catalog-roles/reading/grants",
                {"grant": {"type": "catalog", "privilege": "TABLE_READ_DATA"}},
            ),
        ):
            answer = await asyncio.to_thread(session.request, method, f"{management}/{path}", json=body)
            assert answer.status_code < 300, answer.text

    realm = (await arco("history", "--store", store, "--realm-history")).out
    catalog = (await arco("history", "--store", store)).out
    [given] = [line for line in realm.splitlines() if "assign-principal-role" in line]
    assert "ada: analysts  root (" in given
    assert "reading: TABLE_READ_DATA on the catalog  root (" in catalog
    assert "analysts: reading" in catalog


def test_reconcile_goes_over_all_catalogs_and_states_which_lacks_what(store: Store) -> None:
    for catalog in ("arco", "sales"):
        store.table(catalog, "t")
    lost = sorted(store.folder.rglob("iceberg/committed/*"))
    assert len(lost) == 2
    for receipt in lost:
        receipt.unlink()

    dry = store.json("reconcile", "--dry-run")
    assert (dry["missing_count"], dry["written"]) == (2, 0)
    assert [(each["name"], each["missing_count"]) for each in dry["catalogs"]] == [("arco", 1), ("sales", 1)]
    assert "Catalog sales:\n1 tables and views" in store.run("reconcile")
    assert sorted(store.folder.rglob("iceberg/committed/*")) == lost
    assert store.json("reconcile")["missing_count"] == 0


def test_doctor_looks_at_all_catalogs(store: Store) -> None:
    checks = store.json("doctor")["checks"]
    found = [(each["status"], each["found"]) for each in checks if each["check"] == "catalog"]
    assert found == [("ok", "'arco'; changes of names so far: 1"), ("ok", "'sales'; changes of names so far: 1")]
    assert [each["status"] for each in checks if each["check"] == "conditional writes"] == ["ok"]

    [manifest] = [path for path in store.folder.rglob("_catalog/core/manifest.json") if "catalogs" in str(path)]
    manifest.write_text("{")
    broken = [each for each in store.json("doctor", code=1)["checks"] if each["status"] == "failed"]
    assert [each["found"].partition(":")[0] for each in broken] == ["sales"]


def test_init_makes_nothing_beside_a_realm(store: Store) -> None:
    assert "already: nothing was done" in store.run("init", "--warehouse", "sales")
    assert "`arco catalogs create`" in store.run("init", "--warehouse", "beside", code=1)


def test_another_realm_is_another_one(tmp_path: Path, capsys: Captured) -> None:
    a, b = (Store(tmp_path / "store", capsys, name) for name in ("a", "b"))
    a.table("arco", "t")

    assert b.json("ls") == []
    assert len(a.json("ls")) == 1
    no_one = ["ls", "--store", a.url, "--realm", "c"]
    assert main(no_one, {}) == 2
    assert "Realm c does not exist" in capsys.readouterr().err
    assert main(no_one[:3], {}) == 2  # nor is there one at the root, or a catalog without one


def test_the_tenant_of_an_azure_account_is_taken_from_its_settings_or_missed(capsys: Captured) -> None:
    location = Location.parse("abfss://lake@account.dfs.core.windows.net/x")
    known = CatalogOptions("abfss://lake@account/x", "arco", environment={"AZURE_TENANT_ID": "t1"})
    unknown = CatalogOptions("abfss://lake@account/x", "arco")

    assert storage_of(location, known) == {"storageType": "AZURE", "tenantId": "t1"}
    assert capsys.readouterr().err == ""
    assert storage_of(location, unknown) == {"storageType": "AZURE"}
    assert "AZURE_TENANT_ID" in capsys.readouterr().err
    assert storage_of(Location.parse("s3://b/x"), unknown) == {"storageType": "S3"}


def dropped(store: Store) -> list[Path]:
    """Drops a table of each catalog, with purge. Returns their folders."""
    folders = []
    for catalog in ("arco", "sales"):
        store.table(catalog, "t")
        folders.append(Path(store.json("info", "db.t", "--warehouse", catalog)["location"].removeprefix("file://")))
        command = ["drop", "db.t", "--purge", "--warehouse", catalog, *store.options]
        assert main(command, {"ARCO_PURGE_UNDROP_WINDOW": "PT0S"}) == 0
        store.captured.readouterr()
    return folders


def files(folders: Sequence[Path]) -> list[Path]:
    return [file for folder in folders for file in folder.rglob("*") if file.is_file()]


def test_tasks_of_every_catalog_are_done_by_one_run(store: Store) -> None:
    folders = dropped(store)
    assert files(folders)
    lines = [json.loads(line) for line in store.run("tasks", "run", "--all", "--json").splitlines()]
    assert [(line["Warehouse"], line["TasksExecuted"], line["stopped"]) for line in lines] == [
        ("arco", 1, False),
        ("sales", 1, False),
    ]
    assert files(folders) == []
    assert len(store.json("tasks", "list", "--status", "retry_scheduled")) == 1  # until no credentials are valid
    assert store.json("tasks", "list", "--status", "failure") == []
    again = store.run("tasks", "run", "--all", "--seconds", "60")
    assert again == "".join(f"{name}: 0 tasks were executed: 0 completed, 0 failed\n" for name in ("arco", "sales"))


def test_a_task_that_no_catalog_has_is_an_error(store: Store) -> None:
    dropped(store)
    [task] = (each["task_id"] for each in store.json("tasks", "list", "--warehouse", "sales"))

    assert "Task does not exist in any catalog: nothing" in store.run("tasks", "run", "nothing", "--all", code=1)
    assert "sales: 1 tasks were executed" in store.run("tasks", "run", task, "--all")
    assert "sales: 0 tasks were executed" in store.run("tasks", "run", task, "--all")  # it has it, and it has ended


def test_a_bootstrap_that_made_the_realm_and_no_catalog_states_how_to_go_on(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(*_: object, **__: object) -> None:
        raise Unavailable("The object store failed: down")

    monkeypatch.setattr(bootstrap, "make_catalog", fails)
    url = f"file:{tmp_path}"

    assert main(["bootstrap", "--store", url], {}) == 1
    assert "the realm was made, but its catalog arco was not" in capsys.readouterr().err
    assert main(["bootstrap", "--store", url, "--reset-root"], {}) == 0
    assert main(["catalogs", "create", "arco", "--store", url], {}) == 0


async def test_a_server_purges_in_each_catalog_of_its_realms(store: Store) -> None:
    folders = await asyncio.to_thread(dropped, store)
    named = () if store.realm is None else ("--realm", store.realm)
    logged = ("--log-format", "json", "--metrics-namespace", "Test", "--auth", "none")
    async with serving(store.url, "--workers", "1", "--quiet", *logged, *named) as server:
        assert server.process.stderr is not None
        report: dict[str, Any] = {}
        async with asyncio.timeout(TIMEOUT_SECONDS):
            while len(report) < 2:
                line = json.loads(await server.process.stderr.readline())
                if line.get("Operation") == "tasks":
                    report[line["Warehouse"]] = line
        assert {name: line["TasksExecuted"] for name, line in report.items()} == {"arco": 1, "sales": 1}
        assert "_aws" in report["arco"]
    assert files(folders) == []


def test_what_is_reported_of_tasks_must_make_sense(store: Store, capsys: Captured) -> None:
    for words in (["run", "--seconds", "5"], ["list", "--status", "done"]):
        with pytest.raises(SystemExit, match="2"):
            main(["tasks", *words, *store.options], {})
    assert "expected SUBMITTED, ACQUIRING_RESOURCES" in capsys.readouterr().err


def test_all_of_a_realm_is_checked_at_once(store: Store) -> None:
    store.table("sales", "t")
    sound = store.json("fsck", "--all")
    assert (sound["findings"], sound["ok"]) == ([], True)
    assert sound["objects"] > store.json("fsck", "--warehouse", "sales")["objects"]

    state = store.folder / (store.realm or "") / "_realm"
    [pointer] = (state / "catalogs").glob("*/_catalog/iceberg_pointers/*.json")
    pointer.write_bytes(b"{")
    assert [each["code"] for each in store.json("fsck", "--all", code=1)["findings"]] == ["pointer-unreadable"]
    shutil.rmtree(pointer.parents[2])
    assert [each["code"] for each in store.json("fsck", "--all", code=1)["findings"]] == ["catalog-missing"]
    (state / "core/manifest.json").unlink()
    assert [each["code"] for each in store.json("fsck", "--all", code=1)["findings"]] == ["manifest-missing"]


def test_all_of_a_store_without_a_realm_is_its_one_catalog(tmp_path: Path, capsys: Captured) -> None:
    store = f"file:{tmp_path}/store"
    assert main(["fsck", "--all", "--store", store], {}) == 2
    assert main(["init", "--store", store], {}) == 0
    capsys.readouterr()
    assert main(["fsck", "--all", "--store", store], {}) == 0
    assert "Nothing is wrong." in capsys.readouterr().out
    assert main(["fsck", "--all", "--data", "--table", "db.t", "--store", store], {}) == 1
    assert "leave --all out" in capsys.readouterr().err


def test_a_dropped_catalog_is_listed_and_undropped(store: Store) -> None:
    store.run("catalogs", "create", "stock", "--property", "owner=ada")
    store.run("catalogs", "drop", "stock")
    store.run("catalogs", "create", "stock", "--default-base-location", f"{store.url}/{store.realm or 'other'}/other")
    [dropped] = store.json("catalogs", "list", "--dropped")
    assert (dropped["name"], dropped["properties"]["owner"]) == ("stock", "ada")
    assert "give" not in store.run("catalogs", "undrop", "old", "--folder", dropped["folder"])
    assert store.json("catalogs", "show", "old")["properties"]["owner"] == "ada"
    assert store.run("catalogs", "list", "--dropped") == "No catalog here was dropped.\n"


def test_the_first_catalog_of_a_realm_is_undropped_by_its_name_and_by_its_folder(store: Store) -> None:
    folder = f"{store.realm}/arco" if store.realm else "arco"
    store.run("catalogs", "drop", "arco")
    store.run("catalogs", "undrop", "arco")
    store.run("catalogs", "drop", "arco")
    assert "there is no dropped catalog 'old'" in store.run("catalogs", "undrop", "old", code=2)
    store.run("catalogs", "undrop", "old", "--folder", folder)
    assert "there is no dropped catalog 'arco'" in store.run("catalogs", "undrop", "arco", code=2)  # it has a name

    assert {each["name"] for each in store.json("catalogs", "list")} == {"old", "sales"}
    if store.realm is not None:
        assert "can't be the state of a catalog" in store.run(
            "catalogs", "undrop", "x", "--folder", "another/arco", code=1
        )


@pytest.mark.parametrize("gone", [False, True], ids=["damaged", "gone"])
def test_a_dropped_catalog_whose_head_is_damaged_is_named_beside_the_others(store: Store, gone: bool) -> None:
    for name in ("one", "two"):
        store.run("catalogs", "create", name)
        store.run("catalogs", "drop", name)
    folder, other = (each["folder"] for each in store.json("catalogs", "list", "--dropped"))
    lose(store.folder / folder / "_catalog/core/manifest.json", gone)
    assert [each["folder"] for each in store.json("catalogs", "list", "--dropped", code=1)] == [other]
    assert f"{folder} can't be read" in store.run("catalogs", "list", "--dropped", code=1)
    assert "1 of which can't be read" in store.run("catalogs", "undrop", "one", code=2)
    assert "two" in store.run("catalogs", "undrop", "two")


@pytest.mark.parametrize("command", [["gc"], ["gc", "--delete"], ["reconcile"]], ids=" ".join)
def test_a_catalog_whose_head_is_damaged_keeps_no_other_from_maintenance(store: Store, command: list[str]) -> None:
    store.table("sales", "t")
    store.run("catalogs", "create", "later")
    [path] = [
        each for each in store.folder.rglob("_catalog/core/manifest.json") if b"create-table" in each.read_bytes()
    ]
    lose(path, gone=False)
    found = store.json(*command, code=1)
    assert [each["name"] for each in found["catalogs"]][:3] == ["arco", "later", "sales"]
    [reason] = [reason for each in found["catalogs"] for reason in each["unreadable"]]
    assert reason.startswith("catalog sales: ")
    assert "manifest.json is not JSON" in reason


def damage_sales(store: Store, gone: bool) -> None:
    """Makes the catalog `later`, and damages the HEAD of `sales` or deletes it."""
    store.table("sales", "t")
    store.run("catalogs", "create", "later")
    [path] = [
        each for each in store.folder.rglob("_catalog/core/manifest.json") if b"create-table" in each.read_bytes()
    ]
    lose(path, gone)


@pytest.mark.parametrize("gone", [False, True], ids=["damaged", "gone"])
@pytest.mark.parametrize(
    "command", [["upgrade"], ["upgrade", "--dry-run"], ["adopt"], ["adopt", "--original-is-deleted"]], ids=" ".join
)
def test_a_catalog_whose_head_is_damaged_is_named_and_left_out(store: Store, command: list[str], gone: bool) -> None:
    damage_sales(store, gone)

    found = store.json(*command, code=1)
    [damaged] = found["left_out"]
    assert (damaged["owner"], damaged["name"]) == ("catalog", "sales")
    assert "manifest.json" in damaged["error"]
    if command[0] == "upgrade":
        assert [each["name"] for each in found["registries"] if each["owner"] == "catalog"] == ["arco", "later"]
    assert "`arco restore --warehouse sales` restores it" in store.run(*command, code=1)


def test_the_backup_of_a_realm_is_restored_where_none_of_its_registries_is_left(store: Store, tmp_path: Path) -> None:
    store.table("arco", "t")
    store.run("backup", "--to", f"{tmp_path}/backup")
    [catalog], [realm] = store.folder.glob("**/arco/_catalog"), store.folder.glob("**/_realm")
    catalog.rename(tmp_path / "catalog")

    refused = store.run("restore", "--from", f"{tmp_path}/backup", code=1)
    assert "_realm/core/manifest.json exists: restore a backup into a store that has neither the realm" in refused

    realm.rename(tmp_path / "realm")
    store.run("restore", "--from", f"{tmp_path}/backup")
    assert "db.t" in store.run("ls", "-R", "--warehouse", "arco")


def test_the_restore_of_a_realm_continues_after_a_stop_between_the_heads_of_its_catalogs(
    store: Store, tmp_path: Path
) -> None:
    store.table("arco", "t")
    store.run("backup", "--to", f"{tmp_path}/backup")
    shutil.rmtree(store.folder)
    store.folder.mkdir()
    store.run("restore", "--from", f"{tmp_path}/backup")
    [realm] = store.folder.glob("**/_realm/core/manifest.json")
    heads = [*store.folder.glob("**/_catalog/core/manifest.json")]
    kept = heads.pop()
    before = kept.read_bytes()
    for head in (realm, *heads):  # as a run leaves it that is stopped after its first HEAD
        head.unlink()

    store.run("restore", "--from", f"{tmp_path}/backup")

    assert kept.read_bytes() == before
    assert "db.t" in store.run("ls", "-R", "--warehouse", "arco")


def test_the_backup_of_a_realm_is_not_restored_over_a_catalog_that_is_not_of_it(store: Store, tmp_path: Path) -> None:
    store.run("backup", "--to", f"{tmp_path}/backup")
    [realm] = store.folder.glob("**/_realm")
    realm.rename(tmp_path / "realm")

    refused = store.run("restore", "--from", f"{tmp_path}/backup", code=1)

    assert "_catalog/core/manifest.json exists: restore a backup into a store that has neither the realm" in refused


@pytest.mark.parametrize("gone", [False, True], ids=["damaged", "gone"])
def test_a_backup_has_the_other_catalogs_of_a_realm_with_a_damaged_one(
    store: Store, tmp_path: Path, gone: bool
) -> None:
    damage_sales(store, gone)
    store.table("arco", "t")
    made = store.json("backup", "--to", f"{tmp_path}/one", code=1)
    [damaged] = made["left_out"]
    assert damaged["name"] == "sales"
    assert "manifest.json" in damaged["error"]
    assert "catalog sales: left out, as it can't be read" in store.run("backup", "--to", f"{tmp_path}/two", code=1)
    assert len(made["registries"]) == 3

    shutil.rmtree(store.folder)
    store.folder.mkdir()
    assert "nothing of the catalog sales, which could not be read" in store.run("restore", "--from", f"{tmp_path}/one")

    assert "db.t" in store.run("ls", "-R", "--warehouse", "arco")
    assert [each["name"] for each in store.json("catalogs", "list")] == ["arco", "later"]
    store.run("catalogs", "create", "sales")


@pytest.mark.parametrize("gone", [False, True], ids=["damaged", "gone"])
def test_doctor_advises_to_restore_a_damaged_head(store: Store, gone: bool) -> None:
    damage_sales(store, gone)

    checks = store.json("doctor", code=1)["checks"]

    [failed] = [each for each in checks if each["status"] == "failed"]
    assert failed["found"].startswith("sales: ")
    assert "`arco restore --warehouse sales` restores it" in failed["advice"]


def lose(path: Path, gone: bool) -> None:
    """Deletes a file, or cuts it in half."""
    body = path.read_bytes()
    path.unlink()
    if not gone:
        path.write_bytes(body[: len(body) // 2])


@pytest.mark.parametrize("gone", [False, True], ids=["damaged", "gone"])
def test_a_realm_whose_head_is_damaged_is_named_beside_the_others(gone: bool, tmp_path: Path, capsys: Captured) -> None:
    store = Store(tmp_path / "store", capsys, "acme")
    Store(tmp_path / "store", capsys, "beta")
    lose(store.folder / "acme/_realm/core/manifest.json", gone)
    url = ("--store", store.url)
    assert main(["realms", "list", *url, "--json"], {}) == 1
    damaged, other = json.loads(capsys.readouterr().out)
    assert (damaged["realm"], other["realm"], other["dropped"]) == ("acme", "beta", False)
    assert "manifest.json" in damaged["error"]
    assert main(["realms", "list", *url], {}) == 1
    out, err = capsys.readouterr()
    assert "corrupt" in out
    assert "Realm acme can't be read" in err


def test_a_catalog_whose_drop_stopped_before_its_name_was_free_is_undropped_or_dropped_by_that_name(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(session: Session, entry: CatalogEntry) -> None:
        raise StoreUnavailable("the store does not answer")

    store.run("catalogs", "create", "stock")
    with monkeypatch.context() as patch:
        patch.setattr(catalogs, "remove_catalog", fails)
        store.run("catalogs", "drop", "stock", code=1)

    assert store.run("catalogs", "undrop", "stock") == "Restored catalog 'stock'.\n"
    store.table("stock", "t")
    assert "no dropped catalog 'stock'" in store.run("catalogs", "undrop", "stock", code=2)
    store.empty("stock")
    with monkeypatch.context() as patch:
        patch.setattr(catalogs, "remove_catalog", fails)
        store.run("catalogs", "drop", "stock", code=1)
    store.run("catalogs", "drop", "stock")
    assert "stock" not in [each["name"] for each in store.json("catalogs", "list")]


def test_a_name_that_several_dropped_catalogs_have_takes_a_folder(store: Store) -> None:
    for _ in range(2):
        store.run("catalogs", "create", "stock")
        store.run("catalogs", "drop", "stock")
    folders = [each["folder"] for each in store.json("catalogs", "list", "--dropped")]
    message = store.run("catalogs", "undrop", "stock", code=1)
    assert all(folder in message for folder in folders)
    store.run("catalogs", "undrop", "stock", "--folder", folders[0])
    assert "no dropped catalog 'new'" in store.run("catalogs", "undrop", "new", code=2)


def test_purges_are_cancelled_by_a_drop_that_names_them(store: Store) -> None:
    store.run("catalogs", "create", "stock")
    store.table("stock", "t")
    store.run("drop", "db.t", "--purge", "--warehouse", "stock")
    store.without_namespace("stock")
    assert "--cancel-purges" in store.run("catalogs", "drop", "stock", code=1)
    assert "The purge of db.t was cancelled" in store.run("catalogs", "drop", "stock", "--cancel-purges")


def test_a_realm_is_listed_dropped_and_made_anew(store: Store) -> None:
    [found] = store.json("realms", "list")
    assert store.json("realms", "ls") == [found]
    assert (found["realm"], found["dropped"]) == (store.realm or "", False)
    assert "sales" in store.run("realms", "drop", "--principals-are-lost", code=1)
    for name in found["catalogs"]:
        store.empty(name)
        store.run("catalogs", "drop", name)
    assert "--principals-are-lost" in store.run("realms", "drop", code=1)
    assert "Dropped realm" in store.run("realms", "drop", "--principals-are-lost")
    assert store.json("realms", "show")["dropped"] is True
    assert "--reopen" in store.run("catalogs", "create", "stock", code=1)
    assert "--reopen" in store.run("bootstrap", code=1)
    store.run("bootstrap", "--reopen")
    assert store.json("realms", "show")["principals"] == 1
