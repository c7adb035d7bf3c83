"""Retry policies, by the names of their properties (docs/design/tasks.md#rule-6)."""

import pytest

from arco_catalog.config.durations import parse_duration
from arco_catalog.state.task import EVENT_DELIVERY, TABLE_MAINTENANCE, TABLE_PURGE
from arco_catalog.tasks.retry import NO_LIMIT, TaskPolicies


def test_the_pause_grows_up_to_its_limit() -> None:
    policy = TaskPolicies().of(TABLE_MAINTENANCE)
    assert [policy.backoff_ms(failed) // 1_000 for failed in (1, 2, 3, 8, 9, 10_000)] == [30, 60, 120, 3600, 3600, 3600]


def test_a_purge_is_tried_more_often() -> None:
    policy = TaskPolicies().of(TABLE_PURGE)
    assert (policy.max_attempts, policy.backoff_ms(1)) == (10, 60_000)


def test_no_number_of_attempts_ends_a_delivery_of_events_unless_an_operator_wants_it() -> None:
    of_default = TaskPolicies.parse({"delegation.retry.default.max-attempts": "3"})
    assert of_default.of(EVENT_DELIVERY).max_attempts == NO_LIMIT
    of_type = TaskPolicies.parse({"delegation.retry.EVENT_DELIVERY.max-attempts": "3"})
    assert of_type.of(EVENT_DELIVERY).max_attempts == 3


def test_a_type_overrides_the_default_in_whatever_order_they_are_named() -> None:
    policies = TaskPolicies.parse(
        {
            f"delegation.retry.{TABLE_MAINTENANCE}.max-attempts": "3",
            "delegation.retry.default.max-attempts": "7",
            "delegation.retry.default.initial-backoff-duration": "PT2S",
            "delegation.retry.default.backoff-multiplier": "3.0",
            "delegation.retry.default.max-backoff-duration": "10s",
            "delegation.task.lease.lost-timeout-duration": "1h",
        }
    )
    maintenance, other = policies.of(TABLE_MAINTENANCE), policies.of("without a policy")
    assert (maintenance.max_attempts, other.max_attempts, policies.lease_ms) == (3, 7, 3_600_000)
    assert [maintenance.backoff_ms(failed) for failed in (1, 2, 3)] == [2_000, 6_000, 10_000]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("delegation.retry.default.max-attempts", "0"),
        ("delegation.retry.default.max-attempts", "many"),
        ("delegation.retry.default.backoff-multiplier", "0.5"),
        ("delegation.retry.default.max-backoff-duration", "soon"),
        ("delegation.retry.default.color", "red"),
        ("delegation.retry.max-attempts", "1"),
        ("delegation.task.lease.lost-timeout-duration", "1ms"),
        ("retry.default.max-attempts", "1"),
    ],
)
def test_what_is_no_property_or_value_is_refused_by_name(name: str, text: str) -> None:
    with pytest.raises(ValueError, match=f"^{name}: "):
        TaskPolicies.parse({name: text})


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("PT24H", 86_400_000),
        ("P30D", 2_592_000_000),
        ("P1DT1H1M1.5S", 90_061_500),
        ("PT0S", 0),
        ("30s", 30_000),
        ("1h", 3_600_000),
        ("5m", 300_000),
        ("250ms", 250),
        ("0d", 0),
    ],
)
def test_lengths_of_time_are_read(text: str, ms: int) -> None:
    assert parse_duration(text) == ms


@pytest.mark.parametrize("text", ["", "P", "PT", "24", "1 h", "P1DT", "-PT1S", "PT1H1", "1w"])
def test_what_is_no_length_of_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="a length of time"):
        parse_duration(text)
