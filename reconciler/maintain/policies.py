"""Parses the maintenance policies that only Spark executes (docs/maintenance.md#policies)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from arco_catalog.iceberg.json import JsonValue
from arco_catalog.planning.upkeep_policy import (
    DAY_MS,
    InvalidPolicy,
    Policy,
    PolicySettings,
    days_of,
    positive_number,
)

DATA_COMPACTION = "system.data-compaction"
METADATA_COMPACTION = "system.metadata-compaction"
ORPHAN_FILE_REMOVAL = "system.orphan-file-removal"

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
        """Reads the settings of a policy of data compaction. Raises `InvalidPolicy` for an unknown setting, an invalid
        target size or strategy, and a sort order that the strategy does not allow or requires; values of options are
        not parsed here."""
        settings = PolicySettings(policy)
        target = settings.take(("target-file-size-bytes",), positive_number)
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
    least twice as many as their bytes need."""

    min_manifests: int = 10

    @classmethod
    def of(cls, policy: Policy) -> "MetadataCompaction":
        """Reads the settings of a policy of metadata compaction. Raises `InvalidPolicy` for an unknown setting and an
        invalid value."""
        settings = PolicySettings(policy)
        least = settings.take(("min-manifests",), positive_number)
        settings.require_empty()
        return cls() if least is None else cls(least)


@dataclass(frozen=True, slots=True)
class OrphanFileRemoval:
    """The settings of a policy of orphan file removal: the age in milliseconds from which on a file that no metadata
    refers to is removed, and the locations to search (empty: the table's location; more than one: nothing is removed).
    `max_age_ms` is also the time between two removals."""

    max_age_ms: int
    locations: Sequence[str] = ()

    @classmethod
    def of(cls, policy: Policy) -> "OrphanFileRemoval":
        """Reads the settings of a policy of orphan file removal, which are fields of the content itself and not of
        `config`; the age is `ORPHAN_AGE_DAYS` if the policy sets none, and `locations` that are no list count as none.
        Raises `InvalidPolicy` for any setting in `config`, and for an age that is invalid or less than
        `MIN_ORPHAN_AGE_DAYS`."""
        PolicySettings(policy).require_empty()
        try:
            days = days_of(policy.content.get("max_orphan_file_age_in_days", ORPHAN_AGE_DAYS))
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


def _text(value: JsonValue) -> str:
    """Returns a value as the text of an option of Iceberg; a boolean in lower case."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _strategy(value: JsonValue) -> str:
    """Returns `binpack`, `sort` or `z-order` for a name of the strategy, in upper or lower case. Raises `ValueError`
    for any other value."""
    known = STRATEGIES.get(str(value).lower())
    if known is None:
        raise ValueError(f"expected one of the strategies {', '.join(STRATEGIES)}, got {value}")
    return known
