"""`arco pipeline run maintain` on Spark, with Iceberg's own procedures, beside a writer. What a run decides and tells
is tested in tests/maintain, without Spark."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.compact.lake import ServedLake
from tests.reconciler.maintained import Maintained, Shape, Writer, many_files, rows_of, writing
from tools.demo.engines import ICEBERG
from tools.demo.server import serving

pytestmark = pytest.mark.needs(f".jars/iceberg-spark-runtime-4.1_2.13-{ICEBERG}.jar")

COMMITS = 14
FILES, SNAPSHOTS = (int(each) for each in os.environ.get("ARCO_MAINTAIN_SHAPE", "5000,200").split(","))
"""Of the table that is maintained while drivers are killed."""
ROWS_EACH = 4
SHORT_LEASE = "delegation.task.lease.lost-timeout-duration=PT60S"
RUNS = 20
VARIABLE = "left${spark:x}"
"""Where variables are substituted, a statement for this table is one for `left` (reconciler/session.py)."""


@pytest.fixture
def maintained(tmp_path: Path) -> Iterator[Maintained]:
    """Tables of small files. Two have all policies, and of these one has a neighbour inside; of one only the manifests
    may be rewritten; one is left alone, and another has that one's name with a variable of Spark's behind it; and one,
    that is to be rewritten, names the files of another."""
    with serving(
        f"file:{tmp_path / 'store'}", tmp_path / "server.log", "--workers", "1", "--allow-location-overlap"
    ) as server:
        made = Maintained(ServedLake(server))
        client = made.lake.client
        client.create_namespace("db")
        for name, commits in (("busy", COMMITS), ("shared", 6), ("listed", COMMITS), ("left", 6), (VARIABLE, 6)):
            table = client.create_table(f"db.{name}", rows_of([]).schema)
            for number in range(commits):
                table.append(rows_of([2 * number, 2 * number + 1]))
        inner = client.create_table("db.inner", rows_of([]).schema, location=f"{made.folder('shared').as_uri()}/inner")
        inner.append(rows_of([1]))
        for name in ("busy", "shared"):
            made.policies(name)
        made.policy("listed", "metadata-compaction", {})
        made.policy(VARIABLE, "data-compaction", {})
        secret = many_files(client, "db.secret", rows_of(range(12)), Shape(6, 6))
        taken = [task.file.file_path for task in secret.scan().plan_files()]
        hostile = client.create_table("db.hostile", rows_of([]).schema)
        for file in taken:
            hostile.add_files([file])
        made.policy("hostile", "data-compaction", {})
        made.policy("hostile", "metadata-compaction", {"config": {"min_manifests": 2}})
        yield made


def test_a_run_mends_what_policies_ask_for_and_nothing_else(maintained: Maintained) -> None:
    left, inner = maintained.files("left"), maintained.files("inner")
    maintained.make_old("shared")
    old, young = maintained.orphan("busy", 2), maintained.orphan("busy", 0)
    everything = maintained.lake.everything()
    said, counts = maintained.run("--dry-run")
    assert maintained.lake.everything() == everything
    assert (counts["due"], counts["held_back"]) == (4, 4)
    assert f"rewrite_data_files: {COMMITS} of {COMMITS} data files are smaller than 384 MiB" in said

    writer = Writer(maintained.lake.server.uri, "db.busy", 1_000, pause_s=2.0)
    with writing(writer):
        said, counts = maintained.run()
    assert writer.commits > 0
    assert counts["unreadable"] == []

    mended = {"rewrite_data_files", "expire_snapshots", "remove_orphan_files"}
    if not mended <= maintained.mended("busy"):
        maintained.run()  # what gave way to the writer in the first run is still due
    assert mended <= maintained.mended("busy") <= {*mended, "rewrite_manifests"}  # manifests: if the writer left many
    outcomes = maintained.outcomes("busy")
    assert int(str(outcomes["rewrite_data_files"]["data_files_before"])) >= COMMITS
    assert int(str(outcomes["expire_snapshots"]["snapshots_before"])) >= COMMITS
    assert maintained.ids("busy") == sorted({*range(2 * COMMITS)} | writer.ids)
    metadata = maintained.lake.client.load_table("db.busy").metadata
    assert len(metadata.snapshots) < COMMITS + writer.commits
    assert (old.exists(), young.exists()) == (False, True)

    assert [*maintained.outcomes("listed")] == ["rewrite_manifests"]
    assert maintained.ids("listed") == [*range(2 * COMMITS)]
    assert [*maintained.outcomes("shared")] == ["rewrite_data_files"]
    assert "db.inner (entity" in said
    assert maintained.files("inner") == inner
    assert maintained.ids("shared") == [*range(12)]
    assert maintained.files("left") == left
    assert maintained.outcomes("hostile") == {}
    assert not any(maintained.folder("hostile").glob("data/*"))


@pytest.mark.slow
def test_thousands_of_files_are_mended_beside_writers_by_drivers_that_are_killed(tmp_path: Path) -> None:
    with serving(f"file:{tmp_path / 'store'}", tmp_path / "server.log", "--workers", "1") as server:
        maintained = Maintained(ServedLake(server))
        maintained.lake.client.create_namespace("db")
        ids = range(FILES * ROWS_EACH)
        many_files(maintained.lake.client, "db.busy", rows_of(ids), Shape(FILES, SNAPSHOTS))
        maintained.policies("busy")
        writers = [Writer(server.uri, "db.busy", first, pause_s=2.0) for first in (1_000_000, 2_000_000)]
        with writing(*writers):
            for begun in ("rewrite_data_files", "expire_snapshots"):
                assert maintained.killed_when(f"db.busy: {begun} starts", RUNS, ARCO_TASK_PROPERTIES=SHORT_LEASE)
            for _ in range(RUNS):
                said, _ = maintained.run(ARCO_TASK_PROPERTIES=SHORT_LEASE)
                print(said)
                if "expire_snapshots" in maintained.outcomes("busy") and maintained.old_files("busy") <= FILES // 100:
                    break
        assert all(writer.commits for writer in writers)

        outcomes = maintained.outcomes("busy")
        assert {row["outcome"] for row in outcomes.values()} <= {"done", "partly", "conflict"}
        written = {each for writer in writers for each in writer.ids}
        assert maintained.ids("busy") == sorted({*ids} | written)
        table = maintained.lake.client.load_table("db.busy")
        after = sum(writer.commits for writer in writers)
        assert maintained.old_files("busy") <= FILES // 100
        assert len(table.metadata.snapshots) <= after + SNAPSHOTS // 10
        assert maintained.fsck() == 0
