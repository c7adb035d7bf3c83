"""What the policies that apply to a table ask for, as values (docs/maintenance.md#policies).

A policy with a setting that is not known here asks for nothing: whoever misspells how long snapshots are kept must not
lose them by a default.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import nan
from typing import TypeVar

from arco_catalog.iceberg.json import JsonObject, JsonValue, MalformedJson, loads
from arco_catalog.planning.names import dotted

DATA_COMPACTION = "system.data-compaction"
METADATA_COMPACTION = "system.metadata-compaction"
SNAPSHOT_EXPIRY = "system.snapshot-expiry"
ORPHAN_FILE_REMOVAL = "system.orphan-file-removal"

DAY_MS = 24 * 60 * 60 * 1000
MOST_DAYS = 1_000_000
LEAST_ORPHAN_AGE_DAYS = 1.0
"""Below, Iceberg's procedure refuses: writers may be at work on files that no metadata names yet."""
ORPHAN_AGE_DAYS = 3.0
"""Where the policy says nothing, as Iceberg's procedure has it."""
REWRITE_OPTIONS = frozenset(
    {
        *("max-concurrent-file-group-rewrites", "max-file-group-size-bytes", "rewrite-job-order"),
        *("partial-progress.enabled", "partial-progress.max-commits", "partial-progress.max-failed-commits"),
        *("min-file-size-bytes", "max-file-size-bytes", "min-input-files", "remove-dangling-deletes"),
        *("delete-file-threshold", "delete-ratio-threshold"),
        *("compression-factor", "shuffle-partitions-per-file", "var-length-contribution", "max-output-size"),
    }
)
"""Options of `rewrite_data_files` that a policy may set. `rewrite-all` is not among them, since it is never done, nor
`use-starting-sequence-number`, without which a writer's equality deletes miss what is rewritten meanwhile."""
STRATEGIES: Mapping[str, str] = {
    **dict.fromkeys(("binpack", "bin-pack"), "binpack"),
    "sort": "sort",
    **dict.fromkeys(("zorder", "z-order"), "z-order"),
}

T = TypeVar("T")


class PolicyUnclear(ValueError):
    """The policy can't be carried out as it is: it has a setting that is not known, or one that makes no sense."""


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy that applies to a table: its name with its namespace, its version, and what its content sets."""

    name: str
    type: str
    version: int
    enabled: bool
    content: JsonObject

    @classmethod
    def of(cls, shown: JsonObject) -> "Policy":
        """Reads what `applicable-policies` shows. Raises `PolicyUnclear`."""
        namespace = shown.get("namespace")
        levels = [str(level) for level in namespace] if isinstance(namespace, list) else []
        name = dotted(tuple(levels), str(shown.get("name")))
        version, kind = shown.get("version"), str(shown.get("policy-type"))
        try:
            content = loads(str(shown.get("content", "{}")).encode())
        except MalformedJson as error:
            raise PolicyUnclear(f"the content of {name} is no JSON: {error}") from error
        if not isinstance(content, dict):
            raise PolicyUnclear(f"the content of {name} is no JSON object")
        return cls(name, kind, version if isinstance(version, int) else 0, content.get("enable") is True, content)

    @property
    def settings(self) -> Mapping[str, JsonValue]:
        """Its `config`, each name with hyphens however it is spelt."""
        config = self.content.get("config")
        return {name.replace("_", "-"): value for name, value in config.items()} if isinstance(config, dict) else {}


@dataclass(frozen=True, slots=True)
class DataCompaction:
    """How data files are rewritten: `strategy` is binpack, sort or z-order, `order` the columns of the last two (None:
    the table's own sort order)."""

    target_bytes: int | None = None
    strategy: str = "binpack"
    order: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, policy: Policy) -> "DataCompaction":
        """Raises `PolicyUnclear`."""
        said = _Settings(policy)
        target = said.take(("target-file-size-bytes",), _positive)
        strategy = said.take(("compaction-strategy", "strategy"), _strategy) or "binpack"
        order = said.take(("sort-order",), _text)
        if strategy == "binpack" and order is not None:
            raise PolicyUnclear(f"{policy.name} names a sort order and no strategy that sorts")
        if strategy == "z-order":
            if order is None:
                raise PolicyUnclear(f"{policy.name} asks for a z-order and names no columns (sort_order)")
            order = order if order.lower().startswith("zorder(") else f"zorder({order})"
        options = {name: value for name in sorted(REWRITE_OPTIONS) if (value := said.take((name,), _text)) is not None}
        said.finish()
        return cls(target, strategy, order, options)


@dataclass(frozen=True, slots=True)
class MetadataCompaction:
    """Manifests are rewritten when there are so many, and fewer would do."""

    min_manifests: int = 10

    @classmethod
    def of(cls, policy: Policy) -> "MetadataCompaction":
        """Raises `PolicyUnclear`."""
        said = _Settings(policy)
        least = said.take(("min-manifests",), _positive)
        said.finish()
        return cls() if least is None else cls(least)


@dataclass(frozen=True, slots=True)
class SnapshotExpiry:
    """How long snapshots are kept, and how many at least; None: as the table's properties say."""

    max_age_ms: int | None = None
    min_to_keep: int | None = None

    @classmethod
    def of(cls, policy: Policy) -> "SnapshotExpiry":
        """Raises `PolicyUnclear`."""
        said = _Settings(policy)
        days = said.take(("max-snapshot-age-days",), _days)
        keep = said.take(("min-snapshot-to-keep", "min-snapshots-to-keep"), _positive)
        said.finish()
        return cls(None if days is None else round(days * DAY_MS), keep)


@dataclass(frozen=True, slots=True)
class OrphanFileRemoval:
    """How old a file must be that no metadata names, and where it is looked for: empty for the table's location."""

    max_age_ms: int
    locations: Sequence[str] = ()

    @classmethod
    def of(cls, policy: Policy) -> "OrphanFileRemoval":
        """Raises `PolicyUnclear`."""
        said = _Settings(policy)
        said.finish()
        try:
            days = _days(policy.content.get("max_orphan_file_age_in_days", ORPHAN_AGE_DAYS))
        except ValueError as error:
            raise PolicyUnclear(f"{policy.name}: max_orphan_file_age_in_days: {error}") from error
        if days < LEAST_ORPHAN_AGE_DAYS:
            raise PolicyUnclear(f"{policy.name} removes files younger than a day, at which writers may be at work")
        locations = policy.content.get("locations")
        listed = [str(each) for each in locations] if isinstance(locations, list) else []
        return cls(round(days * DAY_MS), tuple(listed))


class _Settings:
    """The settings of a policy, taken one by one; what is left is not known."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._left = dict(policy.settings)

    def take(self, names: Sequence[str], read: Callable[[JsonValue], T]) -> T | None:
        """The one of these settings that is set. Raises `PolicyUnclear`."""
        found = [name for name in names if name in self._left]
        if len(found) > 1:
            raise PolicyUnclear(f"{self._policy.name} sets {' and '.join(found)}, which mean the same")
        if not found:
            return None
        try:
            return read(self._left.pop(found[0]))
        except ValueError as error:
            raise PolicyUnclear(f"{self._policy.name}: {found[0]}: {error}") from error

    def finish(self) -> None:
        """Raises `PolicyUnclear` where something is left."""
        if self._left:
            unknown = ", ".join(sorted(self._left))
            raise PolicyUnclear(f"{self._policy.name} has settings that are not known: {unknown}")


def _text(value: JsonValue) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _positive(value: JsonValue) -> int:
    number = int(str(value))
    if number < 1:
        raise ValueError(f"must be at least 1, not {number}")
    return number


def _days(value: JsonValue) -> float:
    try:
        number = float(str(value))
    except ValueError:
        number = nan
    if not 0 <= number < MOST_DAYS:
        raise ValueError(f"must be a number of days below {MOST_DAYS:,}, not {value}")
    return number


def _strategy(value: JsonValue) -> str:
    known = STRATEGIES.get(str(value).lower())
    if known is None:
        raise ValueError(f"must be one of {', '.join(STRATEGIES)}, not {value}")
    return known
