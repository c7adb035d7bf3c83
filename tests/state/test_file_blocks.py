"""Packed files are the files that were packed, whatever is selected of them, and take the memory that they state."""

import gc
import sys
import tracemalloc
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from arco_catalog.iceberg.content_files import ContentFile, EntryStatus, FileContent, FileStatistics, Partition
from arco_catalog.iceberg.json import dumps
from arco_catalog.iceberg.scan_json import file_json
from arco_catalog.state.file_blocks import BLOCK_ENTRIES, FileBlock
from arco_catalog.state.manifest_entries import EntrySelection
from tests.state.test_manifest_entries import files as drawn_files
from tools.support.entry_files import entry, entry_file, entry_schema, identity_spec, optional, read_files

SPEC = identity_spec("p")
DOUBLES = st.none() | st.floats(allow_nan=False)


def block_of(files: list[ContentFile], selection: EntrySelection) -> FileBlock:
    return FileBlock(files, selection.partition_types, selection.columns, is_last=True, memory=0)


@st.composite
def selections(draw: st.DrawFn) -> EntrySelection:
    """Selections of files with a partition of one double, by every means that there is."""
    partitions, rows = draw(st.frozensets(DOUBLES.map(repr))), draw(st.integers(0, 12))

    def may_match(partition: Partition) -> bool:
        return repr(partition[0]) not in partitions

    def statistics_may_match(statistics: FileStatistics) -> bool:
        return statistics.record_count != rows

    return EntrySelection(
        SPEC,
        ["double"],
        draw(st.none() | st.just(frozenset[int]()) | st.frozensets(st.integers(1, 90), max_size=8)),
        draw(st.integers(0, 6)),
        draw(st.none() | st.integers(0, 7)),
        draw(st.booleans()),
        may_match,
        statistics_may_match,
    )


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(drawn_files(), DOUBLES, st.sampled_from(EntryStatus), st.integers(0, 12)), max_size=6),
    selections(),
)
async def test_what_is_selected_of_file_blocks_is_what_a_manifest_has(
    drawn: list[tuple[dict[str, object], float | None, EntryStatus, int]], selection: EntrySelection
) -> None:
    schema = entry_schema([optional(1000, "p", "double")])
    entries = [
        entry(number, int(status), partition={"p": value}, record_count=rows, sequence_number=3, **each)
        for number, (each, value, status, rows) in enumerate(drawn)
    ]
    body = entry_file(entries, schema)
    whole = replace(selection, first=0, end=None, added_only=False, may_match=any_of, statistics_may_match=any_of)
    expected = await read_files(body, selection)
    found = block_of(await read_files(body, whole), selection).select(selection)
    assert repr([each._replace(written=None) for each in found.files]) == repr(expected)  # -0.0 is not 0.0
    assert found.memory == sum(each.memory for each in found.files)
    assert [each.written for each in found.files] == [dumps(file_json(each, ["double"])) for each in expected]


def any_of(_: object) -> bool:
    return True


async def test_file_blocks_take_no_more_memory_than_they_state() -> None:
    for name in ("p", "long name " * 50):
        statistics = {1: b"12345678"}
        entries = [
            entry(number, partition={"p": name * (number % 50)}, lower_bounds=statistics, upper_bounds=statistics)
            for number in range(BLOCK_ENTRIES)
        ]
        schema = entry_schema([optional(1000, "p", "string")])
        selection = EntrySelection(SPEC, ["string"], frozenset({1}))
        files = await read_files(entry_file(entries, schema), selection)
        tracemalloc.start()
        try:
            before, _ = tracemalloc.get_traced_memory()
            kept = block_of(files, selection)
            gc.collect()  # also what the interpreter keeps for objects to come
            after, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert after - before <= kept.size
        assert kept.size < sum(file.memory for file in files) / 10 or name != "p"


def test_text_counts_as_what_its_widest_character_makes_of_it() -> None:
    """Four bytes each, and its UTF-8: five thousand names of 16,384 characters take 660 MB, and not 80."""
    plain = ContentFile(FileContent.DATA, "x" * 9_000, "parquet", 0, ("y" * 9_000,), FileStatistics(1), 1, 1)
    for wide in ("é", "\u4e00", "\U0001f300"):
        file = plain._replace(path=wide + plain.path, partition=(wide + str(plain.partition[0]),))
        assert file.memory >= sys.getsizeof(file.path) + sys.getsizeof(file.partition[0])
        packed = FileBlock([file], ["string"], frozenset(), is_last=True, memory=0)
        assert packed.size >= sys.getsizeof(file.partition[0])
    assert plain.memory < 20_000
