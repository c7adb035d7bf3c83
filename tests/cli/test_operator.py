"""`arco reconcile`, `history`, `show` and `undrop`, over a folder that holds a real catalog."""

import asyncio
import json
import re
import sys
from asyncio.subprocess import PIPE
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

import pytest

from arco_catalog.cli.columns import format_iso
from arco_catalog.cli.history import as_table as as_history
from arco_catalog.cli.program import main
from arco_catalog.cli.reconcile import Progress, as_text
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.commit import commit_table
from arco_catalog.operations.create import create_view
from arco_catalog.operations.drop import drop_table
from arco_catalog.operations.generic_tables import GenericTable, create_generic_table, drop_generic_table
from arco_catalog.operations.load import load_table
from arco_catalog.operations.open import build_catalog
from arco_catalog.operations.reconcile_stats import ReconcileStats
from arco_catalog.operations.rename import rename_table
from arco_catalog.operations.transaction import commit_transaction
from arco_catalog.planning.answers import TableState
from arco_catalog.state.marker import Slot, WriteSet
from arco_catalog.state.receipt import base_of
from storage_backends import ABSENT, StoreUnavailable
from tests.cli.in_process import arco
from tests.cli.process import finished
from tests.support.scripted_store import Call, Rule, ScriptedFolder
from tools.support.catalog_fixture import NS, CatalogFixture
from tools.support.request_bodies import set_property, view_request
from tools.support.s3_servers import S3Server

HALF_WAY = "/transactions/"


def decides(call: Call) -> bool:
    """Whether a transaction is decided."""
    return HALF_WAY in call.key and b'"status":"pending"' not in call.body


def catalog_in(folder: Path) -> CatalogFixture:
    """The warehouse `arco` of a folder."""
    made = CatalogFixture(ScriptedFolder(folder))
    made.settings = type(made.settings)("arco")
    made.catalog = build_catalog(made.settings, made.store, f"file:{folder}", (), made.runtime)
    return made


@pytest.fixture
async def fixture(folder: Path) -> CatalogFixture:
    """The tables db.t and db.u, with a commit each, in the warehouse `arco` of a folder."""
    made = catalog_in(folder)
    await made.namespace("db")
    for name in ("t", "u"):
        await made.table(name)
        await made.commit(set_property("a", "1"), name)
    return made


def files(folder: Path) -> Mapping[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def committed(folder: Path) -> list[Path]:
    return sorted(folder.rglob("iceberg/committed/*"))


def lose_one(folder: Path) -> tuple[Path, bytes]:
    """Loses the receipt of db.t's commit."""
    [lost] = [path for path in committed(folder) if base_of(r := json.loads(path.read_bytes())) and r["name"] == "t"]
    body = lost.read_bytes()
    lost.unlink()
    return lost, body


def lose_all_of_one(folder: Path) -> None:
    """Loses both receipts of db.t's commit, and its metadata file."""
    lost, body = lose_one(folder)
    Path(str(lost).replace("/committed/", "/pending/")).unlink()
    Path(json.loads(body)["metadata_location"].removeprefix("file://")).unlink()


async def output(folder: Path, *arguments: str, code: int = 0) -> str:
    """What a command prints."""
    ended = await arco(*arguments, "--store", f"file:{folder}")
    assert ended.code == code, ended.err
    return ended.out


async def failed(folder: Path, *arguments: str) -> str:
    """Returns the error message of a command that fails."""
    ended = await arco(*arguments, "--store", f"file:{folder}")
    assert ended.code == 1, ended.out
    return ended.err


async def test_reconcile_states_what_is_missing_then_writes_it(fixture: CatalogFixture, folder: Path) -> None:
    lost, body = lose_one(folder)
    before = files(folder)

    dry = await arco("reconcile", "--dry-run", "--store", f"file:{folder}")

    assert files(folder) == before, "a dry run writes nothing"
    assert dry.code == 0
    assert "2 tables and views: 0 unchanged, 2 walked, 0 of them not to the end" in dry.out
    assert "1 of 4 commits walked had no receipt; nothing was written (dry run)." in dry.out
    [line] = [line for line in dry.out.splitlines() if " db.t " in line]
    assert " tester " in line
    assert "pending receipt only: its writer stopped" in line
    assert dry.err.startswith("arco: 2 walked and 0 unchanged of 2 listed so far, 1 receipts missing, 0 written")

    assert "1 of 4 commits walked had no receipt; 1 were written." in await output(folder, "reconcile")
    assert lost.read_bytes() == body
    printed = json.loads(await output(folder, "reconcile", "--json", "--seconds", "60"))
    assert (printed["pointers"], printed["unchanged"], printed["walked"], printed["missing"]) == (2, 2, 0, [])


async def test_reconcile_fails_when_metadata_cannot_be_read(fixture: CatalogFixture, folder: Path) -> None:
    lose_all_of_one(folder)

    out = await output(folder, "reconcile", code=1)

    assert "Could not be read:\n  " in out
    assert "Failed to open input stream for file: file:///" in out


async def test_history_shows_who_made_renamed_and_dropped_what(fixture: CatalogFixture, folder: Path) -> None:
    await rename_table(fixture.session(), (NS, "t"), (NS, "dotted.name"))
    await drop_table(fixture.session(), NS, "u", purge=True)
    before = files(folder)

    heading, *lines = (await output(folder, "history")).splitlines()

    assert heading.split() == ["TIME", "(UTC)", "COMMIT", "WHAT", "NAME", "BY", "ENTITY"]
    cells = [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in lines]
    assert [(cell[2], cell[3], cell[4]) for cell in cells] == [
        ("drop-table (purge)", "db.u", "tester (tests)"),
        ("rename-table", 'db.t -> db."dotted.name"', "tester (tests)"),
        ("create-table", "db.u", "tester (tests)"),
        ("create-table", "db.t", "tester (tests)"),
        ("create-namespace", "db", "tester (tests)"),
    ]
    assert [cell[1] for cell in cells] == ["5", "4", "3", "2", "1"]
    assert files(folder) == before
    of_one = json.loads(await output(folder, "history", "--table", 'db."dotted.name"', "--json"))
    assert [each["kind"] for each in of_one] == ["rename-table"]
    entity = of_one[0]["entity"]
    of_entity = json.loads(await output(folder, "history", "--table", entity, "--json"))
    assert [(each["kind"], each["entity"]) for each in of_entity] == [
        ("rename-table", entity),
        ("create-table", entity),
    ]
    nothing = "The history, which is kept for a time, has nothing about db.none.\n"
    assert await output(folder, "history", "--table", "db.none") == nothing
    whole = json.loads(await output(folder, "history", "--json", "--limit", "2"))
    assert [(each["kind"], each["principal"], "answer" in each) for each in whole] == [
        ("drop-table", "tester", False),
        ("rename-table", "tester", False),
    ]


async def test_show_shows_pointer_moves_intent_and_markers(fixture: CatalogFixture, folder: Path) -> None:
    assert isinstance(fixture.store, ScriptedFolder)
    await fixture.commit(set_property("a", "2"), key=fixture.key())  # a finished marker
    fixture.store.rules = [Rule(decides, fails=StoreUnavailable("dead"))]
    changes = [(NS, name, set_property("p", "1")) for name in ("t", "u")]
    with pytest.raises(Exception, match="dead"):
        await commit_transaction(fixture.session(key=fixture.key(), path="/tx"), changes)
    fixture.store.rules = []
    head = await fixture.session().state.head()
    entity = str((head.index.get("relation\ndb\nt") or {})["entity"])
    left = Slot(
        "AN-ATTEMPT", WriteSet(pointers={entity: 1}), {"method": "POST", "path": "/p", "principal": "eve"}, None
    )
    await fixture.store.put(fixture.catalog.paths.marker_slot("ab" * 32, 0), left.body, ABSENT)
    before = files(folder)

    text = await output(folder, "show", "db.t")

    assert files(folder) == before
    lines = text.splitlines()
    assert lines[0] == "table        db.t (live)"
    assert lines[1] == f"entity       {entity}"
    assert any(line.startswith("metadata     file:///") and "/00002-" in line for line in lines)
    assert any(line.startswith("  from       file:///") and "/00001-" in line for line in lines)
    [intent] = [line for line in lines if line.startswith("intent ")]
    assert ", pending, last moved " in intent
    assert text.count("POST /p") == 1
    assert " eve " in text
    assert "POST /tx" in text

    shown = json.loads(await output(folder, "show", "db.t", "--json"))
    assert (shown["sequence"], len(shown["recent"]), shown["intent"]["status"]) == (4, 4, "pending")
    assert sorted(marker["request"]["path"] for marker in shown["open_markers"]) == ["/p", "/tx"]
    assert shown["all_markers_seen"] is True
    other = json.loads(await output(folder, "show", "db.u", "--json"))
    assert [marker["request"]["path"] for marker in other["open_markers"]] == ["/tx"]


async def test_show_shows_what_was_dropped_and_undrop_brings_it_back(fixture: CatalogFixture, folder: Path) -> None:
    before = json.loads(await output(folder, "show", "db.t", "--json"))
    await drop_table(fixture.session(), NS, "t", purge=False)

    dropped = await output(folder, "show", "db.t")
    assert dropped.startswith("table        db.t (dropped)\n")
    assert "No request in progress names it." in dropped

    assert await output(folder, "undrop", "db.t") == "Restored db.t\n"
    again = json.loads(await output(folder, "show", "db.t", "--json"))
    for kept in ("entity", "metadata_location", "locations", "state", "uuid"):
        assert again[kept] == before[kept]
    body = set_property("b", "1")
    await commit_table(fixture.session(body), NS, "t", body)
    newest = json.loads(await output(folder, "history", "--json", "--limit", "1"))[0]
    assert (newest["kind"], newest["principal"], newest["source"]) == ("undrop", "operator", {"kind": "Cli"})


async def test_a_purge_that_was_requested_is_shown_and_undone(fixture: CatalogFixture, folder: Path) -> None:
    await drop_table(fixture.session(), NS, "t", purge=True)
    assert (await output(folder, "show", "db.t")).startswith("table        db.t (dropped, a purge was requested)\n")
    assert json.loads(await output(folder, "show", "db.t", "--json"))["purge_requested"] is True
    assert (await output(folder, "undrop", "db.t")).startswith(
        "Restored db.t: its files would have been deleted after "
    )
    assert json.loads(await output(folder, "show", "db.t", "--json"))["purge_requested"] is False


async def test_undrop_states_which_file_is_gone(fixture: CatalogFixture, folder: Path) -> None:
    """As after `DROP TABLE ... PURGE` in Spark, which deletes files itself."""
    shown = json.loads(await output(folder, "show", "db.t", "--json"))
    await drop_table(fixture.session(), NS, "t", purge=False)
    await fixture.store.delete(shown["metadata_location"].removeprefix(f"file://{folder}/"))

    for force in ([], ["--force"]):
        assert await failed(folder, "undrop", "db.t", *force) == (
            "arco: db.t cannot be restored: its metadata file is missing. "
            f"Failed to open input stream for file: {shown['metadata_location']}\n"
        )


async def test_what_a_terminal_would_act_on_is_escaped(fixture: CatalogFixture, folder: Path) -> None:
    name = "a\u202eb\x9bc"
    await fixture.table(name)
    for arguments in (["show", f"db.{name}"], ["receipts", f"db.{name}"], ["history"]):
        for form in ([], ["--json"]):
            printed = await output(folder, *arguments, *form)
            assert not {"\u202e", "\x9b"} & set(printed)
            assert arguments[0] == "receipts" or "a\\u202eb\\u009bc" in printed
    printed = json.loads(await output(folder, "show", f"db.{name}", "--json"))
    assert printed["name"] == f"db.{name}"
    assert "a\\u202eb\\u009bc" in await failed(folder, "show", f"db.{name}.none")


def test_a_run_that_stopped_reports_it_and_long_tables_are_cut() -> None:
    gone: JsonObject = {"table": None, "entity": "E", "metadata_ms": 0, "metadata_location": "f", "told_by": "f"}
    stats = ReconcileStats(pointers=1234, stopped=True, missing_count=1120, missing=[gone] * 100)

    lines = as_text(stats, dry=False).splitlines()

    assert lines[0].startswith("1,234 tables and views: ")
    assert lines[2] == "Stopped before the end; the next run resumes from here."
    assert lines[5] == "1970-01-01 00:00:00.000  entity E  -   both receipts are gone; found in metadata  f"
    assert lines[-1] == "... and 1,020 more"


def test_progress_is_reported_at_once_and_then_once_a_second(capsys: pytest.CaptureFixture[str]) -> None:
    clock = iter([0, 10, 999, 1000, 1500, 2000])
    progress = Progress(lambda: next(clock))

    for walked in range(6):
        progress.report(ReconcileStats(walked=walked))

    assert [line.split()[1] for line in capsys.readouterr().err.splitlines()] == ["0", "3", "5"]


@pytest.fixture
async def made(tmp_path: Path) -> str:
    """A store in whose warehouse `arco` there is a namespace, and nothing in it."""
    store = f"file:{tmp_path}/made"
    await catalog_in(tmp_path / "made").namespace("db")
    return store


COMMANDS = [
    ["history"],
    ["reconcile"],
    ["reconcile", "--dry-run"],
    ["receipts", "db.t"],
    ["show", "db.t"],
    ["undrop", "db.t"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_store_that_is_not_there_is_wrong_usage_and_is_not_made(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = f"file:{tmp_path}/nowhere"

    assert main([*command, "--store", store], {}) == 2

    printed = capsys.readouterr()
    assert (printed.out, printed.err.count("\n")) == ("", 1)
    assert printed.err.startswith(f"arco: there is no warehouse 'arco' in {store}: nothing was ever made in it")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_warehouse_that_is_not_there_is_wrong_usage_and_is_not_made(
    command: list[str], made: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Path(made.removeprefix("file:"))
    before = files(folder)

    assert main([*command, "--store", made, "--warehouse", "typo"], {}) == 2

    assert capsys.readouterr().err.startswith(f"arco: there is no warehouse 'typo' in {made}")
    assert files(folder) == before


def test_a_bucket_that_is_not_there_is_wrong_usage(s3_server: S3Server, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history", "--store", "s3://no-such-bucket/x"], s3_server.environment) == 2

    assert (
        "cannot read the store s3://no-such-bucket/x: bucket 'no-such-bucket' does not exist" in capsys.readouterr().err
    )


async def test_who_reads_enough_of_the_output_may_close_it(fixture: CatalogFixture, folder: Path) -> None:
    command = [sys.executable, "-m", "arco_catalog.cli", "history", "--json", "--store", f"file:{folder}"]
    process = await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    transport = process._transport  # type: ignore[attr-defined]
    transport.get_pipe_transport(1).close()

    assert (await process.stderr.read()).decode() == ""
    assert await process.wait() == 0


async def test_a_module_that_is_missing_is_reported_with_what_installs_it() -> None:
    without = "import sys; sys.modules['uvicorn'] = None; from arco_catalog.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", without, "serve", "--store", "memory:"]
    process = await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=PIPE)

    ended = await finished(process)

    assert (ended.code, ended.out) == (1, "")
    assert ended.err == "arco: uvicorn is not installed: install the extra 'serve' of arco-catalog\n"


async def test_times_in_json_are_text_too(fixture: CatalogFixture, folder: Path) -> None:
    [operation] = json.loads(await output(folder, "history", "--json", "--limit", "1"))
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", operation["time"])
    assert datetime.fromisoformat(operation["time"]).timestamp() * 1000 == operation["at_ms"]

    shown = json.loads(await output(folder, "show", "db.t", "--json"))
    assert shown["updated_time"] == format_iso(shown["updated_ms"])


async def test_undrop_shows_programs_what_it_restored(fixture: CatalogFixture, folder: Path) -> None:
    await drop_table(fixture.session(), NS, "t", purge=False)

    restored = json.loads(await output(folder, "undrop", "db.t", "--json"))

    assert (restored["name"], restored["state"]) == ("db.t", "live")


def test_a_registry_in_which_nothing_happened_has_nothing_to_tell() -> None:
    assert as_history([]) == "This catalog has no history."
    assert as_history([], of_realm=True) == "This realm has no history."
    assert as_history([], at_ms=0) == "This catalog had no history at 1970-01-01 00:00:00.000."


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (["show", "db.nothing"], "Table does not exist: db.nothing"),
        (["show", "nothing"], "expected NAMESPACE.TABLE, got 'nothing'"),
        (["undrop", "other.nothing"], "other.nothing cannot be restored: its namespace other does not exist"),
        (["undrop", "nothing"], "expected NAMESPACE.TABLE, got 'nothing'"),
    ],
)
def test_what_cannot_be_done_is_one_clear_line(
    command: list[str], why: str, made: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command, "--store", made], {}) == 1

    printed = capsys.readouterr()
    assert (printed.out, printed.err.count("\n")) == ("", 1)
    assert printed.err.startswith(f"arco: {why}")


@pytest.mark.parametrize("arguments", [["history", "--limit", "0"], ["reconcile", "--seconds", "soon"]])
def test_numbers_are_numbers(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*arguments, "--store", "memory:"], {})

    assert ended.value.code == 2
    assert "expected a whole number from 1 to 1,000,000,000" in capsys.readouterr().err


async def test_receipts_of_a_dropped_table_are_found_and_stated_to_be_its(
    fixture: CatalogFixture, folder: Path
) -> None:
    live = json.loads(await output(folder, "receipts", "db.t", "--json"))
    await drop_table(fixture.session(), NS, "t", purge=False)

    ended = await arco("receipts", "db.t", "--json", "--store", f"file:{folder}")

    assert json.loads(ended.out) == live
    [entity] = {commit["entity"] for commit in live}
    assert ended.err.startswith(f"arco: db.t was dropped: entity {entity} at 20")
    assert json.loads(await output(folder, "receipts", entity, "--json")) == live


async def test_a_generic_table_that_was_dropped_under_a_name_hides_no_receipts(
    fixture: CatalogFixture, folder: Path
) -> None:
    live = json.loads(await output(folder, "receipts", "db.t", "--json"))
    await drop_table(fixture.session(), NS, "t", purge=False)
    await create_generic_table(fixture.session(), NS, GenericTable("t", "delta", None, None, {}))
    assert json.loads(await output(folder, "receipts", "db.t", "--json")) == live
    await drop_generic_table(fixture.session(), NS, "t")

    assert json.loads(await output(folder, "receipts", "db.t", "--json")) == live


async def test_of_several_that_were_dropped_under_a_name_it_is_reported_which_is_which(
    fixture: CatalogFixture, folder: Path
) -> None:
    first = (await load_table(fixture.session(), NS, "t")).entity
    await drop_table(fixture.session(), NS, "t", purge=False)
    second = (await fixture.table("t")).entity
    await drop_table(fixture.session(), NS, "t", purge=True)

    both = await output(folder, "receipts", "db.t")
    headings = [line.split(",")[0] for line in both.splitlines() if line.startswith("Entity")]
    assert headings == [f"Entity {second}", f"Entity {first}"]
    assert both.count(" committed ") == 3

    third = (await fixture.table("t")).entity
    live = await arco("receipts", "db.t", "--json", "--store", f"file:{folder}")
    assert {commit["entity"] for commit in json.loads(live.out)} == {third}
    assert "db.t is also the name of what was dropped" in live.err
    assert live.err.index(second) < live.err.index(first)


async def test_receipts_of_a_view_are_found_too(fixture: CatalogFixture, folder: Path) -> None:
    body = view_request()
    made = await create_view(fixture.session(body), NS, body)

    [commit] = json.loads(await output(folder, "receipts", "db.v", "--json"))

    assert isinstance(made, TableState)
    assert (commit["entity"], commit["entity_type"]) == (made.entity, "view")
    assert "view_uuid" in commit


async def test_an_entity_that_there_is_not_is_one_clear_line(fixture: CatalogFixture, folder: Path) -> None:
    no_one = "01KAN0Y7Q2M3C4D5E6F7G8H9JK"
    ended = await arco("receipts", no_one, "--store", f"file:{folder}")
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith(f"arco: No table or view has the entity id {no_one}, or its pointer is missing")
