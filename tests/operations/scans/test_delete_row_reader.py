"""A process remembers rows of an index of deletes that plans read again, and finds by them what it found before."""

from collections.abc import Sequence

import pytest

from arco_catalog.iceberg.content_files import ContentFile
from arco_catalog.iceberg.json import dumps
from arco_catalog.iceberg.scan_json import file_json
from arco_catalog.operations.scans import delete_files, delete_memory, delete_row_reader
from arco_catalog.protocol.catalog import Session
from arco_catalog.state import delete_parts
from arco_catalog.state.delete_parts import DeleteRows
from tests.operations.scans.test_delete_files import Table, data, equality, vector

FILES = 12


@pytest.fixture
async def table(monkeypatch: pytest.MonkeyPatch) -> Table:
    """A table whose delete files count as many."""
    monkeypatch.setattr(delete_files, "FEW_FILES", 0)
    found = Table()
    await found.add(*(vector(number) for number in range(FILES)), equality(20, 1))
    return found


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows each decoding of a block had."""
    counts: list[int] = []
    read_rows = delete_parts.read_rows

    def observed(packed: bytes, rows: Sequence[int]) -> Sequence[ContentFile]:
        counts.append(len(rows))
        return read_rows(packed, rows)

    monkeypatch.setattr(delete_row_reader, "read_rows", observed)
    return counts


async def found(table: Table, session: Session, *numbers: int) -> dict[int, list[ContentFile]]:
    """The delete files of these data files as a plan of this process finds them, without their JSON."""
    deletes, index = await table.found(*map(data, numbers), session=session)
    files = {number: [each._replace(written=None) for each in index.deletes_of(data(number))] for number in numbers}
    deletes.close()
    return files


async def test_the_third_plan_decodes_nothing_and_finds_what_the_first_has_found(
    table: Table, decoded: list[int]
) -> None:
    session = table.fixture.another().session()
    first = await found(table, session, *range(FILES))
    assert [[each.path for each in first[number]] for number in range(FILES)] == [
        ["equality-20", f"v{number}"] for number in range(FILES)
    ]
    assert sum(decoded) == FILES + 1
    assert await found(table, session, *range(FILES)) == first
    assert sum(decoded) == 2 * (FILES + 1)
    assert await found(table, session, *range(FILES)) == first
    assert sum(decoded) == 2 * (FILES + 1)


async def test_a_plan_of_other_rows_of_a_block_reads_them_and_both_are_right(table: Table, decoded: list[int]) -> None:
    session = table.fixture.another().session()
    everything = await found(table, session, *range(FILES))
    for numbers in ((0, 1), (1,), (1, 2, 5), (5,), tuple(range(FILES)), (7, 3)):
        assert await found(table, session, *numbers) == {number: everything[number] for number in numbers}
    decoded.clear()
    assert await found(table, session, 4) == {4: everything[4]}
    assert decoded == []


async def test_rows_that_are_remembered_have_the_json_that_answers_have(table: Table) -> None:
    session = table.fixture.another().session()
    for _ in range(2):
        await found(table, session, *range(FILES))
    _, index = await table.found(*map(data, range(FILES)), session=session)
    for number in range(FILES):
        for each in index.deletes_of(data(number)):
            assert each.written == dumps(file_json(each, []))


async def test_another_table_has_no_use_of_rows_that_are_remembered(table: Table, decoded: list[int]) -> None:
    session = table.fixture.another().session()
    for _ in range(3):
        await found(table, session, 1)
    decoded.clear()
    _, index = await table.found(data(1), entity="other", session=session)
    assert [each.path for each in index.deletes_of(data(1))] == ["equality-20", "v1"]
    assert decoded == [2]


async def test_remembered_rows_count_in_the_memory_of_a_plan(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    session = table.fixture.another().session()
    for _ in range(3):
        await found(table, session, *range(FILES))
    known = [
        value for value, _, _ in session.catalog.caches.file_blocks._entries.values() if isinstance(value, DeleteRows)
    ]
    assert [len(each.files) for each in known] == [FILES + 1]
    monkeypatch.setattr(delete_memory, "MAX_BYTES", known[0].memory - 1)
    with pytest.raises(delete_memory.TooManyDeletes):
        await found(table, session, *range(FILES))
