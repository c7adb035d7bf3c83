"""Policies of a table's upkeep that apply to it, and their settings (docs/maintenance.md#policies).

A policy with an unknown setting is invalid, and none of it is executed: a misspelt retention would otherwise be
replaced by a default, and snapshots that were to be kept would expire.
"""

from collections.abc import Callable, Mapping, Sequence
from math import nan
from typing import TypeVar

from arco_catalog.iceberg.json import JsonObject, JsonValue, MalformedJson, loads
from arco_catalog.planning.names import dotted
from storage_backends.lazy_dataclass import dataclass

SNAPSHOT_EXPIRY = "system.snapshot-expiry"
DAY_MS = 24 * 60 * 60 * 1000
MAX_DAYS = 1_000_000

T = TypeVar("T")


class InvalidPolicy(ValueError):
    """A maintenance policy cannot be executed: the content cannot be parsed, or has an unknown setting or an invalid
    value."""


@dataclass(frozen=True, slots=True)
class Policy:
    """A maintenance policy that applies to a table: the name with the namespace, the type, the version (0 if the
    answer has none), whether it is enabled, and the parsed content."""

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
                f"the content of policy {name} is not JSON, so the maintenance job omits all tables to which it "
                f"applies, and workers expire no snapshots by it: {error}"
            ) from error
        if not isinstance(content, dict):
            raise InvalidPolicy(
                f"the content of policy {name} is not a JSON object, so the maintenance job omits all tables to "
                "which it applies, and workers expire no snapshots by it"
            )
        return cls(name, kind, version if isinstance(version, int) else 0, content.get("enable") is True, content)

    @property
    def settings(self) -> Mapping[str, JsonValue]:
        """The settings in the policy's content, its field `config`, with each `_` in a name replaced by `-`; empty if
        there is none."""
        config = self.content.get("config")
        return {name.replace("_", "-"): value for name, value in config.items()} if isinstance(config, dict) else {}


class PolicySettings:
    """The settings of a policy that are not parsed yet."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._unparsed = dict(policy.settings)

    def take(self, names: Sequence[str], read: Callable[[JsonValue], T]) -> T | None:
        """Removes the setting that has one of these names, so that `require_empty` does not find it, and returns its
        value parsed by `read`; None if it is not set. Raises `InvalidPolicy` if more than one of the names is set, or
        `read` raises `ValueError`."""
        found = [name for name in names if name in self._unparsed]
        if len(found) > 1:
            raise InvalidPolicy(
                f"the policy {self._policy.name} is not executed, since it sets {' and '.join(found)}, which mean the "
                "same: remove one of them"
            )
        if not found:
            return None
        try:
            return read(self._unparsed.pop(found[0]))
        except ValueError as error:
            raise InvalidPolicy(
                f"the policy {self._policy.name} is not executed, since it has an invalid value of the setting "
                f"{found[0]}: {error}"
            ) from error

    def require_empty(self) -> None:
        """Raises `InvalidPolicy` if a setting was not taken, which is an unknown one."""
        if self._unparsed:
            unknown = ", ".join(sorted(self._unparsed))
            raise InvalidPolicy(
                f"the policy {self._policy.name} is not executed, since it has unknown settings: {unknown}"
            )


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
        settings = PolicySettings(policy)
        days = settings.take(("max-snapshot-age-days",), days_of)
        keep = settings.take(("min-snapshot-to-keep", "min-snapshots-to-keep"), positive_number)
        settings.require_empty()
        return cls(None if days is None else round(days * DAY_MS), keep)


def positive_number(value: JsonValue) -> int:
    """Returns a setting that is a whole number of at least 1, also one that is written as a string of digits. Raises
    `ValueError` for any other value."""
    text = str(value)
    if not text.isdecimal() or int(text) < 1:
        raise ValueError(f"expected a whole number of at least 1, got {text}")
    return int(text)


def days_of(value: JsonValue) -> float:
    """Returns a setting that is a number of days from 0 to below `MAX_DAYS`, perhaps with a fraction, or a string that
    `float` reads as one. Raises `ValueError` for any other value."""
    try:
        number = float(str(value))
    except ValueError:
        number = nan
    if not 0 <= number < MAX_DAYS:
        raise ValueError(f"expected a number of days from 0 to below {MAX_DAYS:,}, got {value}")
    return number
