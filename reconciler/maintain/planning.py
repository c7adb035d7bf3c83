"""What would be done to a table, and why: pure functions of its figures, its policies and the time.

The figures are judged as Iceberg's own procedures judge files, so that what is foreseen here is what they do.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reconciler.live_files import TARGET_BYTES
from reconciler.maintain.calls import Argument, Call, Procedure, Time
from reconciler.maintain.contents import DataFile
from reconciler.maintain.expiry import expired
from reconciler.maintain.figures import Figures
from reconciler.maintain.policies import (
    DATA_COMPACTION,
    DAY_MS,
    METADATA_COMPACTION,
    ORPHAN_FILE_REMOVAL,
    SNAPSHOT_EXPIRY,
    DataCompaction,
    MetadataCompaction,
    OrphanFileRemoval,
    Policy,
    PolicyUnclear,
    SnapshotExpiry,
)
from reconciler.maintain.selection import MIN_INPUT_FILES, Criteria, Selection
from reconciler.maintain.wording import counted, days, percent, size

DELETES_TARGET_BYTES = 64 << 20
MANIFEST_BYTES = 8 << 20
PARTS = 16
"""In how many at most a rewrite is tried again that gave way to a writer."""

POLICY_OF: Mapping[Procedure, str] = {
    Procedure.REWRITE_DATA_FILES: DATA_COMPACTION,
    Procedure.REWRITE_POSITION_DELETE_FILES: DATA_COMPACTION,
    Procedure.REWRITE_MANIFESTS: METADATA_COMPACTION,
    Procedure.EXPIRE_SNAPSHOTS: SNAPSHOT_EXPIRY,
    Procedure.REMOVE_ORPHAN_FILES: ORPHAN_FILE_REMOVAL,
}
"""The type of policy that asks for a procedure."""


@dataclass(frozen=True, slots=True)
class Now:
    """What a decision knows besides the table: the store's time, when orphan files were last removed from the table,
    and how many bytes may be rewritten (None: any)."""

    ms: int
    orphans_removed_ms: int | None = None
    bytes_left: int | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """A procedure that is due: by which policy, why, what it is expected to gain. `bytes` are read and written by it,
    `files` data files rewritten; `fewer` is how many files, manifests and snapshots there are fewer afterwards."""

    call: Call
    policy: Policy
    reason: str
    gain: str
    bytes: int = 0
    fewer: int = 0
    files: int = 0


@dataclass(frozen=True, slots=True)
class HeldBack:
    """A procedure that a policy asks for, and that is not called: why."""

    procedure: Procedure
    policy: Policy
    reason: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What is due for a table, in order, and what is held back."""

    steps: Sequence[Step] = ()
    held_back: Sequence[HeldBack] = ()

    @property
    def bytes(self) -> int:
        """Read and written by all of it."""
        return sum(step.bytes for step in self.steps)

    @property
    def fewer(self) -> int:
        """How many files, manifests and snapshots there are fewer afterwards: the worst table has the most."""
        return sum(step.fewer for step in self.steps)


def plan(figures: Figures, policies: Mapping[str, Policy], now: Now) -> Plan:
    """All that is due."""
    decisions = [decide(procedure, figures, policies, now) for procedure in Procedure]
    return Plan(
        [each for each in decisions if isinstance(each, Step)],
        [each for each in decisions if isinstance(each, HeldBack)],
    )


def decide(procedure: Procedure, figures: Figures, policies: Mapping[str, Policy], now: Now) -> Step | HeldBack | None:
    """Whether a procedure is due; None without a policy that asks for it, and where the table needs nothing."""
    policy = policies.get(POLICY_OF[procedure])
    if policy is None or not policy.enabled:
        return None
    try:
        match procedure:
            case Procedure.REWRITE_DATA_FILES:
                return _data(figures, policy, DataCompaction.of(policy), now)
            case Procedure.REWRITE_POSITION_DELETE_FILES:
                return _position_deletes(figures, policy, DataCompaction.of(policy))
            case Procedure.REWRITE_MANIFESTS:
                return _manifests(figures, policy, MetadataCompaction.of(policy))
            case Procedure.EXPIRE_SNAPSHOTS:
                return _snapshots(figures, policy, SnapshotExpiry.of(policy), now)
            case Procedure.REMOVE_ORPHAN_FILES:
                return _orphans(figures, policy, OrphanFileRemoval.of(policy), now)
    except PolicyUnclear as unclear:
        return HeldBack(procedure, policy, str(unclear))


def _data(figures: Figures, policy: Policy, asked: DataCompaction, now: Now) -> Step | HeldBack | None:
    target = asked.target_bytes or _number(figures, "write.target-file-size-bytes", TARGET_BYTES)
    if asked.strategy == "sort" and asked.order is None and not figures.sorted:
        return HeldBack(
            Procedure.REWRITE_DATA_FILES, policy, "the table has no sort order, and the policy names none (sort_order)"
        )
    try:
        criteria = Criteria.of(target, asked.options)
    except ValueError as error:
        raise PolicyUnclear(f"{policy.name}: {error}") from error
    rewrite = Selection.of((group.data for group in figures.groups), criteria)
    if not rewrite.files:
        return None
    options: dict[str, str] = {
        "target-file-size-bytes": str(target),
        "partial-progress.enabled": "true",
        "rewrite-job-order": "files-desc",
        **asked.options,
    }
    if figures.delete_files:
        options.setdefault("remove-dangling-deletes", "true")
    files, whole = rewrite.files, rewrite.bytes
    if now.bytes_left is not None and whole > now.bytes_left:
        files = files * now.bytes_left // whole
        if files < 2:
            return HeldBack(Procedure.REWRITE_DATA_FILES, policy, f"{size(whole)} are more than the budget leaves")
        options["max-files-to-rewrite"] = str(files)
    share = files / rewrite.files
    arguments: dict[str, Argument] = {"strategy": "binpack" if asked.strategy == "binpack" else "sort"}
    if asked.order is not None:
        arguments["sort_order"] = asked.order
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
    """What is wrong with the files of a rewrite."""
    sizes = f"are smaller than {size(criteria.least)} or larger than {size(criteria.most)}"
    if not rewrite.deleted_from:
        return sizes
    files = "" if criteria.delete_files is None else f"{counted(criteria.delete_files, 'delete file')} or "
    deleted = f"have {files}{percent(criteria.deleted_share)} of their rows deleted, or more"
    if rewrite.deleted_from == rewrite.files:
        return deleted
    return f"{sizes}, or {deleted}"


def in_parts(step: Step) -> Call:
    """The call of a step that gave way to a writer: files are rewritten in smaller groups, each of which is committed
    by itself, so that a writer who is first at one file takes away its group alone (docs/design/pipeline.md#rule-14).
    """
    options = step.call.arguments.get("options")
    if step.call.procedure is not Procedure.REWRITE_DATA_FILES or not isinstance(options, Mapping):
        return step.call
    count = max(1, min(PARTS, step.files // MIN_INPUT_FILES))
    parts = {
        "max-file-group-size-bytes": str(max(1, step.bytes // count)),
        "min-input-files": "2",  # groups are filled in the order of the files, and may end with few
        "partial-progress.max-commits": str(2 * PARTS),
    }
    return Call(step.call.procedure, {**step.call.arguments, "options": {**options, **parts}})


def _position_deletes(figures: Figures, policy: Policy, asked: DataCompaction) -> Step | None:
    target = _number(figures, "write.delete.target-file-size-bytes", DELETES_TARGET_BYTES)
    groups = ([DataFile(each) for each in group.position_deletes] for group in figures.groups)
    rewrite = Selection.of(groups, Criteria.of(target, {}))
    if not rewrite.files:
        return None
    options = {"partial-progress.enabled": "true"}
    if (at_once := asked.options.get("max-concurrent-file-group-rewrites")) is not None:
        options["max-concurrent-file-group-rewrites"] = at_once
    return Step(
        Call(Procedure.REWRITE_POSITION_DELETE_FILES, {"options": options}),
        policy,
        f"{rewrite.files:,} small files of position deletes in {counted(rewrite.partitions, 'partition')}",
        f"about {rewrite.into:,} files in their place",
        rewrite.bytes,
        max(0, rewrite.files - rewrite.into),
    )


def _manifests(figures: Figures, policy: Policy, asked: MetadataCompaction) -> Step | None:
    target = _number(figures, "commit.manifest.target-size-bytes", MANIFEST_BYTES)
    manifests = figures.manifests
    needed = sum(-(-sum(sizes) // target) for sizes in (manifests.data, manifests.deletes) if sizes)
    there = len(manifests)
    if there < asked.min_manifests or there < 2 * needed:
        return None
    whole = sum(manifests.data) + sum(manifests.deletes)
    return Step(
        Call(Procedure.REWRITE_MANIFESTS),
        policy,
        f"{there:,} manifests of {size(whole // there)} on average, where {size(target)} are asked for",
        f"about {counted(needed, 'manifest')} in their place",
        whole,
        there - needed,
    )


def _snapshots(figures: Figures, policy: Policy, asked: SnapshotExpiry, now: Now) -> Step | HeldBack | None:
    if not _collects(figures):
        return _not_collected(Procedure.EXPIRE_SNAPSHOTS, policy)
    age_ms = asked.max_age_ms
    if age_ms is None:
        age_ms = _number(figures, "history.expire.max-snapshot-age-ms", 5 * DAY_MS)
    keep = asked.min_to_keep or _number(figures, "history.expire.min-snapshots-to-keep", 1)
    gone = expired(figures, now.ms - age_ms, keep, now.ms)
    if not gone:
        return None
    older_than: Mapping[str, Argument] = {"older_than": Time(max(0, now.ms - age_ms)), "retain_last": keep}
    return Step(
        Call(Procedure.EXPIRE_SNAPSHOTS, {**older_than, "stream_results": True}),
        policy,
        f"{len(gone):,} of {len(figures.snapshots):,} snapshots are older than {days(age_ms)} and beyond the last "
        f"{keep:,} of any branch",
        f"{len(gone):,} snapshots fewer, and the files that only they need",
        fewer=len(gone),
    )


def _orphans(figures: Figures, policy: Policy, asked: OrphanFileRemoval, now: Now) -> Step | HeldBack | None:
    if not _collects(figures):
        return _not_collected(Procedure.REMOVE_ORPHAN_FILES, policy)
    if len(asked.locations) > 1:
        return HeldBack(Procedure.REMOVE_ORPHAN_FILES, policy, "a policy may name one location at most")
    last = now.orphans_removed_ms
    if last is not None and now.ms - last < asked.max_age_ms:
        return None
    since = "nobody has looked for them yet" if last is None else f"they were removed {days(now.ms - last)} ago"
    where: Mapping[str, Argument] = {"location": asked.locations[0]} if asked.locations else {}
    arguments: Mapping[str, Argument] = {"older_than": Time(max(0, now.ms - asked.max_age_ms)), **where}
    return Step(
        Call(Procedure.REMOVE_ORPHAN_FILES, {**arguments, "prefix_listing": True, "stream_results": True}),
        policy,
        f"files older than {days(asked.max_age_ms)} that no metadata names: {since}",
        "as many as a listing finds",
        fewer=1,
    )


def _collects(figures: Figures) -> bool:
    return figures.properties.get("gc.enabled", "true").lower() == "true"


def _not_collected(procedure: Procedure, policy: Policy) -> HeldBack:
    return HeldBack(procedure, policy, "the table's property gc.enabled is false: nobody may delete its files")


def _number(figures: Figures, name: str, otherwise: int) -> int:
    said = figures.properties.get(name, "")
    return int(said) if said.isascii() and said.isdigit() and int(said) > 0 else otherwise
