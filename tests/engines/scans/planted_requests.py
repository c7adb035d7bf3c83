"""Bugs in how the request of a scan is understood, each of which the comparison with Java must notice."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from arco_catalog.iceberg.content_files import ContentFile
from arco_catalog.iceberg.errors import IllegalArgument
from arco_catalog.iceberg.expressions import expression_json
from arco_catalog.iceberg.expressions.expression import MIRRORED, Term
from arco_catalog.iceberg.json import JsonValue
from arco_catalog.iceberg.scan_json import file_json
from arco_catalog.iceberg.scan_request import PlanRequest, appends_after, scan_of
from arco_catalog.operations.scans.answer import TaskAnswer
from arco_catalog.state.manifest_entries import EntrySelection
from tests.engines.scans.planted import Plant

SCANS = "arco_catalog.operations.scans"


def rows_that_deletes_may_take_counted_as_certain(patch: pytest.MonkeyPatch) -> None:
    _count_as_certain(patch, lambda deletes, residual: residual is True)


def rows_that_the_residual_may_take_counted_as_certain(patch: pytest.MonkeyPatch) -> None:
    _count_as_certain(patch, lambda deletes, residual: not deletes)


def _count_as_certain(patch: pytest.MonkeyPatch, certain: Callable[[Sequence[ContentFile], JsonValue], bool]) -> None:
    add = TaskAnswer.add

    def counting(self: TaskAnswer, file: ContentFile, deletes: Sequence[ContentFile], residual: JsonValue) -> bool:
        rows = self.rows
        added = add(self, file, deletes, residual)
        self.rows = rows + file.statistics.record_count * certain(deletes, residual)
        return added

    patch.setattr(TaskAnswer, "add", counting)


def statistics_of_every_column(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(f"{SCANS}.answer.file_json", lambda file, types, columns: file_json(file, types, range(100)))


def statistics_of_no_column(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(f"{SCANS}.answer.file_json", lambda file, types, columns: file_json(file, types))


def comparisons_that_are_not_turned_round(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(expression_json, "MIRRORED", {operation: operation for operation in MIRRORED})


def ids_that_are_taken_for_those_of_the_next_column(patch: pytest.MonkeyPatch) -> None:
    reference = expression_json._Parser._reference

    def of_next(self: Any, value: Any) -> Term:
        term = reference(self, value)
        return Term(term.column + 1, term.transform) if isinstance(term.column, int) else term

    patch.setattr(expression_json._Parser, "_reference", of_next)


def names_in_any_case(patch: pytest.MonkeyPatch) -> None:
    _change_request(patch, lambda request: {**request, "case-sensitive": False})


def names_that_always_have_their_case(patch: pytest.MonkeyPatch) -> None:
    _change_request(patch, lambda request: {**request, "case-sensitive": True})


def a_schema_that_is_always_the_present_one(patch: pytest.MonkeyPatch) -> None:
    _change_request(patch, lambda request: {**request, "use-snapshot-schema": False})


def a_schema_that_is_always_that_of_the_snapshot(patch: pytest.MonkeyPatch) -> None:
    _change_request(patch, lambda request: {**request, "use-snapshot-schema": True})


def _change_request(patch: pytest.MonkeyPatch, change: Callable[[PlanRequest], Mapping[str, object]]) -> None:
    scan: Callable[[Any, Any], Any] = scan_of
    patch.setattr(f"{SCANS}.scan_table.scan_of", lambda request, metadata: scan(change(request), metadata))


def an_increment_that_begins_with_its_start(patch: pytest.MonkeyPatch) -> None:
    def inclusive(after: int, snapshots: Mapping[int, Any], last: int) -> Sequence[Any]:
        return [*([snapshots[after]] if after in snapshots else []), *appends_after(after, snapshots, last)]

    patch.setattr(f"{SCANS}.scan_table.appends_after", inclusive)


def an_increment_of_every_kind_of_commit(patch: pytest.MonkeyPatch) -> None:
    def of_all(after: int, snapshots: Mapping[int, Any], last: int) -> Sequence[Any]:
        appends: Any = {number: {**each, "summary": {"operation": "append"}} for number, each in snapshots.items()}
        return [snapshots[each["snapshot-id"]] for each in appends_after(after, appends, last)]

    patch.setattr(f"{SCANS}.scan_table.appends_after", of_all)


def an_increment_whose_start_must_not_have_expired(patch: pytest.MonkeyPatch) -> None:
    def of_kept(after: int, snapshots: Mapping[int, Any], last: int) -> Sequence[Any]:
        if after not in snapshots:
            raise IllegalArgument(f"Cannot find snapshot {after}")
        return appends_after(after, snapshots, last)

    patch.setattr(f"{SCANS}.scan_table.appends_after", of_kept)


def an_increment_of_files_that_are_carried_over(patch: pytest.MonkeyPatch) -> None:
    selection: Any = EntrySelection
    patch.setattr(f"{SCANS}.planner.EntrySelection", lambda **fields: selection(**{**fields, "added_only": False}))


ALL: Sequence[Plant] = (
    rows_that_deletes_may_take_counted_as_certain,
    rows_that_the_residual_may_take_counted_as_certain,
    statistics_of_every_column,
    statistics_of_no_column,
    comparisons_that_are_not_turned_round,
    ids_that_are_taken_for_those_of_the_next_column,
    names_in_any_case,
    names_that_always_have_their_case,
    a_schema_that_is_always_the_present_one,
    a_schema_that_is_always_that_of_the_snapshot,
    an_increment_that_begins_with_its_start,
    an_increment_of_every_kind_of_commit,
    an_increment_whose_start_must_not_have_expired,
    an_increment_of_files_that_are_carried_over,
)
