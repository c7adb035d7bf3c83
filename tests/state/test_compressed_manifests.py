"""Manifest lists as processes remember them."""

import zlib
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arco_catalog.iceberg.manifests import DATA, FieldSummary, ManifestFile
from arco_catalog.state import compressed_manifests
from arco_catalog.state.compressed_manifests import GROUP, ManifestList, memory_of

DELETES = 1
LONGS = st.integers(0, 2**63 - 1)
SUMMARIES = st.builds(
    FieldSummary, st.booleans(), st.none() | st.booleans(), st.none() | st.binary(), st.none() | st.binary()
)
MANIFESTS = st.builds(
    ManifestFile,
    manifest_path=st.text(st.characters(categories=None), min_size=1),
    manifest_length=LONGS,
    partition_spec_id=LONGS,
    content=st.sampled_from([DATA, DATA, DELETES]),
    sequence_number=LONGS,
    min_sequence_number=LONGS,
    added_snapshot_id=LONGS,
    added_files_count=LONGS,
    existing_files_count=LONGS,
    deleted_files_count=LONGS,
    added_rows_count=LONGS,
    existing_rows_count=LONGS,
    deleted_rows_count=LONGS,
    partitions=st.none() | st.lists(SUMMARIES, min_size=1, max_size=3),
    key_metadata=st.none() | st.binary(min_size=1),
    first_row_id=st.none() | LONGS,
)


def manifest(number: int, content: int = DATA, **fields: object) -> ManifestFile:
    summary = FieldSummary(False, None, number.to_bytes(4, "little"), number.to_bytes(4, "little"))
    path = f"s3://bucket/warehouse/db/t/metadata/{number:032x}-m0.avro"
    made = ManifestFile(path, 7_000 + number, 0, content, number, 1, 2**62 + number, 100, 0, 0, 9, 0, 0, [summary])
    return made._replace(**fields)  # type: ignore[arg-type]


def placed(manifests: Sequence[ManifestFile]) -> list[tuple[int, ManifestFile]]:
    return [(place, each) for place, each in enumerate(manifests) if each.content == DATA]


@settings(max_examples=60)
@given(st.lists(MANIFESTS, max_size=12), st.integers(1, 4), st.integers(0, 13), st.integers(0, 13))
def test_a_list_has_the_manifests_of_which_it_is_made(
    manifests: list[ManifestFile], group: int, first: int, end: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compressed_manifests, "GROUP", group)
        found = ManifestList.of(manifests)

    assert len(found) == len(manifests)
    assert found.deletes == [each for each in manifests if each.content != DATA]
    assert [*found.data()] == placed(manifests)
    assert [*found.data(range(first, end))] == [each for each in placed(manifests) if first <= each[0] < end]
    assert found.is_encrypted == any(each.key_metadata is not None for each in manifests)
    assert found.data_memory == sum(memory_of(each) for each in manifests if each.content == DATA)


def test_a_list_of_fifty_thousand_manifests_takes_a_tenth_of_their_memory() -> None:
    manifests = [manifest(number) for number in range(50_000)]

    found = ManifestList.of(manifests)

    assert found.size < sum(map(memory_of, manifests)) / 10
    assert found.size < 6 << 20  # half of what a process has for lists and manifests, at the default size of its caches


def test_only_the_groups_of_the_places_are_decompressed(monkeypatch: pytest.MonkeyPatch) -> None:
    found = ManifestList.of([manifest(number) for number in range(5 * GROUP)])
    decompressed: list[bytes] = []
    decompress = zlib.decompress

    def recorded(data: bytes) -> bytes:
        decompressed.append(data)
        return decompress(data)

    monkeypatch.setattr(zlib, "decompress", recorded)

    assert [place for place, _ in found.data(range(GROUP + 1, 2 * GROUP))] == [*range(GROUP + 1, 2 * GROUP)]
    assert len(decompressed) == 1
    assert len([*found.data(range(2 * GROUP - 1, 2 * GROUP + 1))]) == 2
    assert len(decompressed) == 3


def test_a_group_of_manifests_with_long_names_has_few() -> None:
    long = [manifest(number, manifest_path=f"{number}{'x' * 60_000}") for number in range(9)]

    assert len(ManifestList.of(long)._groups) == 3
