"""Figures of tables, and policies, as tests need them."""

from collections.abc import Mapping, Sequence

from arco_catalog.iceberg.json import JsonObject, JsonValue, dumps
from arco_catalog.planning.upkeep_policy import DAY_MS, Policy
from reconciler.maintain.calls import Procedure
from reconciler.maintain.figures import DataFile, Figures, Group, Manifests, Ref, Snapshot
from reconciler.maintain.planning import HeldBack, Now, Step, decide

NOW_MS = 1_800_000_000_000
MIB = 1 << 20
ONE_MANIFEST = Manifests((4096,))


def policy(
    kind: str, *, enable: bool = True, config: Mapping[str, JsonValue] | None = None, **more: JsonValue
) -> Policy:
    """A policy of a predefined type."""
    content: JsonObject = {"version": "2025-02-03", "enable": enable, **more}
    if config is not None:
        content["config"] = {**config}
    shown: JsonObject = {
        "policy-type": f"system.{kind}",
        "name": kind,
        "namespace": ["db"],
        "version": 3,
        "content": dumps(content).decode(),
    }
    return Policy.of(shown)


def policies(*made: Policy) -> Mapping[str, Policy]:
    """Those that apply to a table."""
    return {each.type: each for each in made}


def table(
    *groups: Sequence[int],
    snapshots: int = 1,
    every_ms: int = DAY_MS,
    properties: Mapping[str, str] | None = None,
    manifests: Manifests = ONE_MANIFEST,
    position_deletes: Sequence[int] = (),
    delete_files: int = 0,
) -> Figures:
    """A table with data files of these sizes in each partition, and a snapshot a day, the last one now."""
    made = [
        Snapshot(number, number - 1 or None, NOW_MS - (snapshots - number) * every_ms)
        for number in range(1, snapshots + 1)
    ]
    grouped = [Group(tuple(map(DataFile, sizes))) for sizes in groups]
    if position_deletes:
        grouped.append(Group((), tuple(position_deletes)))
    return Figures(
        metadata_location="file:///t/metadata/1.json",
        location="file:///t",
        format_version=2,
        properties=properties or {},
        snapshot_id=snapshots,
        snapshots=made,
        refs=[Ref("main", snapshots, branch=True)],
        manifests=manifests,
        groups=grouped,
        delete_files=delete_files,
    )


def due(procedure: Procedure, figures: Figures, said: Policy, **now: int | None) -> Step:
    """The step, which must be due."""
    decision = decide(procedure, figures, policies(said), Now(NOW_MS, **now))
    assert isinstance(decision, Step), decision
    return decision


def held_back(procedure: Procedure, figures: Figures, said: Policy, **now: int | None) -> str:
    """Why a step is held back."""
    decision = decide(procedure, figures, policies(said), Now(NOW_MS, **now))
    assert isinstance(decision, HeldBack), decision
    return decision.reason


def nothing(procedure: Procedure, figures: Figures, said: Policy, **now: int | None) -> bool:
    """Whether nothing is due."""
    return decide(procedure, figures, policies(said), Now(NOW_MS, **now)) is None
