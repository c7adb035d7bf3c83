"""Bugs of an expiry, each of which the comparison with Java must notice."""

from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import replace
from typing import Any, cast

import pytest

from arco_catalog.iceberg.expiry import Retention, find_expired
from arco_catalog.iceberg.metadata import TableMetadata
from arco_catalog.iceberg.snapshots import SnapshotRef
from arco_catalog.state.expiry_record import ExpiryRecord
from arco_catalog.tasks.execution import NotYet
from arco_catalog.upkeep.expiry import commit, deletion, executor
from arco_catalog.upkeep.purge import reach
from arco_catalog.upkeep.purge.reach import ReachedFile

Plant = Callable[[pytest.MonkeyPatch], None]


def branches_that_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    _change_refs(patch, lambda name, ref: ref if name == "main" or ref["type"] == "tag" else None)


def tags_that_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    _change_refs(patch, lambda name, ref: ref if ref["type"] == "branch" else None)


def ages_of_branches_that_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    _change_refs(patch, _without("max-snapshot-age-ms"))


def numbers_of_branches_that_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    _change_refs(patch, _without("min-snapshots-to-keep"))


def ages_of_refs_that_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    _change_refs(patch, _without("max-ref-age-ms"))


def _without(name: str) -> Callable[[str, SnapshotRef], SnapshotRef]:
    return lambda _, ref: cast(SnapshotRef, {field: value for field, value in ref.items() if field != name})


def _change_refs(patch: pytest.MonkeyPatch, change: Callable[[str, SnapshotRef], SnapshotRef | None]) -> None:
    def changed(metadata: TableMetadata, retention: Retention, now_ms: int) -> Any:
        refs = {name: kept for name, ref in metadata["refs"].items() if (kept := change(name, ref)) is not None}
        return find_expired({**metadata, "refs": refs}, retention, now_ms)

    patch.setattr(commit, "find_expired", changed)


def a_millisecond_too_early(patch: pytest.MonkeyPatch) -> None:
    _change_time(patch, 1)


def a_millisecond_too_late(patch: pytest.MonkeyPatch) -> None:
    _change_time(patch, -1)


def _change_time(patch: pytest.MonkeyPatch, by_ms: int) -> None:
    def changed(metadata: TableMetadata, retention: Retention, now_ms: int) -> Any:
        return find_expired(metadata, retention, now_ms + by_ms)

    patch.setattr(commit, "find_expired", changed)


def a_number_to_keep_of_one(patch: pytest.MonkeyPatch) -> None:
    def changed(metadata: TableMetadata, retention: Retention, now_ms: int) -> Any:
        return find_expired(metadata, replace(retention, to_keep=1), now_ms)

    patch.setattr(commit, "find_expired", changed)


def statistics_that_stay(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(commit, "ExpiryRecord", _WithoutStatistics)


class _WithoutStatistics(ExpiryRecord):
    @classmethod
    def of(cls, snapshots: Any, statistics: Any) -> ExpiryRecord:  # type: ignore[override]
        return ExpiryRecord.of(snapshots, ())


def shared_statistics_that_are_deleted(patch: pytest.MonkeyPatch) -> None:
    _read_metadata_without(patch, "statistics")


def manifest_lists_that_are_taken_for_unneeded(patch: pytest.MonkeyPatch) -> None:
    _read_metadata_without(patch, "lists")


def _read_metadata_without(patch: pytest.MonkeyPatch, field: str) -> None:
    named_by = reach.named_by

    async def changed(*arguments: Any) -> Any:
        reached = await named_by(*arguments)
        setattr(reached, field, {})
        return reached

    patch.setattr(deletion, "named_by", changed)


def a_shared_puffin_file_that_one_entry_gives_up(patch: pytest.MonkeyPatch) -> None:
    _change_live(patch, lambda files: [each for each in files if "puffin" not in each.location])


def data_files_of_which_no_manifest_is_read(patch: pytest.MonkeyPatch) -> None:
    _change_live(patch, lambda files: [])


def _change_live(patch: pytest.MonkeyPatch, change: Callable[[Sequence[ReachedFile]], Sequence[ReachedFile]]) -> None:
    """Changes what the manifests of the table name, and not those of expired snapshots, which are read with sizes."""
    keep_live = deletion.FileDeletion._keep_live

    async def changed(self: Any, *arguments: Any) -> None:
        async def entries(*named: Any, **options: Any) -> AsyncGenerator[Sequence[ReachedFile], None]:
            async for files in reach.entries_of(*named, **options):
                yield change(files)

        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(deletion, "entries_of", entries)
            await keep_live(self, *arguments)

    patch.setattr(deletion.FileDeletion, "_keep_live", changed)


def removed_entries_that_are_taken_for_live(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(reach, "REMOVED", None)


def files_that_are_deleted_at_once(patch: pytest.MonkeyPatch) -> None:
    commit_only = executor._commit

    async def changed(execution: Any, table: Any) -> Any:
        try:
            return await commit_only(execution, table)
        except NotYet:
            return await executor._delete(execution, table)

    patch.setattr(executor, "_commit", changed)


ALL: Sequence[Plant] = (
    branches_that_are_forgotten,
    tags_that_are_forgotten,
    ages_of_branches_that_are_forgotten,
    numbers_of_branches_that_are_forgotten,
    ages_of_refs_that_are_forgotten,
    a_millisecond_too_early,
    a_millisecond_too_late,
    a_number_to_keep_of_one,
    statistics_that_stay,
    shared_statistics_that_are_deleted,
    manifest_lists_that_are_taken_for_unneeded,
    a_shared_puffin_file_that_one_entry_gives_up,
    data_files_of_which_no_manifest_is_read,
    removed_entries_that_are_taken_for_live,
    files_that_are_deleted_at_once,
)
