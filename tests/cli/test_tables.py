"""`arco init`, `ls`, `info`, `register`, `drop`, `rename` and `completion`: through the console entry point."""

import asyncio
import json
import os
import pty
import subprocess
import sys
from asyncio.subprocess import PIPE, create_subprocess_exec
from collections.abc import Mapping
from pathlib import Path

import pytest

from arco_catalog.cli.completion import script
from arco_catalog.cli.output import facts, table
from arco_catalog.cli.program import COMMANDS, build_parser, main
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.iceberg.summary import table_concerns, table_summary, type_text
from arco_catalog.operations.create import create_view
from arco_catalog.operations.open import build_catalog
from storage_backends.local.store import LocalStore
from tests.cli.process import arco, finished
from tools.support.catalog_fixture import NS, CatalogFixture
from tools.support.request_bodies import view_request

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def store(tmp_path: Path) -> str:
    return f"file:{tmp_path}/store"


@pytest.fixture
async def fixture(tmp_path: Path) -> CatalogFixture:
    """The table db.t and the view db.v, and the empty namespace db.inner, in the warehouse `arco`."""
    made = CatalogFixture(LocalStore(str(tmp_path / "store")))
    made.settings = type(made.settings)("arco")
    made.catalog = build_catalog(made.settings, made.store, f"file:{tmp_path}/store", (), made.runtime)
    await made.namespace("db")
    await made.namespace("db", "in.ner")
    await made.table("t", properties={"owner": "ada"})
    body = view_request()
    await create_view(made.session(body), NS, body)
    return made


def printed(capsys: Captured, store: str, *arguments: str, code: int = 0) -> str:
    """What a command prints, run in this process."""
    ended = main([*arguments, "--store", store], {})
    report = capsys.readouterr()
    assert ended == code, report.err
    return report.out if code == 0 else report.err


def files(folder: Path) -> Mapping[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_init_makes_a_catalog_once(tmp_path: Path, store: str, capsys: Captured) -> None:
    assert printed(capsys, store, "init") == f"Made warehouse 'arco' in {store}. `arco serve` serves it.\n"
    before = files(tmp_path)
    assert json.loads(printed(capsys, store, "init", "--json")) == {"store": store, "warehouse": "arco", "made": False}
    assert {name: body for name, body in files(tmp_path).items() if "/.arco-store/" not in name} == {
        name: body for name, body in before.items() if "/.arco-store/" not in name
    }
    assert printed(capsys, store, "ls") == "There is nothing in this catalog.\n"
    [first] = json.loads(printed(capsys, store, "history", "--json"))
    assert (first["kind"], first["principal"]) == ("init", "operator")


def test_init_makes_nothing_in_memory(capsys: Captured) -> None:
    assert "give a store that stays" in printed(capsys, "memory:", "init", code=1)


def test_ls_lists_one_level_or_all(fixture: CatalogFixture, store: str, capsys: Captured) -> None:
    assert printed(capsys, store, "ls") == "TYPE       NAME\nnamespace  db\n"
    assert [line.split() for line in printed(capsys, store, "ls", "db").splitlines()] == [
        ["TYPE", "NAME"],
        ["table", "db.t"],
        ["view", "db.v"],
        ["namespace", 'db."in.ner"'],
    ]
    everything = json.loads(printed(capsys, store, "ls", "-R", "--json"))
    assert [entry["full_name"] for entry in everything] == ["db", "db.t", "db.v", 'db."in.ner"']
    assert everything[1] == {"type": "table", "full_name": "db.t", "namespace": ["db"], "name": "t"}
    assert printed(capsys, store, "ls", 'db."in.ner"') == 'There is nothing in db."in.ner".\n'


def test_ls_of_a_table_names_the_command_that_displays_it(
    fixture: CatalogFixture, store: str, capsys: Captured
) -> None:
    refused = printed(capsys, store, "ls", "db.v", code=1)
    assert refused == "arco: db.v is a view, not a namespace: `arco show db.v` displays it\n"
    printed(capsys, store, "drop", "db.t")
    assert "Namespace does not exist: db.t" in printed(capsys, store, "ls", "db.t", code=1)
    assert "Namespace does not exist: none" in printed(capsys, store, "ls", "none", code=1)


def test_search_finds_names_by_words(fixture: CatalogFixture, store: str, capsys: Captured) -> None:
    assert [line.split() for line in printed(capsys, store, "search", "in").splitlines()] == [
        ["TYPE", "NAME"],
        ["namespace", 'db."in.ner"'],
    ]
    assert printed(capsys, store, "search", "db", "V", "--type", "view") == "TYPE  NAME\nview  db.v\n"
    assert json.loads(printed(capsys, store, "search", "t", "--json")) == [
        {"type": "table", "namespace": ["db"], "name": "t"}
    ]
    assert main(["search", "nothing", "--store", store], {}) == 1
    assert capsys.readouterr().out == "Nothing has such a name.\n"
    assert "The query 'q' has 9 words" in printed(capsys, store, "search", *"abcdefghi", code=1)


async def test_search_stops_at_its_limit_and_reports_it(fixture: CatalogFixture, store: str, capsys: Captured) -> None:
    for number in range(60):
        await fixture.table(f"order_{number:02}")
    lines = await asyncio.to_thread(lambda: printed(capsys, store, "search", "order").splitlines())
    assert (len(lines), lines[-1]) == (52, "... and more results: --limit is 50")
    found = await asyncio.to_thread(lambda: printed(capsys, store, "search", "order", "--limit", "60"))
    assert len(found.splitlines()) == 61


def test_ls_stops_at_its_limit_and_reports_it(fixture: CatalogFixture, store: str, capsys: Captured) -> None:
    lines = printed(capsys, store, "ls", "db", "--limit", "1").splitlines()
    assert lines[1:] == ["table  db.t", "... and more names: --limit 1 was given"]
    assert len(json.loads(printed(capsys, store, "ls", "-R", "--json", "--limit", "2"))) == 2
    assert "... and more" not in printed(capsys, store, "ls", "db", "--limit", "3")


def test_info_shows_schema_size_and_health(fixture: CatalogFixture, store: str, capsys: Captured) -> None:
    text = printed(capsys, store, "info", "db.t")
    lines = text.splitlines()
    assert lines[0].split() == ["table", "db.t"]
    assert "size            0 records in 0 data files, 0 bytes" in lines
    assert "property        owner=ada" in lines
    assert "health          ok" in lines
    assert lines[-2].split() == ["ID", "COLUMN", "TYPE", "NULL", "COMMENT"]
    assert lines[-1].split() == ["1", "x", "long", "yes", "-"]

    shown = json.loads(printed(capsys, store, "info", "db.t", "--json"))
    assert (shown["type"], shown["snapshot_count"], shown["health"]) == ("table", 0, [])
    assert shown["updated_time"].endswith("Z")
    view = json.loads(printed(capsys, store, "info", "db.v", "--json"))
    assert (view["type"], view["version_count"]) == ("view", 1)
    assert "SQL" in printed(capsys, store, "info", "db.v")


def test_drop_and_undrop_and_rename_go_the_way_of_requests(
    fixture: CatalogFixture, store: str, capsys: Captured
) -> None:
    dropped = printed(capsys, store, "drop", "db.t", "--purge")
    assert dropped.startswith("Dropped table db.t: `arco undrop` brings it back until 20")
    assert dropped.endswith(" UTC, when its files are deleted\n")
    assert "Table does not exist: db.t" in printed(capsys, store, "drop", "db.t", code=1)
    assert json.loads(printed(capsys, store, "show", "db.t", "--json"))["purge_requested"] is True
    assert printed(capsys, store, "undrop", "db.t").startswith(
        "Restored db.t: its files would have been deleted after 20"
    )
    assert printed(capsys, store, "rename", "db.t", 'db."in.ner".u') == 'Renamed table db.t to db."in.ner".u\n'
    assert json.loads(printed(capsys, store, "rename", "db.v", "db.w", "--json")) == {
        "type": "view",
        "from": "db.v",
        "to": "db.w",
    }
    assert "Table does not exist: db.v" in printed(capsys, store, "rename", "db.v", "db.x", code=1)
    assert "Table does not exist: db.w" in printed(capsys, store, "drop", "db.w", "--purge", code=1)
    assert json.loads(printed(capsys, store, "drop", "db.w", "--json"))["type"] == "view"
    kinds = [each["kind"] for each in json.loads(printed(capsys, store, "history", "--json"))]
    assert kinds[:5] == ["drop-view", "rename-view", "rename-table", "undrop", "drop-table"]


def test_a_drop_whose_purge_has_begun_names_no_way_back(fixture: CatalogFixture, store: str, capsys: Captured) -> None:
    assert main(["drop", "db.t", "--purge", "--store", store], {"ARCO_PURGE_UNDROP_WINDOW": "PT0S"}) == 0
    assert capsys.readouterr().out == (
        "Dropped table db.t: its files are deleted as soon as a worker executes the purge, and `arco undrop` restores "
        "it only before\n"
    )


def test_governance_is_shown_and_set_as_requests_do(fixture: CatalogFixture, store: str, capsys: Captured) -> None:
    assert printed(capsys, store, "governance", "show", "db.t", "--json") == "{}\n"
    assert printed(capsys, store, "governance", "show", "db.t") == "db.t has no governance.\n"
    changes = ("arco.owner=ada", "arco.tag.a=b=c", "arco.column.1.tag.pii=")
    report = printed(capsys, store, "governance", "set", "db.t", *changes)
    assert [line.split() for line in report.splitlines()] == [
        ["arco.column.1.tag.pii"],
        ["arco.owner", "ada"],
        ["arco.tag.a", "b=c"],
    ]
    assert printed(capsys, store, "governance", "show", "db.t") == report
    assert json.loads(printed(capsys, store, "governance", "set", "db.t", "--remove", "arco.owner", "--json")) == {
        "arco.tag.a": "b=c",
        "arco.column.1.tag.pii": "",
    }
    assert "arco.tag.a" in printed(capsys, store, "show", "db.t")
    printed(capsys, store, "governance", "set", "db.t", "arco.protected=true")
    assert "arco.protected" in printed(capsys, store, "show", "db.t")
    for command in (("drop", "db.t"), ("drop", "db.t", "--purge"), ("rename", "db.t", "db.u")):
        assert "--remove arco.protected" in printed(capsys, store, *command, code=1)
    printed(capsys, store, "governance", "set", "db.t", "--remove", "arco.protected")
    assert json.loads(printed(capsys, store, "governance", "set", "db.v", "arco.quality=good", "--json"))
    assert "good" in printed(capsys, store, "governance", "show", "db.v")
    assert json.loads(printed(capsys, store, "governance", "set", "db", "arco.owner=eve", "--namespace", "--json"))
    assert "eve" in printed(capsys, store, "governance", "show", "db", "--namespace")
    assert "Table does not exist: db.x" in printed(capsys, store, "governance", "show", "db.x", code=1)
    assert "Table does not exist: db.x" in printed(capsys, store, "governance", "set", "db.x", "arco.owner=a", code=1)
    assert "governance has the names" in printed(capsys, store, "governance", "set", "db.t", "owner=ada", code=1)
    assert "each key once" in printed(capsys, store, "governance", "set", "db.t", "arco.owner", code=1)
    kinds = [each["kind"] for each in json.loads(printed(capsys, store, "history", "--json"))]
    assert kinds[:4] == ["govern-namespace", "govern-view", "govern-table", "govern-table"]


@pytest.mark.parametrize("given", [["set", "db.t"], ["show", "db.t", "arco.owner=ada"], ["show"], ["drop", "db.t"]])
def test_governance_states_what_it_takes(given: list[str], store: str, capsys: Captured) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["governance", *given, "--store", store], {})
    assert ended.value.code == 2


def test_undrop_requests_the_variable_of_the_server_whether_locations_may_overlap(
    fixture: CatalogFixture, store: str, capsys: Captured
) -> None:
    location = json.loads(printed(capsys, store, "info", "db.t", "--json"))["metadata_location"]
    printed(capsys, store, "drop", "db.t")
    printed(capsys, store, "register", "db.u", location)
    assert "overlaps" in printed(capsys, store, "undrop", "db.t", code=1)
    assert main(["undrop", "db.t", "--store", store], {"ARCO_ALLOW_LOCATION_OVERLAP": "true"}) == 0


def test_register_gives_a_file_a_name_and_makes_its_namespaces_if_requested(
    fixture: CatalogFixture, store: str, capsys: Captured
) -> None:
    location = json.loads(printed(capsys, store, "info", "db.t", "--json"))["metadata_location"]
    printed(capsys, store, "drop", "db.t")

    assert "Namespace does not exist: a.b" in printed(capsys, store, "register", "a.b.t", location, code=1)
    report = printed(capsys, store, "register", "a.b.t", location, "--parents")

    assert report == f"Registered table a.b.t from {location}\n"
    assert json.loads(printed(capsys, store, "info", "a.b.t", "--json"))["metadata_location"] == location
    again = printed(capsys, store, "register", "a.b.t", location, "-p", code=1)
    assert "Table already exists: a.b.t" in again
    outside = printed(capsys, store, "register", "a.b.u", "file:///else/metadata/v1.metadata.json", code=1)
    assert "is outside the allowed locations" in outside


NEEDING_A_STORE = [
    ["ls"],
    ["info", "db.t"],
    ["search", "t"],
    ["register", "db.t", "file:///x"],
    ["import", "list", os.devnull],
    ["import", "list", os.devnull, "--apply"],
    ["rename", "db.t", "db.u"],
    ["drop", "db.t"],
    ["diff", "db.t", "0"],
    ["plan", "db.t"],
    ["lineage", "db.t"],
    ["governance", "show", "db.t"],
    ["governance", "set", "db.t", "arco.owner=ada"],
]


@pytest.mark.parametrize("command", NEEDING_A_STORE, ids=" ".join)
def test_no_command_but_init_and_serve_makes_a_store(
    command: list[str], tmp_path: Path, store: str, capsys: Captured
) -> None:
    assert "there is no warehouse 'arco'" in printed(capsys, store, *command, code=2)
    assert list(tmp_path.iterdir()) == []


def test_every_command_states_what_it_lacks(capsys: Captured) -> None:
    for command in COMMANDS:
        if command.needs_store:
            with pytest.raises(SystemExit) as ended:
                main([command.name, *{"import": ["list", "-"], "rename": ["a.b", "a.c"]}.get(command.name, [])], {})
            assert ended.value.code == 2


def test_completion_of_bash_completes_commands_options_and_choices() -> None:
    code = script("bash", build_parser({}))

    def completed(*words: str) -> set[str]:
        typed = " ".join(f"'{word}'" for word in words)
        script = f"{code}\nCOMP_WORDS=({typed}); COMP_CWORD={len(words) - 1}; _arco; echo ${{COMPREPLY[@]}}"
        return set(subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True).stdout.split())

    assert completed("arco", "re") == {"realms", "register", "rename", "receipts", "reconcile", "restore"}
    assert completed("arco", "completion", "") >= {"bash", "zsh", "fish"}
    assert completed("arco", "ls", "--l") == {"--limit"}
    assert completed("arco", "import", "f") == {"folder"}


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_completion_names_every_command_and_option(shell: str, capsys: Captured) -> None:
    assert main(["completion", shell], {}) == 0
    code = capsys.readouterr().out
    for command in COMMANDS:
        assert command.name in code
    for option in ("allowed-location", "recursive", "json", "force"):
        assert option in code
    assert "listener" not in code
    quoted = code.replace("\\\\", "").replace("'\\''" if shell == "zsh" else "\\'", "")
    assert quoted.count("'") % 2 == 0


async def test_a_pipe_that_is_closed_ends_any_output_quietly(fixture: CatalogFixture, store: str) -> None:
    for arguments in (["ls", "-R", "--store", store], ["--help"], ["completion", "bash"]):
        process = await create_subprocess_exec(
            *(sys.executable, "-m", "arco_catalog.cli", *arguments), stdout=PIPE, stderr=PIPE
        )
        transport = process._transport  # type: ignore[attr-defined]
        transport.get_pipe_transport(1).close()
        assert process.stderr is not None
        assert (await process.stderr.read()).decode() == ""
        assert await process.wait() == 0


async def test_the_installed_command_answers_too(fixture: CatalogFixture, store: str) -> None:
    installed = Path(sys.executable).with_name("arco")
    process = await create_subprocess_exec(installed, "ls", "db", "--json", "--store", store, stdout=PIPE, stderr=PIPE)
    ended = await finished(process)
    assert [entry["name"] for entry in json.loads(ended.out)] == ["t", "v", "in.ner"]
    assert (await arco("ls", "nowhere", "--store", store)).err == "arco: Namespace does not exist: nowhere\n"


def on_a_terminal(code: str, **environment: str) -> str:
    """What Python code prints to a terminal."""
    leader, follower = pty.openpty()
    try:
        clean = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
        settings = {**clean, "TERM": "xterm-256color", "COLUMNS": "60", **environment}
        subprocess.run([sys.executable, "-c", code], stdout=follower, check=True, env=settings, timeout=60)
        return os.read(leader, 1 << 16).decode()
    finally:
        os.close(leader)
        os.close(follower)


PRINTED = "from arco_catalog.cli.output import table; print(table(('STATUS', 'WHAT'), [('failed', 'a\\u202e[red]b')]))"


def test_a_terminal_gets_colours_and_nothing_that_acts_on_it() -> None:
    shown = on_a_terminal(PRINTED)
    assert "\x1b[1;31mfailed\x1b[0m" in shown
    assert "a\\u202e[red]b" in shown
    assert "\x1b[1;31m" not in on_a_terminal(PRINTED, NO_COLOR="1")


def test_a_terminal_without_rich_gets_plain_text() -> None:
    without = f"import sys; sys.modules['rich'] = sys.modules['rich.console'] = None; {PRINTED}"
    assert on_a_terminal(without).splitlines() == ["STATUS  WHAT", "failed  a\\u202e[red]b"]


WIDE = """
from arco_catalog.cli.output import table
headings = ("TIME (UTC)", "SNAPSHOT", "CHANGES", "BY", "METADATA FILE")
line = ("2026-11-24 10:00:00.000", "6" * 19, "add-snapshot, set-snapshot-ref", "anna (Spark/4.1)", "s3://" + "x" * 70)
print(table(headings, [line] * 2, wide=@, wide_only=["METADATA FILE"]))
"""


@pytest.mark.parametrize("rich", ["", "import sys; sys.modules['rich.console'] = None"])
def test_times_and_ids_stay_whole_at_80_columns_and_the_rest_is_left_to_wide(rich: str) -> None:
    narrow = on_a_terminal(f"{rich}\n{WIDE.replace('@', 'False')}", COLUMNS="80", NO_COLOR="1")
    assert narrow.count("2026-11-24 10:00:00.000") == narrow.count("6" * 19) == 2
    assert "s3://" not in narrow
    assert narrow.splitlines()[-1] == "(--wide shows METADATA FILE)"

    wide = on_a_terminal(f"{rich}\n{WIDE.replace('@', 'True')}", COLUMNS="80", NO_COLOR="1")
    assert len(wide.splitlines()) == 3
    assert wide.count("x" * 70) == 2


def test_output_elsewhere_is_plain() -> None:
    assert table(("A", "B"), [("1", "x\x9b")]) == "A  B\n1  x\\u009b"
    assert facts([("name", "x"), ("n", "")]) == "name  x\nn"


def snapshot(number: int, **summary: str) -> JsonObject:
    summary_fields: JsonObject = {"operation": "append", **summary}
    return {
        "snapshot-id": number,
        "timestamp-ms": number * 1000,
        "summary": summary_fields,
        "manifest-list": f"file:///{number}",
    }


def test_a_summary_shows_partitions_order_and_the_newest_snapshots() -> None:
    struct: JsonObject = {"type": "struct", "fields": [{"id": 3, "name": "c", "type": "string"}]}
    metadata: JsonObject = {
        "format-version": 2,
        "current-schema-id": 1,
        "schemas": [
            {"schema-id": 0, "fields": []},
            {
                "schema-id": 1,
                "fields": [
                    {"id": 1, "name": "ts", "type": "timestamptz", "required": True},
                    {"id": 2, "name": "s", "type": struct},
                ],
            },
        ],
        "default-spec-id": 7,
        "partition-specs": [
            {
                "spec-id": 7,
                "fields": [{"source-id": 1, "transform": "day"}, {"source-id": 3, "transform": "identity"}],
            }
        ],
        "default-sort-order-id": 1,
        "sort-orders": [
            {
                "order-id": 1,
                "fields": [{"source-id": 3, "transform": "bucket[4]", "direction": "asc", "null-order": "nulls-first"}],
            }
        ],
        "current-snapshot-id": 2,
        "snapshots": [snapshot(1), snapshot(2, **{"total-records": "5", "total-data-files": "1"}), snapshot(3)],
    }

    summary = table_summary(metadata, newest=2)

    assert summary["partitioned_by"] == ["day(ts)", "s.c"]
    assert summary["sorted_by"] == ["bucket[4](s.c) asc nulls-first"]
    assert summary["size"] == {"records": 5, "data_files": 1, "delete_files": None, "bytes": None}
    snapshots = summary["snapshots"]
    assert isinstance(snapshots, list)
    assert [(each["snapshot_id"], each["current"]) for each in snapshots if isinstance(each, dict)] == [
        (3, False),
        (2, True),
    ]
    assert summary["snapshot_count"] == 3


def test_types_are_reported_on_one_line() -> None:
    inner: JsonObject = {"type": "list", "element": "int"}
    assert type_text({"type": "map", "key": "string", "value": inner}) == "map<string, list<int>>"
    fields: JsonObject = {"type": "struct", "fields": [{"name": "a", "type": "decimal(9, 2)"}]}
    assert type_text(fields) == "struct<a: decimal(9, 2)>"


@pytest.mark.parametrize(
    ("size", "count", "concern"),
    [
        ({"total-data-files": "101", "total-files-size": "101000"}, 1, "data files of 0 KB on average are small"),
        ({"total-data-files": "10", "total-delete-files": "3"}, 1, "3 delete files beside 10 data files"),
        ({}, 1_001, "1,001 snapshots make its metadata large"),
    ],
)
def test_what_ails_a_table_is_reported_with_what_mends_it(size: dict[str, str], count: int, concern: str) -> None:
    snapshots = [snapshot(number, **size) for number in range(count)]
    [report] = table_concerns({"current-snapshot-id": 0, "snapshots": [*snapshots]})
    assert concern in report
    assert table_concerns({"current-snapshot-id": None, "snapshots": []}) == []
