"""Bugs of a planner, each of which the comparison with Java must notice."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from arco_catalog.iceberg.content_files import ContentFile, FileStatistics
from arco_catalog.iceberg.delete_index import DeleteIndex
from arco_catalog.iceberg.expressions import filters, statistics, transform_values
from arco_catalog.iceberg.expressions.expression_json import expression_json
from arco_catalog.iceberg.expressions.filters import ScanFilter, SpecFilter

Plant = Callable[[pytest.MonkeyPatch], None]


def upper_bounds_that_are_taken_for_lower_ones(patch: pytest.MonkeyPatch) -> None:
    _change_statistics(patch, lambda of: of._replace(lower_bounds=of.upper_bounds))


def bounds_without_effect(patch: pytest.MonkeyPatch) -> None:
    _change_statistics(patch, lambda of: of._replace(lower_bounds=None, upper_bounds=None))


def _change_statistics(patch: pytest.MonkeyPatch, change: Callable[[FileStatistics], FileStatistics]) -> None:
    test_of = filters._file_test

    def changed(*filter_: Any, **options: Any) -> Any:
        test = test_of(*filter_, **options)
        return lambda of: test(change(of))

    patch.setattr(filters, "_file_test", changed)


def columns_that_have_no_nulls(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(statistics, "null_test", lambda column: lambda of: False)


def nulls_that_are_taken_for_values(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(statistics, "_not_only_nulls", lambda column_id: lambda of: True)


def delete_files_of_which_one_is_dropped(patch: pytest.MonkeyPatch) -> None:
    deletes_of = DeleteIndex.deletes_of
    patch.setattr(DeleteIndex, "deletes_of", lambda self, file: deletes_of(self, file)[1:])


def deletes_that_apply_to_newer_files(patch: pytest.MonkeyPatch) -> None:
    deletes_of = DeleteIndex.deletes_of

    def of_any_age(self: DeleteIndex, file: ContentFile) -> Sequence[ContentFile]:
        return deletes_of(self, file._replace(sequence_number=0))

    patch.setattr(DeleteIndex, "deletes_of", of_any_age)


def deletes_that_apply_to_files_of_the_next_commit(patch: pytest.MonkeyPatch) -> None:
    """So equality deletes apply to files of their own commit."""
    _move_files(patch, -1)


def deletes_that_spare_files_of_their_own_commit(patch: pytest.MonkeyPatch) -> None:
    _move_files(patch, 1)


def _move_files(patch: pytest.MonkeyPatch, by: int) -> None:
    deletes_of = DeleteIndex.deletes_of

    def of_moved(self: DeleteIndex, file: ContentFile) -> Sequence[ContentFile]:
        return deletes_of(self, file._replace(sequence_number=file.sequence_number + by))

    patch.setattr(DeleteIndex, "deletes_of", of_moved)


def partitions_that_all_match(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SpecFilter, "partition_may_match", lambda self, partition: True)


def manifests_without_a_match(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SpecFilter, "manifest_may_match", lambda self, partitions: partitions is None)


def residuals_that_are_left_out(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SpecFilter, "residual_json", lambda self, partition: True)


def residuals_that_are_the_whole_filter(patch: pytest.MonkeyPatch) -> None:
    for_spec = ScanFilter.for_spec

    def with_the_filter(self: ScanFilter, spec_id: int) -> SpecFilter:
        found = for_spec(self, spec_id)
        patch.setattr(found, "residual_json", lambda partition: expression_json(self.expression))
        return found

    patch.setattr(ScanFilter, "for_spec", with_the_filter)


def a_partition_spec_that_never_changed(patch: pytest.MonkeyPatch) -> None:
    for_spec = ScanFilter.for_spec
    patch.setattr(ScanFilter, "for_spec", lambda self, spec_id: for_spec(self, 0))


def buckets_of_another_hash(patch: pytest.MonkeyPatch) -> None:
    murmur3 = transform_values.murmur3
    patch.setattr(transform_values, "murmur3", lambda data: murmur3(data) ^ 1)


ALL: Sequence[Plant] = (
    upper_bounds_that_are_taken_for_lower_ones,
    bounds_without_effect,
    columns_that_have_no_nulls,
    nulls_that_are_taken_for_values,
    delete_files_of_which_one_is_dropped,
    deletes_that_apply_to_newer_files,
    deletes_that_apply_to_files_of_the_next_commit,
    deletes_that_spare_files_of_their_own_commit,
    partitions_that_all_match,
    manifests_without_a_match,
    residuals_that_are_left_out,
    residuals_that_are_the_whole_filter,
    a_partition_spec_that_never_changed,
    buckets_of_another_hash,
)
