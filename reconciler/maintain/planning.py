"""Decides which of Iceberg's procedures are due for a table: pure functions of figures, policies and the time.

Files are selected by the criteria of Iceberg's own procedures, so that a plan predicts what a call does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from arco_catalog.iceberg import table
from arco_catalog.iceberg.expiry import (
    DEFAULT_SNAPSHOT_AGE_MS,
    DEFAULT_TO_KEEP,
    MAX_SNAPSHOT_AGE,
    MIN_SNAPSHOTS_TO_KEEP,
    Retention,
)
from arco_catalog.iceberg.shapes import MAX_LONG
from arco_catalog.planning.upkeep_policy import SNAPSHOT_EXPIRY, InvalidPolicy, Policy, SnapshotExpiry
from reconciler.live_files import TARGET_BYTES
from reconciler.maintain.calls import Argument, Call, Procedure, Time
from reconciler.maintain.contents import DataFile
from reconciler.maintain.expiry import expired_snapshots
from reconciler.maintain.figures import Figures
from reconciler.maintain.formatting import counted, days, percent, size
from reconciler.maintain.policies import (
    DATA_COMPACTION,
    METADATA_COMPACTION,
    ORPHAN_FILE_REMOVAL,
    DataCompaction,
    MetadataCompaction,
    OrphanFileRemoval,
)
from reconciler.maintain.selection import MIN_INPUT_FILES, Criteria, Selection

DELETES_TARGET_BYTES = 64 << 20
MANIFEST_BYTES = 8 << 20
MAX_RETRY_GROUPS = 16
"""Into how many file groups a rewrite that lost files to a concurrent writer is divided at most when it is retried."""

POLICY_OF: Mapping[Procedure, str] = {
    Procedure.REWRITE_DATA_FILES: DATA_COMPACTION,
    Procedure.REWRITE_POSITION_DELETE_FILES: DATA_COMPACTION,
    Procedure.REWRITE_MANIFESTS: METADATA_COMPACTION,
    Procedure.EXPIRE_SNAPSHOTS: SNAPSHOT_EXPIRY,
    Procedure.REMOVE_ORPHAN_FILES: ORPHAN_FILE_REMOVAL,
}
"""The type of policy by which each procedure is called."""


@dataclass(frozen=True, slots=True)
class Now:
    """The input of a decision about a procedure besides the table: the time `ms` by the store's clock, the time of the
    table's last removal of orphan files (None if there was none), both in milliseconds since 1970, and how many bytes
    of data files may be rewritten (None: no limit)."""

    ms: int
    last_orphan_removal_ms: int | None = None
    bytes_left: int | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """A procedure that is due for a table: the call, the policy, the reason, and in `gain` what it is expected to
    change, as text. `bytes` is how many bytes it is expected to rewrite, `files` how many data files (0 for procedures
    other than `rewrite_data_files`), and `fewer` by how much the number of the table's files, manifests and snapshots
    is expected to fall (1 for `remove_orphan_files`, which can't be estimated)."""

    call: Call
    policy: Policy
    reason: str
    gain: str
    bytes: int = 0
    fewer: int = 0
    files: int = 0


@dataclass(frozen=True, slots=True)
class HeldBack:
    """A procedure that a policy requires for a table and that is not called, with the policy and the reason."""

    procedure: Procedure
    policy: Policy
    reason: str


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of a table's maintenance: the steps that are due, in the order in which they are taken, and the
    procedures held back."""

    steps: Sequence[Step] = ()
    held_back: Sequence[HeldBack] = ()

    @property
    def bytes(self) -> int:
        """The number of bytes that all steps of the plan together are expected to rewrite, in data files, files of
        position deletes and manifests."""
        return sum(step.bytes for step in self.steps)

    @property
    def fewer(self) -> int:
        """By how much all steps of the plan together are expected to lower the number of the table's files, manifests
        and snapshots; `remove_orphan_files` counts as 1."""
        return sum(step.fewer for step in self.steps)


def plan(figures: Figures, policies: Mapping[str, Policy], now: Now) -> Plan:
    """Decides about every maintenance procedure for a table, and returns the steps that are due and the procedures that
    are held back."""
    decisions = [decide(procedure, figures, policies, now) for procedure in Procedure]
    return Plan(
        [each for each in decisions if isinstance(each, Step)],
        [each for each in decisions if isinstance(each, HeldBack)],
    )


def decide(procedure: Procedure, figures: Figures, policies: Mapping[str, Policy], now: Now) -> Step | HeldBack | None:
    """Decides whether a maintenance procedure is due for a table with these figures; `policies` are by type. Returns a
    `Step` if it is, a `HeldBack` if a policy requires it and it must not be called (for invalid or unsuitable settings
    or a table property, even if the table needs no change, or for too few bytes left), and else None if no enabled
    policy requires it or the table needs no change."""
    policy = policies.get(POLICY_OF[procedure])
    if policy is None or not policy.enabled:
        return None
    try:
        match procedure:
            case Procedure.REWRITE_DATA_FILES:
                return _plan_data_files(figures, policy, DataCompaction.of(policy), now)
            case Procedure.REWRITE_POSITION_DELETE_FILES:
                return _plan_position_deletes(figures, policy, DataCompaction.of(policy))
            case Procedure.REWRITE_MANIFESTS:
                return _plan_manifests(figures, policy, MetadataCompaction.of(policy))
            case Procedure.EXPIRE_SNAPSHOTS:
                return _plan_expiry(figures, policy, SnapshotExpiry.of(policy), now)
            case Procedure.REMOVE_ORPHAN_FILES:
                return _plan_orphan_removal(figures, policy, OrphanFileRemoval.of(policy), now)
    except InvalidPolicy as unclear:
        return HeldBack(procedure, policy, str(unclear))


def _plan_data_files(figures: Figures, policy: Policy, compaction: DataCompaction, now: Now) -> Step | HeldBack | None:
    """Returns the step that rewrites data files, of as many as the bytes that are left allow, or why it is held back:
    the table has no sort order for the policy, even if nothing is due, or the bytes do not suffice for two files. Else
    None if nothing is due. Raises `InvalidPolicy` for options that `Criteria.of` does not accept, also then."""
    target = compaction.target_bytes or _number(figures, "write.target-file-size-bytes", TARGET_BYTES)
    if compaction.strategy == "sort" and compaction.order is None and not figures.sorted:
        return HeldBack(
            Procedure.REWRITE_DATA_FILES, policy, "the table has no sort order, and the policy names none (sort_order)"
        )
    try:
        criteria = Criteria.of(target, compaction.options)
    except ValueError as error:
        raise InvalidPolicy(
            f"options of rewrite_data_files in the policy {policy.name}, or the table's write.target-file-size-bytes, "
            f"cannot be used, so this procedure is held back, and other procedures are not: {error}"
        ) from error
    rewrite = Selection.of((group.data for group in figures.groups), criteria)
    if not rewrite.files:
        return None
    options: dict[str, str] = {
        "target-file-size-bytes": str(target),
        "partial-progress.enabled": "true",
        "rewrite-job-order": "files-desc",
        **compaction.options,
    }
    if figures.delete_files:
        options.setdefault("remove-dangling-deletes", "true")
    files, whole = rewrite.files, rewrite.bytes
    if now.bytes_left is not None and whole > now.bytes_left:
        files = files * now.bytes_left // whole
        if files < 2:
            return HeldBack(
                Procedure.REWRITE_DATA_FILES, policy, f"{size(whole)} are more than --max-bytes leaves for this run"
            )
        options["max-files-to-rewrite"] = str(files)
    share = files / rewrite.files
    arguments: dict[str, Argument] = {"strategy": "binpack" if compaction.strategy == "binpack" else "sort"}
    if compaction.order is not None:
        arguments["sort_order"] = compaction.order
    into = max(rewrite.partitions if share == 1 else 1, round(rewrite.into * share))
    reason = (
        f"{rewrite.files:,} of {figures.data_files:,} data files {_why(rewrite, criteria)}: {size(whole)} in "
        f"{counted(rewrite.partitions, 'partition')}"
    )
    if share < 1:
        reason += f"; the budget lets {files:,} be rewritten"
    return Step(
        Call(Procedure.REWRITE_DATA_FILES, {**arguments, "options": options}),
        policy,
        reason,
        f"{files:,} data files become about {into:,} of {size(target)} at most",
        round(whole * share),
        max(0, files - into),
        files,
    )


def _why(rewrite: Selection, criteria: Criteria) -> str:
    """Returns why a rewrite takes the files that it selected, as the predicate of a sentence about them, such as "are
    smaller than 96 MiB or larger than 230 MiB"."""
    sizes = f"are smaller than {size(criteria.min_bytes)} or larger than {size(criteria.max_bytes)}"
    if not rewrite.deleted_from:
        return sizes
    files = "" if criteria.delete_files is None else f"{counted(criteria.delete_files, 'delete file')} or "
    deleted = f"have {files}{percent(criteria.deleted_share)} of their rows deleted, or more"
    if rewrite.deleted_from == rewrite.files:
        return deleted
    return f"{sizes}, or {deleted}"


def split_rewrite(step: Step) -> Call:
    """Returns the call with which a step is retried after a concurrent writer made it fail, or Iceberg failed with some
    files. A rewrite of data files gets a limit for the size of file groups, by which the files of one partition make
    about `MAX_RETRY_GROUPS` at most; every other partition has at least one group more. Groups are committed one by
    one, or a few at once if there are many, so that a writer's commit fails only these
    (docs/design/pipeline.md#rule-14); the call of another procedure is returned as it is."""
    options = step.call.arguments.get("options")
    if step.call.procedure is not Procedure.REWRITE_DATA_FILES or not isinstance(options, Mapping):
        return step.call
    count = max(1, min(MAX_RETRY_GROUPS, step.files // MIN_INPUT_FILES))
    parts = {
        "max-file-group-size-bytes": str(max(1, step.bytes // count)),
        "min-input-files": "2",  # Iceberg fills groups in the order of the files, and the last may have few
        "partial-progress.max-commits": str(2 * MAX_RETRY_GROUPS),
    }
    return Call(step.call.procedure, {**step.call.arguments, "options": {**options, **parts}})


def _plan_position_deletes(figures: Figures, policy: Policy, compaction: DataCompaction) -> Step | None:
    """Returns the step that rewrites files of position deletes, by the table's target size and Iceberg's defaults (of
    the policy's options only the concurrency counts); None if nothing is due. Raises `InvalidPolicy` for a target size
    that `Criteria.of` does not accept."""
    target = _number(figures, "write.delete.target-file-size-bytes", DELETES_TARGET_BYTES)
    groups = ([DataFile(each) for each in group.position_deletes] for group in figures.groups)
    try:
        criteria = Criteria.of(target, {})
    except ValueError as error:
        raise InvalidPolicy(
            f"the table's write.delete.target-file-size-bytes can't be used, so this procedure is held back, and other "
            f"procedures are not: {error}"
        ) from error
    rewrite = Selection.of(groups, criteria)
    if not rewrite.files:
        return None
    options = {"partial-progress.enabled": "true"}
    if (concurrent := compaction.options.get("max-concurrent-file-group-rewrites")) is not None:
        options["max-concurrent-file-group-rewrites"] = concurrent
    return Step(
        Call(Procedure.REWRITE_POSITION_DELETE_FILES, {"options": options}),
        policy,
        f"{rewrite.files:,} small files of position deletes in {counted(rewrite.partitions, 'partition')}",
        f"about {rewrite.into:,} files in their place",
        rewrite.bytes,
        max(0, rewrite.files - rewrite.into),
    )


def _plan_manifests(figures: Figures, policy: Policy, compaction: MetadataCompaction) -> Step | None:
    """Returns the step that rewrites manifests; None if the table has less than the policy's minimum, or less than
    twice as many as their bytes need."""
    target = _number(figures, "commit.manifest.target-size-bytes", MANIFEST_BYTES)
    manifests = figures.manifests
    needed = sum(-(-sum(sizes) // target) for sizes in (manifests.data, manifests.deletes) if sizes)
    count = len(manifests)
    if count < compaction.min_manifests or count < 2 * needed:
        return None
    whole = sum(manifests.data) + sum(manifests.deletes)
    return Step(
        Call(Procedure.REWRITE_MANIFESTS),
        policy,
        f"{count:,} manifests of {size(whole // count)} on average; the target is {size(target)}",
        f"about {counted(needed, 'manifest')} in their place",
        whole,
        count - needed,
    )


def _plan_expiry(figures: Figures, policy: Policy, expiry: SnapshotExpiry, now: Now) -> Step | HeldBack | None:
    """Returns the step that expires snapshots; held back if the table does not allow files to be deleted; None if no
    snapshot expires, by the age and the number to keep that the policy sets, or else the table."""
    if not _gc_enabled(figures):
        return _gc_disabled(Procedure.EXPIRE_SNAPSHOTS, policy)
    age_ms = expiry.max_age_ms
    if age_ms is None:
        age_ms = _number(figures, MAX_SNAPSHOT_AGE, DEFAULT_SNAPSHOT_AGE_MS)
    keep = expiry.min_to_keep or _number(figures, MIN_SNAPSHOTS_TO_KEEP, DEFAULT_TO_KEEP)
    expired = expired_snapshots(figures, Retention(age_ms, keep), now.ms)
    if not expired:
        return None
    older_than: Mapping[str, Argument] = {"older_than": Time(max(0, now.ms - age_ms)), "retain_last": keep}
    return Step(
        Call(Procedure.EXPIRE_SNAPSHOTS, {**older_than, "stream_results": True}),
        policy,
        f"{len(expired):,} of {len(figures.snapshots):,} snapshots are older than {days(age_ms)} and beyond the last "
        f"{keep:,} of any branch",
        f"{len(expired):,} snapshots fewer, and the files that only they need",
        fewer=len(expired),
    )


def _plan_orphan_removal(
    figures: Figures, policy: Policy, removal: OrphanFileRemoval, now: Now
) -> Step | HeldBack | None:
    """Returns the step that removes orphan files; held back if the table does not allow files to be deleted, or the
    policy names more than one location; None if the last removal is younger than the age of files that the policy
    sets."""
    if not _gc_enabled(figures):
        return _gc_disabled(Procedure.REMOVE_ORPHAN_FILES, policy)
    if len(removal.locations) > 1:
        return HeldBack(
            Procedure.REMOVE_ORPHAN_FILES,
            policy,
            f"the policy names {len(removal.locations)} locations, and may name one location at most",
        )
    last = now.last_orphan_removal_ms
    if last is not None and now.ms - last < removal.max_age_ms:
        return None
    since = "they were never removed" if last is None else f"they were last removed {days(now.ms - last)} ago"
    where: Mapping[str, Argument] = {"location": removal.locations[0]} if removal.locations else {}
    arguments: Mapping[str, Argument] = {"older_than": Time(max(0, now.ms - removal.max_age_ms)), **where}
    return Step(
        Call(Procedure.REMOVE_ORPHAN_FILES, {**arguments, "prefix_listing": True}),
        policy,
        f"files older than {days(removal.max_age_ms)} that no metadata refers to: {since}",
        "as many as a listing finds",
        fewer=1,
    )


def _gc_enabled(figures: Figures) -> bool:
    """Whether the table allows files to be deleted."""
    return table.allows_deletes({"properties": {**figures.properties}})


def _gc_disabled(procedure: Procedure, policy: Policy) -> HeldBack:
    """Returns the held back procedure for a table that does not allow files to be deleted."""
    return HeldBack(procedure, policy, "the table's property gc.enabled is false: its files must not be deleted")


def _number(figures: Figures, name: str, default: int) -> int:
    """Returns the number in a table property, at most `MAX_LONG`; the default if the property is not set, or is not a
    positive number."""
    value = figures.properties.get(name, "")
    digits = value.lstrip("0") if value.isascii() and value.isdigit() else ""
    if not digits:
        return default
    return MAX_LONG if len(digits) > len(str(MAX_LONG)) else min(int(digits), MAX_LONG)
