"""Parses the maintenance policies that apply to a table (docs/maintenance.md#policies).

A policy with an unknown setting is invalid, and none of it is executed: a misspelt retention would otherwise be
replaced by a default, and snapshots that were to be kept would expire.
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
MAX_DAYS = 1_000_000
MIN_ORPHAN_AGE_DAYS = 1.0
"""Iceberg's procedure refuses a lower age: a running writer has files that no metadata refers to yet."""
ORPHAN_AGE_DAYS = 3.0
"""The default of Iceberg's procedure, where the policy sets no age."""
REWRITE_OPTIONS = frozenset(
    {
        *("max-concurrent-file-group-rewrites", "max-file-group-size-bytes", "rewrite-job-order"),
        *("partial-progress.enabled", "partial-progress.max-commits", "partial-progress.max-failed-commits"),
        *("min-file-size-bytes", "max-file-size-bytes", "min-input-files", "remove-dangling-deletes"),
        *("delete-file-threshold", "delete-ratio-threshold"),
        *("compression-factor", "shuffle-partitions-per-file", "var-length-contribution", "max-output-size"),
    }
)
"""Options of `rewrite_data_files` that a policy may set. `rewrite-all` is not allowed, since every run would rewrite
the whole table; nor is `use-starting-sequence-number`, which keeps equality deletes of concurrent writers in effect."""
STRATEGIES: Mapping[str, str] = {
    **dict.fromkeys(("binpack", "bin-pack"), "binpack"),
    "sort": "sort",
    **dict.fromkeys(("zorder", "z-order"), "z-order"),
}

T = TypeVar("T")


class InvalidPolicy(ValueError):
    """A maintenance policy cannot be executed: the content cannot be parsed, or has an unknown setting or an invalid
    value."""


@dataclass(frozen=True, slots=True)
class Policy:
    """A maintenance policy that applies to a table: the name with the namespace, the type, the version and the parsed
    content."""

    name: str
    type: str
    version: int
    enabled: bool
    content: JsonObject

    @classmethod
    def of(cls, item: JsonObject) -> "Policy":
        """Reads a policy as the response of `applicable-policies` has it. A policy without `enable: true` in the
        content is not enabled. Raises `InvalidPolicy` if the content is not a JSON object."""
        namespace = item.get("namespace")
        levels = [str(level) for level in namespace] if isinstance(namespace, list) else []
        name = dotted(tuple(levels), str(item.get("name")))
        version, kind = item.get("version"), str(item.get("policy-type"))
        try:
            content = loads(str(item.get("content", "{}")).encode())
        except MalformedJson as error:
            raise InvalidPolicy(
                f"the content of policy {name} is not JSON, so no table to which it applies is maintained: {error}"
            ) from error
        if not isinstance(content, dict):
            raise InvalidPolicy(
                f"the content of policy {name} is not a JSON object, so no table to which it applies is maintained"
            )
        return cls(name, kind, version if isinstance(version, int) else 0, content.get("enable") is True, content)

    @property
    def settings(self) -> Mapping[str, JsonValue]:
        """The settings in the policy's content, its field `config`, with each `_` in a name replaced by `-`; empty if
        there is none."""
        config = self.content.get("config")
        return {name.replace("_", "-"): value for name, value in config.items()} if isinstance(config, dict) else {}


@dataclass(frozen=True, slots=True)
class DataCompaction:
    """The settings of a policy of data compaction. `strategy` is `binpack`, `sort` or `z-order`; `order` has the
    columns to sort by (None: the table's sort order, or no order for `binpack`); `target_bytes` is None for the table's
    own file size; `options` are options of `rewrite_data_files`, of which `REWRITE_OPTIONS` are allowed."""

    target_bytes: int | None = None
    strategy: str = "binpack"
    order: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, policy: Policy) -> "DataCompaction":
        """Reads the settings of a policy of data compaction. Raises `InvalidPolicy` for an unknown setting and an
        invalid value."""
        settings = _Settings(policy)
        target = settings.take(("target-file-size-bytes",), _positive)
        strategy = settings.take(("compaction-strategy", "strategy"), _strategy) or "binpack"
        order = settings.take(("sort-order",), _text)
        if strategy == "binpack" and order is not None:
            raise InvalidPolicy(
                f"the policy {policy.name} names a sort order and no strategy that sorts: set compaction_strategy to "
                "sort or z-order, or remove sort_order"
            )
        if strategy == "z-order":
            if order is None:
                raise InvalidPolicy(
                    f"the policy {policy.name} has the strategy z-order and names no columns: set sort_order to their "
                    "names, separated by commas"
                )
            order = order if order.lower().startswith("zorder(") else f"zorder({order})"
        options = {
            name: value for name in sorted(REWRITE_OPTIONS) if (value := settings.take((name,), _text)) is not None
        }
        settings.require_empty()
        return cls(target, strategy, order, options)


@dataclass(frozen=True, slots=True)
class MetadataCompaction:
    """The settings of a policy of metadata compaction: manifests are rewritten from `min_manifests` on, if there are at
    least twice as many as their entries need."""

    min_manifests: int = 10

    @classmethod
    def of(cls, policy: Policy) -> "MetadataCompaction":
        """Reads the settings of a policy of metadata compaction. Raises `InvalidPolicy` for an unknown setting and an
        invalid value."""
        settings = _Settings(policy)
        least = settings.take(("min-manifests",), _positive)
        settings.require_empty()
        return cls() if least is None else cls(least)


@dataclass(frozen=True, slots=True)
class SnapshotExpiry:
    """The settings of a policy of snapshot expiry: the age up to which snapshots are kept, in milliseconds, and how
    many of a branch are kept at least. None stands for the value of the table's property."""

    max_age_ms: int | None = None
    min_to_keep: int | None = None

    @classmethod
    def of(cls, policy: Policy) -> "SnapshotExpiry":
        """Reads the settings of a policy of snapshot expiry. Raises `InvalidPolicy` for an unknown setting and an
        invalid value."""
        settings = _Settings(policy)
        days = settings.take(("max-snapshot-age-days",), _days)
        keep = settings.take(("min-snapshot-to-keep", "min-snapshots-to-keep"), _positive)
        settings.require_empty()
        return cls(None if days is None else round(days * DAY_MS), keep)


@dataclass(frozen=True, slots=True)
class OrphanFileRemoval:
    """The settings of a policy of orphan file removal: the age in milliseconds from which on a file that no metadata
    refers to is removed, and the locations to search (empty: the table's location). `max_age_ms` is also the time
    between two removals."""

    max_age_ms: int
    locations: Sequence[str] = ()

    @classmethod
    def of(cls, policy: Policy) -> "OrphanFileRemoval":
        """Reads the settings of a policy of orphan file removal, which are fields of the content itself and not of
        `config`. Raises `InvalidPolicy` for any setting in `config`, and for an age that is invalid or less than
        `MIN_ORPHAN_AGE_DAYS`."""
        _Settings(policy).require_empty()
        try:
            days = _days(policy.content.get("max_orphan_file_age_in_days", ORPHAN_AGE_DAYS))
        except ValueError as error:
            raise InvalidPolicy(
                f"the policy {policy.name} has an invalid max_orphan_file_age_in_days: {error}"
            ) from error
        if days < MIN_ORPHAN_AGE_DAYS:
            raise InvalidPolicy(
                f"the policy {policy.name} removes files younger than a day, which running writers may not have "
                "committed yet: set max_orphan_file_age_in_days to 1 or more"
            )
        locations = policy.content.get("locations")
        listed = [str(each) for each in locations] if isinstance(locations, list) else []
        return cls(round(days * DAY_MS), tuple(listed))


class _Settings:
    """The settings of a policy that are not parsed yet."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._unparsed = dict(policy.settings)

    def take(self, names: Sequence[str], read: Callable[[JsonValue], T]) -> T | None:
        """Takes the setting that has one of these names, and returns its value parsed by `read`; None if it is not set.
        Raises `InvalidPolicy` if more than one of the names is set, or `read` raises `ValueError`."""
        found = [name for name in names if name in self._unparsed]
        if len(found) > 1:
            raise InvalidPolicy(
                f"the policy {self._policy.name} sets {' and '.join(found)}, which mean the same: remove one of them"
            )
        if not found:
            return None
        try:
            return read(self._unparsed.pop(found[0]))
        except ValueError as error:
            raise InvalidPolicy(
                f"the policy {self._policy.name} has an invalid value of the setting {found[0]}: {error}"
            ) from error

    def require_empty(self) -> None:
        """Raises `InvalidPolicy` if a setting was not taken, which is an unknown one."""
        if self._unparsed:
            unknown = ", ".join(sorted(self._unparsed))
            raise InvalidPolicy(
                f"the policy {self._policy.name} is not executed, since it has unknown settings: {unknown}"
            )


def _text(value: JsonValue) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _positive(value: JsonValue) -> int:
    text = str(value)
    if not text.isdecimal() or int(text) < 1:
        raise ValueError(f"expected a whole number of at least 1, got {text}")
    return int(text)


def _days(value: JsonValue) -> float:
    try:
        number = float(str(value))
    except ValueError:
        number = nan
    if not 0 <= number < MAX_DAYS:
        raise ValueError(f"expected a number of days from 0 to below {MAX_DAYS:,}, got {value}")
    return number


def _strategy(value: JsonValue) -> str:
    known = STRATEGIES.get(str(value).lower())
    if known is None:
        raise ValueError(f"expected one of the strategies {', '.join(STRATEGIES)}, got {value}")
    return known
