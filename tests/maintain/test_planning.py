"""What would be done to a table, and why (docs/design/pipeline.md#rule-10)."""

from dataclasses import replace
from math import inf, nan

import pytest

from arco_catalog.iceberg.shapes import MAX_LONG
from arco_catalog.planning.upkeep_policy import DAY_MS
from reconciler.maintain.calls import Procedure, Time
from reconciler.maintain.figures import Manifests, Ref
from reconciler.maintain.planning import HeldBack, Now, Plan, plan
from reconciler.maintain.table_plans import TablePlan, TableRef
from tests.maintain.tables import MIB, NOW_MS, due, held_back, nothing, policies, policy, table

DATA, DELETES, MANIFESTS, EXPIRE, ORPHANS = Procedure
COMPACTION = policy("data-compaction")
ORPHANED = policy("orphan-file-removal")


def test_nothing_is_due_without_a_policy() -> None:
    bad = table([1] * 1_000, snapshots=100, manifests=Manifests((1,) * 500), position_deletes=[1] * 50)
    assert plan(bad, {}, Now(NOW_MS)).steps == []


def test_nothing_is_due_by_a_policy_that_is_not_enabled() -> None:
    bad = table([1] * 1_000, snapshots=100, manifests=Manifests((1,) * 500))
    kinds = ("data-compaction", "metadata-compaction", "snapshot-expiry", "orphan-file-removal")
    assert plan(bad, policies(*(policy(kind, enable=False) for kind in kinds)), Now(NOW_MS)).steps == []


def test_small_files_of_one_partition_are_rewritten_and_the_reason_counts_them() -> None:
    step = due(DATA, table([MIB] * 40, [600 * MIB]), COMPACTION)
    assert step.reason == ("40 of 41 data files are smaller than 384 MiB or larger than 922 MiB: 40 MiB in 1 partition")
    assert (step.gain, step.bytes, step.fewer) == ("40 data files become about 1 of 512 MiB at most", 40 * MIB, 39)


def test_few_small_files_in_each_partition_are_left_alone_however_many_partitions_there_are() -> None:
    assert nothing(DATA, table(*([MIB] * 4 for _ in range(100))), COMPACTION)


def test_two_files_that_are_more_than_one_together_are_rewritten() -> None:
    assert due(DATA, table([300 * MIB, 300 * MIB]), COMPACTION).fewer == 0


def test_a_file_that_is_much_too_large_is_rewritten_alone() -> None:
    step = due(DATA, table([2_000 * MIB]), COMPACTION)
    assert step.gain == "1 data files become about 4 of 512 MiB at most"


def test_the_policy_s_own_file_size_goes_before_the_table_s() -> None:
    figures = table([MIB] * 10, properties={"write.target-file-size-bytes": str(MIB)})
    assert nothing(DATA, figures, COMPACTION)
    step = due(DATA, figures, policy("data-compaction", config={"target_file_size_bytes": 100 * MIB}))
    assert step.call.arguments["options"]["target-file-size-bytes"] == str(100 * MIB)  # type: ignore[index]


def test_a_policy_may_ask_for_a_sort_or_a_z_order() -> None:
    sort = policy("data-compaction", config={"compaction_strategy": "sort", "sort_order": "a DESC NULLS LAST"})
    assert due(DATA, table([1] * 5), sort).call.arguments["sort_order"] == "a DESC NULLS LAST"
    z_order = policy("data-compaction", config={"strategy": "z-order", "sort_order": "a, b"})
    arguments = due(DATA, table([1] * 5), z_order).call.arguments
    assert (arguments["strategy"], arguments["sort_order"]) == ("sort", "zorder(a, b)")


def test_a_sort_without_columns_needs_the_table_s_own_order() -> None:
    said = policy("data-compaction", config={"strategy": "sort"})
    assert held_back(DATA, table([1] * 5), said).startswith("the table has no sort order")


def test_a_budget_lets_a_share_be_rewritten() -> None:
    step = due(DATA, table([MIB] * 100), COMPACTION, bytes_left=25 * MIB)
    assert step.call.arguments["options"]["max-files-to-rewrite"] == "25"  # type: ignore[index]
    assert (step.bytes, step.fewer) == (25 * MIB, 24)
    why = held_back(DATA, table([MIB] * 100), COMPACTION, bytes_left=MIB)
    assert why == "100 MiB are more than --max-bytes leaves for this run"


def test_a_rewrite_that_is_held_back_for_another_reason_is_so_once_under_a_budget() -> None:
    unsorted = policies(policy("data-compaction", config={"strategy": "sort"}), policy("metadata-compaction"))
    figures = table([MIB] * 5, manifests=Manifests((4096,) * 200))
    planned = TablePlan(TableRef(("db",), "t", "entity"), figures, unsorted, plan(figures, unsorted, Now(NOW_MS)))
    assert [step.call.procedure for step in planned.plan.steps] == [MANIFESTS]
    limited = planned.limited_to(1)
    assert [held.procedure for held in limited.plan.held_back] == [DATA]
    assert limited.plan.steps == planned.plan.steps


def test_a_rewrite_that_must_not_be_done_stays_held_back_under_a_budget() -> None:
    compaction = policies(COMPACTION)
    figures = table([MIB] * 100, position_deletes=[30 * MIB] * 5)
    found = plan(figures, compaction, Now(NOW_MS))
    rewrite, *others = found.steps
    held = HeldBack(DATA, rewrite.policy, "it names a file outside of its locations")
    planned = TablePlan(TableRef(("db",), "t", "entity"), figures, compaction, Plan(others, [held]))
    assert planned.plan.bytes > 100 * MIB
    limited = planned.limited_to(100 * MIB)
    assert (limited.plan.steps, limited.plan.held_back) == (others, [held])


def test_position_deletes_are_rewritten_where_many_lie_together() -> None:
    assert nothing(DELETES, table([1], position_deletes=[1] * 4), COMPACTION)
    assert due(DELETES, table([1], position_deletes=[1] * 5), COMPACTION).fewer == 4


@pytest.mark.parametrize("size", ["1", "9" * 400, "9" * 5_000, "0" * 5_000 + "1", "x", "-1", "0"])
@pytest.mark.parametrize("name", ["write.target-file-size-bytes", "write.delete.target-file-size-bytes"])
def test_no_size_in_a_table_s_properties_ends_a_run(name: str, size: str) -> None:
    found = plan(table([1] * 9, properties={name: size}, position_deletes=[1] * 9), policies(COMPACTION), Now(NOW_MS))
    procedures = {each.call.procedure for each in found.steps} | {each.procedure for each in found.held_back}
    assert {DATA, DELETES} <= procedures


@pytest.mark.parametrize("age", [str(MAX_LONG), "1" + "0" * 18, "9" * 400])
@pytest.mark.parametrize("name", ["history.expire.max-snapshot-age-ms", "history.expire.min-snapshots-to-keep"])
def test_no_snapshot_expires_of_a_table_that_keeps_as_many_as_there_can_be(name: str, age: str) -> None:
    assert nothing(EXPIRE, table([1], snapshots=10, properties={name: age}), policy("snapshot-expiry"))
    assert due(EXPIRE, table([1], snapshots=10), policy("snapshot-expiry"))


def test_a_target_size_beyond_64_bits_holds_a_rewrite_back() -> None:
    huge = policy("data-compaction", config={"target-file-size-bytes": "9" * 400})
    assert "must be at most" in held_back(DATA, table([1] * 9), huge)


def test_manifests_are_rewritten_when_half_as_many_would_do() -> None:
    said = policy("metadata-compaction")
    assert nothing(MANIFESTS, table([1], manifests=Manifests((1,) * 9)), said)
    assert nothing(MANIFESTS, table([1], manifests=Manifests((8 * MIB,) * 100)), said)
    step = due(MANIFESTS, table([1], manifests=Manifests((MIB,) * 40, (1,) * 2)), said)
    assert (step.gain, step.fewer) == ("about 6 manifests in their place", 36)


def test_snapshots_expire_by_the_policy_and_the_call_says_the_same() -> None:
    said = policy("snapshot-expiry", config={"max_snapshot_age_days": 3, "min_snapshot_to_keep": 2})
    step = due(EXPIRE, table([1], snapshots=10), said)
    assert step.reason == "6 of 10 snapshots are older than 3 days and beyond the last 2 of any branch"
    assert step.call.arguments["older_than"] == Time(NOW_MS - 3 * DAY_MS)
    assert step.call.arguments["retain_last"] == 2


def test_without_settings_snapshots_expire_by_the_table_s_properties() -> None:
    properties = {"history.expire.max-snapshot-age-ms": str(DAY_MS), "history.expire.min-snapshots-to-keep": "7"}
    step = due(EXPIRE, table([1], snapshots=10, properties=properties), policy("snapshot-expiry"))
    assert (step.fewer, step.call.arguments["retain_last"]) == (3, 7)
    assert due(EXPIRE, table([1], snapshots=10), policy("snapshot-expiry")).fewer == 4


@pytest.mark.parametrize(("procedure", "kind"), [(EXPIRE, "snapshot-expiry"), (ORPHANS, "orphan-file-removal")])
def test_nothing_is_deleted_of_a_table_that_forbids_it(procedure: Procedure, kind: str) -> None:
    figures = table([1], snapshots=10, properties={"gc.enabled": "false"})
    assert "gc.enabled is false" in held_back(procedure, figures, policy(kind))


def test_orphan_files_are_removed_as_often_as_they_come_of_age() -> None:
    said = policy("orphan-file-removal", max_orphan_file_age_in_days=4)
    assert "they were never removed" in due(ORPHANS, table([1]), said).reason
    assert nothing(ORPHANS, table([1]), said, last_orphan_removal_ms=NOW_MS - 3 * DAY_MS)
    step = due(ORPHANS, table([1]), said, last_orphan_removal_ms=NOW_MS - 5 * DAY_MS)
    assert step.reason == "files older than 4 days that no metadata refers to: they were last removed 5 days ago"
    assert step.call.arguments["older_than"] == Time(NOW_MS - 4 * DAY_MS)


def test_orphan_files_are_removed_by_arguments_that_iceberg_1_10_has() -> None:
    """Before 1.11 the procedure has no `stream_results`, and with it returns 20,000 of the files at most."""
    step = due(ORPHANS, table([1]), policy("orphan-file-removal"))
    assert {*step.call.arguments} == {"older_than", "prefix_listing"}


def test_no_file_is_older_than_the_first_of_times() -> None:
    step = due(ORPHANS, table([1]), policy("orphan-file-removal", max_orphan_file_age_in_days=999_999))
    assert "TIMESTAMP '1970-01-01" in step.call.statement("arco", ("db", "t"))


def test_steps_come_in_the_order_in_which_they_leave_least_to_do() -> None:
    bad = table([1] * 1_000, snapshots=100, manifests=Manifests((1,) * 500), position_deletes=[1] * 50)
    kinds = ("orphan-file-removal", "snapshot-expiry", "metadata-compaction", "data-compaction")
    made = plan(bad, policies(*map(policy, kinds)), Now(NOW_MS))
    assert [step.call.procedure for step in made.steps] == [*Procedure]
    assert made.fewer == 999 + 49 + 499 + 94 + 1


@pytest.mark.parametrize(
    ("procedure", "said", "why"),
    [
        (
            EXPIRE,
            policy("snapshot-expiry", config={"max_snapshot_age_day": 365}),
            "unknown settings: max-snapshot-age-day",
        ),
        (EXPIRE, policy("snapshot-expiry", config={"max_ref_age_days": 3}), "unknown settings: max-ref-age-days"),
        (EXPIRE, policy("snapshot-expiry", config={"max_snapshot_age_days": "soon"}), "max-snapshot-age-days"),
        (EXPIRE, policy("snapshot-expiry", config={"max_snapshot_age_days": -1}), "number of days"),
        (EXPIRE, policy("snapshot-expiry", config={"min_snapshot_to_keep": 0}), "at least 1"),
        (DATA, policy("data-compaction", config={"strategy": "hilbert"}), "expected one of the strategies"),
        (DATA, policy("data-compaction", config={"strategy": "z-order"}), "names no columns"),
        (DATA, policy("data-compaction", config={"sort_order": "a"}), "no strategy that sorts"),
        (DATA, policy("data-compaction", config={"rewrite-all": True}), "unknown settings: rewrite-all"),
        (
            DATA,
            policy("data-compaction", config={"min-input-files": "few"}),
            "min-input-files must be a whole number, got few",
        ),
        (DATA, policy("data-compaction", config={"strategy": "sort", "compaction_strategy": "sort"}), "mean the same"),
        (ORPHANS, policy("orphan-file-removal", max_orphan_file_age_in_days=0.5), "younger than a day"),
        (ORPHANS, policy("orphan-file-removal", max_orphan_file_age_in_days=True), "number of days"),
        (ORPHANS, policy("orphan-file-removal", max_orphan_file_age_in_days="soon"), "number of days"),
        (ORPHANS, policy("orphan-file-removal", max_orphan_file_age_in_days=1e308), "number of days"),
        (ORPHANS, policy("orphan-file-removal", max_orphan_file_age_in_days=10**15), "number of days"),
        (ORPHANS, replace(ORPHANED, content={"max_orphan_file_age_in_days": inf}), "number of days"),
        (ORPHANS, replace(ORPHANED, content={"max_orphan_file_age_in_days": nan}), "number of days"),
        (EXPIRE, policy("snapshot-expiry", config={"max_snapshot_age_days": "inf"}), "number of days"),
        (EXPIRE, policy("snapshot-expiry", config={"max_snapshot_age_days": "nan"}), "number of days"),
        (ORPHANS, policy("orphan-file-removal", locations=["file:///a", "file:///b"]), "one location"),
    ],
)
def test_a_policy_that_is_not_understood_asks_for_nothing(procedure: Procedure, said: object, why: str) -> None:
    assert why in held_back(procedure, table([1] * 10, snapshots=100), said)  # type: ignore[arg-type]


def test_what_a_policy_says_of_a_branch_goes_behind_what_the_branch_says() -> None:

    figures = table([1], snapshots=10)
    kept = [Ref("main", 10, branch=True), Ref("audit", 8, branch=True, min_to_keep=4), Ref("v1", 2, branch=False)]
    step = due(EXPIRE, replace(figures, refs=kept), policy("snapshot-expiry", config={"max_snapshot_age_days": 0}))
    assert step.fewer == 10 - len({10, 8, 7, 6, 5, 2})


def test_a_young_snapshot_before_a_tag_that_no_branch_contains_stays() -> None:
    """Iceberg takes only snapshots of branches and those that a tag names for referenced ones."""
    figures = replace(table([1], snapshots=4), refs=[Ref("main", 2, branch=True), Ref("v1", 4, branch=False)])
    assert nothing(EXPIRE, figures, policy("snapshot-expiry", config={"max_snapshot_age_days": 5}))
