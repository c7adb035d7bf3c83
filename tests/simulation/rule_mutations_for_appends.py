"""The rules of rebased appends, left out one at a time (docs/design/appends.md)."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from arco_catalog.iceberg import appends
from arco_catalog.iceberg.commit import Commit
from arco_catalog.iceberg.manifests import ManifestFile
from arco_catalog.planning import append_rebase
from arco_catalog.planning.append_rebase import AppendOnTarget, RebasedAppend
from arco_catalog.planning.collection import Fate
from arco_catalog.planning.kinds import TableSemantics
from arco_catalog.protocol import append_rebaser
from arco_catalog.state.manifest_lists import encode_manifest_list
from arco_catalog.upkeep.collection import receipts
from arco_catalog.upkeep.collection.files import remove_manifest_list
from tests.simulation.rule_mutations import Mutation


def a_rebase_that_loses_the_manifests_of_the_winner(patch: pytest.MonkeyPatch) -> None:
    def rebase(commit: Commit, read: AppendOnTarget, **how: Any) -> RebasedAppend:
        return append_rebase.rebase(commit, replace(read, present=[*read.present][1:]), **how)

    patch.setattr(append_rebaser, "rebase", rebase)


def a_sequence_number_that_is_not_raised(patch: pytest.MonkeyPatch) -> None:
    """The new list has the number that the client has given to its manifests."""

    def encode(manifests: Sequence[ManifestFile], version: int, header: Sequence[int | None]) -> bytes:
        [new, *present] = manifests
        return encode_manifest_list([new._replace(sequence_number=len(present)), *present], version, header)

    patch.setattr(append_rebase, "encode_manifest_list", encode)


def a_first_row_id_that_is_repeated(patch: pytest.MonkeyPatch) -> None:
    """The new manifests keep the row ids that the client has given to them."""
    patch.setattr(append_rebase, "_with_row_ids", lambda manifests, _: manifests)


def a_rebased_merge_that_matched_nothing(patch: pytest.MonkeyPatch) -> None:
    """The operation `append` alone is taken for a request to rebase."""
    patch.setattr(TableSemantics, "requests_rebase", lambda *_: True)
    patch.setattr(appends, "_check_summary", lambda _: None)


def two_rebased_coordinators(patch: pytest.MonkeyPatch) -> None:
    """The fields by which engines recognise their own commits are ignored."""
    patch.setattr(appends, "VALIDATED", ())


def a_list_that_goes_with_the_receipt_of_its_commit(patch: pytest.MonkeyPatch) -> None:
    """The collector takes each list that a pending receipt names, also if the commit was applied."""
    decide = receipts._fate

    async def fate(run: Any, entities: Any, pending: receipts.Receipt) -> Fate:
        decided = await decide(run, entities, pending)
        if decided is Fate.RECEIPTED and pending.manifest_list is not None:
            await remove_manifest_list(run, pending.entity, pending.file, pending.manifest_list)
        return decided

    patch.setattr(receipts, "_fate", fate)


def a_time_that_is_not_later_than_the_parents(patch: pytest.MonkeyPatch) -> None:
    """The snapshot keeps the time of its client."""

    def rebase(commit: Commit, read: AppendOnTarget, *, now_ms: int, uuid: str) -> RebasedAppend:
        sent = read.append.snapshot["timestamp-ms"]
        return append_rebase.rebase(
            commit, replace(read, target=replace(read.target, min_ms=0)), now_ms=sent, uuid=uuid
        )

    patch.setattr(append_rebaser, "rebase", rebase)


def an_append_whose_snapshot_may_have_been_expired(patch: pytest.MonkeyPatch) -> None:
    """The snapshots between the one on which the client built and the present one need not be known."""
    patch.setattr(appends, "_check_descent", lambda *_: None)


BY_PROGRAMS: Sequence[Mutation] = (an_append_whose_snapshot_may_have_been_expired,)
"""Bugs that programs find, and the scenarios do not."""
BUGS: Sequence[Mutation] = (
    a_rebase_that_loses_the_manifests_of_the_winner,
    a_sequence_number_that_is_not_raised,
    a_first_row_id_that_is_repeated,
    a_rebased_merge_that_matched_nothing,
    two_rebased_coordinators,
    a_list_that_goes_with_the_receipt_of_its_commit,
    a_time_that_is_not_later_than_the_parents,
)
