"""The policies by which failed tasks are retried (docs/design/tasks.md#rule-6)."""

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from typing import TypeVar

from arco_catalog.config.durations import parse_duration
from storage_backends.lazy_dataclass import dataclass

LEASE = "delegation.task.lease.lost-timeout-duration"
POLICIES = "delegation.retry."
NO_LIMIT = 1 << 31
"""The `max_attempts` of tasks that are retried until they succeed."""
DEFAULT = "default"

Number = TypeVar("Number", int, float)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """The maximum number of attempts at a task of one type that may fail in a row without a new checkpoint, and the
    pauses between them, which grow exponentially up to a maximum."""

    max_attempts: int = 5
    initial_backoff_ms: int = 30_000
    multiplier: float = 2.0
    max_backoff_ms: int = 3_600_000

    def backoff_ms(self, failed: int) -> int:
        """Returns the milliseconds from the last of so many failed attempts at a task to the next attempt, at most
        `max_backoff_ms`; for 0, as after an attempt with a new checkpoint, those after the first."""
        steps = min(max(failed, 1) - 1, 64)  # larger powers could overflow, and the pause has its maximum long before
        return round(min(self.max_backoff_ms, self.initial_backoff_ms * self.multiplier**steps))


def _changed(policy: RetryPolicy, what: str, text: str) -> RetryPolicy:
    """Returns the retry policy with the value in `text` for the property `what`. Raises `ValueError` if there is no
    such property, or the value is invalid."""
    match what:
        case "max-attempts":
            return replace(policy, max_attempts=_at_least(1, int(text)))
        case "initial-backoff-duration":
            return replace(policy, initial_backoff_ms=parse_duration(text))
        case "backoff-multiplier":
            return replace(policy, multiplier=_at_least(1.0, float(text)))
        case "max-backoff-duration":
            return replace(policy, max_backoff_ms=parse_duration(text))
    raise ValueError(
        "no such property of a retry policy: use max-attempts, initial-backoff-duration, backoff-multiplier or "
        "max-backoff-duration"
    )


@dataclass(frozen=True, slots=True)
class TaskPolicies:
    """The operator's settings of tasks: the duration of a lease in milliseconds, and a retry policy for the types in
    `by_type` and one for all others."""

    lease_ms: int = 300_000
    default: RetryPolicy = field(default_factory=RetryPolicy)
    by_type: Mapping[str, RetryPolicy] = field(
        default_factory=lambda: {
            "TABLE_PURGE": RetryPolicy(max_attempts=10, initial_backoff_ms=60_000),
            "EVENT_DELIVERY": RetryPolicy(max_attempts=NO_LIMIT),
        }
    )

    def of(self, kind: str) -> RetryPolicy:
        """Returns the retry policy of a type of task, which is the default one for a type without its own."""
        return self.by_type.get(kind, self.default)

    @classmethod
    def parse(cls, properties: Mapping[str, str]) -> "TaskPolicies":
        """Returns the policies of tasks in these properties: `delegation.task.lease.lost-timeout-duration`, and
        `delegation.retry.{default|TYPE}.{max-attempts|initial-backoff-duration|backoff-multiplier|max-backoff-duration}`.
        A type without properties has the default policy. Two types have policies of their own, which the properties of
        `default` do not change: a purge (`TABLE_PURGE`) has 10 attempts, with a minute after the first, and no number
        of attempts ends a delivery of events (`EVENT_DELIVERY`). Raises `ValueError`, which names the property, for an
        unknown one and for an invalid value."""
        policies = cls()
        ordered = sorted(properties, key=lambda name: not name.startswith(f"{POLICIES}{DEFAULT}."))
        for name in ordered:
            try:
                policies = policies._with(name, properties[name])
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from error
        return policies

    @classmethod
    def of_pairs(cls, pairs: Iterable[str]) -> "TaskPolicies":
        """Returns the policies of tasks in properties written as `NAME=VALUE`. Raises `ValueError` as `parse` does."""
        return cls.parse({name.strip(): text.strip() for name, _, text in (pair.partition("=") for pair in pairs)})

    def _with(self, name: str, text: str) -> "TaskPolicies":
        """Returns the policies of tasks with the value in `text` for the property `name`. Raises `ValueError` if there
        is no such property, or the value is invalid."""
        if name == LEASE:
            return replace(self, lease_ms=_at_least(1_000, parse_duration(text)))
        kind, _, what = name.removeprefix(POLICIES).rpartition(".")
        if not name.startswith(POLICIES) or not kind:
            raise ValueError(
                f"no such property of tasks: use {LEASE}, or {POLICIES}TYPE.NAME, where TYPE is {DEFAULT} or a type of "
                "tasks; a TYPE that no task has is allowed, and has no effect"
            )
        policy = _changed(self.of(kind), what, text)
        if kind == DEFAULT:
            return replace(self, default=policy)
        return replace(self, by_type={**self.by_type, kind: policy})


def _at_least(least: Number, value: Number) -> Number:
    """Returns the value as it is. Raises `ValueError` if it is less than `least`, or not a number (NaN)."""
    if not value >= least:
        raise ValueError(
            f"a property of tasks must be at least {least}, not {value}, in milliseconds if it is a length of time"
        )
    return value
