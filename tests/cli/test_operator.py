"""`arco reconcile`, `history`, `show` and `undrop`, over a folder that holds a real catalog."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from arco_catalog.cli.program import main
from arco_catalog.cli.reconcile import Progress, as_text
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.commit import commit_table
from arco_catalog.operations.drop import drop_table
from arco_catalog.operations.open import build_catalog
from arco_catalog.operations.rename import rename_table
from arco_catalog.operations.transaction import commit_transaction
from arco_catalog.operations.walk import Tally
from arco_catalog.state.marker import Binding, Slot
from storage_backends import ABSENT, StoreUnavailable, When
from storage_backends.base import Outcome
from storage_backends.local import LocalStore
from tests.cli.process import arco
from tests.operations.desk import NS, Desk, set_property

HALF_WAY = "/transactions/"


class Mortal(LocalStore):
    """Dies when it is asked to decide a transaction."""

    dying = False

    async def put(self, key: str, body: bytes, when: When) -> Outcome:
        if self.dying and HALF_WAY in key and b'"status":"pending"' not in body:
            raise StoreUnavailable("dead")
        return await super().put(key, body, when)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
async def desk(folder: Path) -> Desk:
    """The tables db.t and db.u, with a commit each, in the warehouse `arco` of a folder."""
    made = Desk(Mortal(str(folder)))
    made.settings = type(made.settings)("arco")
    made.catalog = build_catalog(made.settings, made.store, f"file:{folder}", (), made.runtime)
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
    [lost] = [path for path in committed(folder) if (r := json.loads(path.read_bytes()))["base"] and r["name"] == "t"]
    body = lost.read_bytes()
    lost.unlink()
    return lost, body


def lose_all_of_one(folder: Path) -> None:
    """Loses both receipts of db.t's commit, and its metadata file."""
    lost, body = lose_one(folder)
    Path(str(lost).replace("/committed/", "/pending/")).unlink()
    Path(json.loads(body)["metadata_location"].removeprefix("file://")).unlink()


async def said(folder: Path, *arguments: str, code: int = 0) -> str:
    """What a command prints, as a process of its own."""
    ended = await arco(*arguments, "--store", f"file:{folder}")
    assert ended.code == code, ended.err
    return ended.out


async def test_reconcile_says_what_is_missing_then_writes_it(desk: Desk, folder: Path) -> None:
    lost, body = lose_one(folder)
    before = files(folder)

    dry = await arco("reconcile", "--dry-run", "--store", f"file:{folder}")

    assert files(folder) == before, "a dry run writes nothing"
    assert dry.code == 0
    assert "2 tables and views: 0 unchanged, 2 walked, 0 of them not to the end" in dry.out
    assert "1 of 4 commits walked had no receipt; nothing was written (dry run)." in dry.out
    [line] = [line for line in dry.out.splitlines() if " db.t " in line]
    assert " tester " in line
    assert "announced, and its writer stopped there" in line
    assert dry.err.startswith("arco: 2 walked and 0 unchanged of 2 listed so far, 1 receipts missing, 0 written")

    assert "1 of 4 commits walked had no receipt; 1 were written." in await said(folder, "reconcile")
    assert lost.read_bytes() == body
    told = json.loads(await said(folder, "reconcile", "--json", "--seconds", "60"))
    assert (told["pointers"], told["unchanged"], told["walked"], told["missing"]) == (2, 2, 0, [])


async def test_reconcile_fails_when_metadata_cannot_be_read(desk: Desk, folder: Path) -> None:
    lose_all_of_one(folder)

    out = await said(folder, "reconcile", code=1)

    assert "Could not be read:\n  " in out
    assert "Failed to open input stream for file: file:///" in out


async def test_history_tells_who_made_renamed_and_dropped_what(desk: Desk, folder: Path) -> None:
    await rename_table(desk.session(), (NS, "t"), (NS, "dotted.name"))
    await drop_table(desk.session(), NS, "u", purge=True)
    before = files(folder)

    heading, *lines = (await said(folder, "history")).splitlines()

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
    whole = json.loads(await said(folder, "history", "--json", "--limit", "2"))
    assert [(each["kind"], each["principal"], "answer" in each) for each in whole] == [
        ("drop-table", "tester", False),
        ("rename-table", "tester", False),
    ]


async def test_show_tells_pointer_moves_intent_and_markers(desk: Desk, folder: Path) -> None:
    assert isinstance(desk.store, Mortal)
    await desk.commit(set_property("a", "2"), key=desk.key())  # a finished marker
    desk.store.dying = True
    changes = [(NS, name, set_property("p", "1")) for name in ("t", "u")]
    with pytest.raises(Exception, match="did not answer"):
        await commit_transaction(desk.session(key=desk.key(), path="/tx"), changes)
    desk.store.dying = False
    head = await desk.session().state.head()
    entity = str((head.index.get("relation\ndb\nt") or {})["entity"])
    left = Slot("AN-ATTEMPT", Binding(pointers={entity: 1}), {"method": "POST", "path": "/p", "principal": "eve"}, None)
    await desk.store.put(desk.catalog.paths.marker_slot("ab" * 32, 0), left.body, ABSENT)
    before = files(folder)

    text = await said(folder, "show", "db.t")

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

    shown = json.loads(await said(folder, "show", "db.t", "--json"))
    assert (shown["sequence"], len(shown["recent"]), shown["intent"]["status"]) == (4, 4, "pending")
    assert sorted(marker["request"]["path"] for marker in shown["open_markers"]) == ["/p", "/tx"]
    assert shown["all_markers_seen"] is True
    other = json.loads(await said(folder, "show", "db.u", "--json"))
    assert [marker["request"]["path"] for marker in other["open_markers"]] == ["/tx"]


async def test_show_tells_what_was_dropped_and_undrop_brings_it_back(desk: Desk, folder: Path) -> None:
    before = json.loads(await said(folder, "show", "db.t", "--json"))
    await drop_table(desk.session(), NS, "t", purge=False)

    dropped = await said(folder, "show", "db.t")
    assert dropped.startswith("table        db.t (dropped)\n")
    assert "No request under way names it." in dropped

    assert await said(folder, "undrop", "db.t") == "db.t is back, as it was.\n"
    again = json.loads(await said(folder, "show", "db.t", "--json"))
    for kept in ("entity", "metadata_location", "locations", "state", "uuid"):
        assert again[kept] == before[kept]
    body = set_property("b", "1")
    await commit_table(desk.session(body), NS, "t", body)
    newest = json.loads(await said(folder, "history", "--json", "--limit", "1"))[0]
    assert (newest["kind"], newest["principal"], newest["source"]) == ("undrop", "operator", {"kind": "Cli"})


def test_a_run_that_stopped_says_so_and_long_tables_are_cut() -> None:
    gone: JsonObject = {"table": None, "entity": "E", "metadata_ms": 0, "metadata_location": "f", "told_by": "f"}
    tally = Tally(pointers=1234, stopped=True, missing=[gone] * 120)

    lines = as_text(tally, dry=False).splitlines()

    assert lines[0].startswith("1,234 tables and views: ")
    assert lines[2] == "Stopped before the end, as told: the next run goes on from here."
    assert lines[5] == "1970-01-01 00:00:00.000  entity E  -   both receipts are gone: metadata tells  f"
    assert lines[-1] == "... and 20 more (--json has all)"


def test_progress_is_told_at_once_and_then_once_a_second(capsys: pytest.CaptureFixture[str]) -> None:
    clock = iter([0, 10, 999, 1000, 1500, 2000])
    progress = Progress(lambda: next(clock))

    for walked in range(6):
        progress.told(Tally(walked=walked))

    assert [line.split()[1] for line in capsys.readouterr().err.splitlines()] == ["0", "3", "5"]


@pytest.fixture
def empty(tmp_path: Path) -> str:
    return f"file:{tmp_path}/empty"


def test_an_empty_store_has_nothing_to_tell(empty: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history", "--store", empty], {}) == 0
    assert main(["reconcile", "--dry-run", "--store", empty], {}) == 0

    out = capsys.readouterr().out
    assert "Nothing has happened in this catalog.\n0 tables and views: 0 unchanged, 0 walked" in out


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (["show", "db.nothing"], "Table does not exist: db.nothing"),
        (["show", "nothing"], "'nothing' is no NAMESPACE.TABLE"),
        (["undrop", "db.nothing"], "Namespace does not exist: db"),
        (["undrop", "nothing"], "'nothing' is no NAMESPACE.TABLE"),
    ],
)
def test_what_cannot_be_done_is_one_clear_line(
    command: list[str], why: str, empty: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command, "--store", empty], {}) == 1

    told = capsys.readouterr()
    assert (told.out, told.err.count("\n")) == ("", 1)
    assert told.err.startswith(f"arco: {why}")


@pytest.mark.parametrize("arguments", [["history", "--limit", "0"], ["reconcile", "--seconds", "soon"]])
def test_numbers_are_numbers(arguments: list[str], empty: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*arguments, "--store", empty], {})

    assert ended.value.code == 2
    assert "give a number from 1 on" in capsys.readouterr().err
