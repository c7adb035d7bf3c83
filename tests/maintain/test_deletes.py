"""Which data files are rewritten since many of their rows are deleted, as Iceberg's planner chooses them
(docs/design/pipeline.md#rule-10)."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arco_catalog.iceberg.json import JsonValue
from reconciler.maintain.calls import Procedure
from reconciler.maintain.contents import DataFile
from reconciler.maintain.deletes import AppliedDeletes, DeleteFile, DeleteIndex
from reconciler.maintain.selection import Criteria
from tests.maintain.lake import Lake
from tests.maintain.manifests import EQUALITY, POSITION, File, snapshot_of
from tests.maintain.tables import due, held_back, nothing, policy, table

REWRITE = Procedure.REWRITE_DATA_FILES
COMPACTION = policy("data-compaction")
BY_COUNT = policy("data-compaction", config={"delete-file-threshold": 1, "delete-ratio-threshold": 0.01})


@pytest.fixture
async def lake() -> Lake:
    """With a table."""
    made = await Lake().made()
    await made.fixture.table("t", None)
    return made


async def test_files_of_the_right_size_are_rewritten_for_their_deletes(lake: Lake) -> None:
    data = [File(f"data-{number}") for number in range(20)]
    deletes = [
        File(f"delete-{number}", POSITION, size=1_000, records=1, sequence=2, of=f"data-{number % 20}")
        for number in range(5_000)
    ]
    figures = await snapshot_of(lake, "t", [*data, *deletes])
    step = due(REWRITE, figures, BY_COUNT)
    assert (step.files, step.bytes) == (20, 20 * (500 << 20))
    assert step.reason.startswith("20 of 20 data files have 1 delete file or 1 % of their rows deleted, or more")


async def test_without_settings_a_file_is_rewritten_once_three_tenths_of_its_rows_are_deleted(lake: Lake) -> None:
    data = [File("most"), File("some"), File("none")]
    most = File("most-deletes", POSITION, records=300, sequence=2, of="most")
    some = File("some-deletes", POSITION, records=299, sequence=2, of="some")
    step = due(REWRITE, await snapshot_of(lake, "t", [*data, most, some]), COMPACTION)
    assert (step.files, step.bytes) == (1, 500 << 20)
    assert step.reason.startswith("1 of 3 data files have 30 % of their rows deleted, or more")


@pytest.mark.parametrize(
    ("deletes", "applies"),
    [
        (File("d", POSITION, records=900, sequence=1, of="a"), True),
        (File("d", POSITION, records=900, sequence=0, of="a"), False),
        (File("d", POSITION, records=900, sequence=1, within=("a", "a")), True),
        (File("d", POSITION, records=900, sequence=1, within=("a", "b")), False),
        (File("d", POSITION, records=900, sequence=None, of="a"), True),
        (File("d", POSITION, records=900, sequence=1, of="a", format="PUFFIN"), True),
        (File("d", POSITION, records=900, sequence=1, of="b"), False),
        (File("d", POSITION, records=900, sequence=1), False),
        (File("d", EQUALITY, records=900, sequence=2), False),
    ],
)
async def test_rows_are_known_to_be_deleted_by_deletes_of_one_file(lake: Lake, deletes: File, *, applies: bool) -> None:
    figures = await snapshot_of(lake, "t", [File("a"), deletes])
    assert nothing(REWRITE, figures, COMPACTION) is not applies


@pytest.mark.parametrize(
    ("deletes", "applies"),
    [
        (File("d", POSITION, sequence=1), True),
        (File("d", POSITION, sequence=0), False),
        (File("d", POSITION, sequence=1, part=7), False),
        (File("d", EQUALITY, sequence=2), True),
        (File("d", EQUALITY, sequence=1), False),  # of the same commit: it deletes what was before
        (File("d", EQUALITY, sequence=2, part=7), True),  # the table has no partitions
    ],
)
async def test_delete_files_are_counted_where_they_apply(lake: Lake, deletes: File, *, applies: bool) -> None:
    figures = await snapshot_of(lake, "t", [File("a"), deletes])
    assert figures.delete_files == 1
    assert nothing(REWRITE, figures, BY_COUNT) is not applies


async def test_equality_deletes_of_a_partition_are_of_its_files_alone() -> None:
    lake = await Lake().made()
    spec: JsonValue = {"fields": [{"source-id": 1, "transform": "identity", "name": "part", "field-id": 1000}]}
    await lake.fixture.table("t", None, **{"partition-spec": spec})
    data = [File("a", part=1), File("b", part=2)]
    figures = await snapshot_of(lake, "t", [*data, File("d", EQUALITY, sequence=2, part=2)])
    assert due(REWRITE, figures, BY_COUNT).files == 1


async def test_files_of_another_spec_than_the_table_s_are_judged_together() -> None:
    lake = await Lake().made()
    spec: JsonValue = {"fields": [{"source-id": 1, "transform": "identity", "name": "part", "field-id": 1000}]}
    await lake.fixture.table("t", None, **{"partition-spec": spec})
    small = [File(f"{part}", part=part, size=1) for part in range(5)]
    assert nothing(REWRITE, await snapshot_of(lake, "t", small), COMPACTION)
    assert due(REWRITE, await snapshot_of(lake, "t", small, spec=1), COMPACTION).files == 5


def test_a_large_partition_is_judged_in_groups() -> None:
    in_twos = policy("data-compaction", config={"max-file-group-size-bytes": 20})
    assert nothing(REWRITE, table([10] * 8), in_twos)
    in_fives = policy("data-compaction", config={"max-file-group-size-bytes": 50})
    assert due(REWRITE, table([10] * 8), in_fives).files == 5


@pytest.mark.parametrize(
    ("config", "why"),
    [
        ({"delete-file-threshold": 0}, "all files are rewritten every time"),
        ({"delete-file-threshold": "few"}, "few"),
        ({"delete-ratio-threshold": 0}, "above 0"),
        ({"delete-ratio-threshold": 1.5}, "1 at most"),
        ({"delete-ratio-threshold": "nan"}, "1 at most"),
        ({"min-file-size-bytes": 600 << 20}, "less than the target"),
    ],
)
def test_thresholds_that_make_no_sense_are_refused(config: Mapping[str, JsonValue], why: str) -> None:
    assert why in held_back(REWRITE, table([1] * 10), policy("data-compaction", config=config))


SEQUENCES = st.integers(0, 4)
PLACES = st.sampled_from(["a", "b"])
DELETES = st.builds(
    DeleteFile,
    st.sampled_from([POSITION, EQUALITY]),
    SEQUENCES,
    st.integers(0, 9),
    st.none() | PLACES,
    st.none() | PLACES,
)


def applies(delete: DeleteFile, path: str, partition: str, sequence: int) -> bool:
    """As the specification has it ("Scan Planning"), of delete files that are no vectors."""
    if delete.content == EQUALITY:
        return sequence < delete.sequence and delete.partition in (None, partition)
    return sequence <= delete.sequence and (
        delete.data_file == path if delete.data_file else str(delete.partition) == partition
    )


@given(st.lists(DELETES, max_size=12), PLACES, PLACES, SEQUENCES)
def test_the_index_finds_what_the_specification_says_applies(
    deletes: list[DeleteFile], path: str, partition: str, sequence: int
) -> None:
    expected = [each for each in deletes if applies(each, path, partition, sequence)]
    found = DeleteIndex.of(deletes).deletes_of(path, partition, sequence)
    known = sum(each.records for each in expected if each.content == POSITION and each.data_file)
    assert found == AppliedDeletes(len(expected), known)


FILES = st.builds(
    DataFile, st.integers(0, 300), st.integers(0, 20), st.builds(AppliedDeletes, st.integers(0, 3), st.integers(0, 20))
)
CRITERIA = st.builds(
    Criteria,
    target=st.just(100),
    min_bytes=st.integers(0, 99),
    max_bytes=st.integers(101, 250),
    min_input_files=st.integers(1, 6),
    max_group_bytes=st.integers(1, 1_000),
    delete_files=st.none() | st.integers(1, 3),
    deleted_share=st.floats(0.01, 1),
)


@given(st.lists(FILES, max_size=12), CRITERIA)
def test_a_file_with_many_deletes_is_always_rewritten_and_none_twice(files: list[DataFile], criteria: Criteria) -> None:
    rewritten = [id(file) for group in criteria.selected(files) for file in group]
    assert {id(file) for file in files if criteria.has_many_deletes(file)} <= {*rewritten}
    assert len(rewritten) == len({*rewritten})
    assert {*rewritten} <= {id(file) for file in files}
