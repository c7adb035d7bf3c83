"""Which days are listed, and when they are closed (docs/design/pipeline.md#rule-1)."""

from datetime import date

import pytest

from reconciler.compact.days import closed_after, days_to_list, first_open
from reconciler.compact.sources import full_batch

NOON = 1_795_348_800_000  # 2026-11-22T12:00Z
DAY_MS = 86_400_000


def day(number: int) -> date:
    return date(2026, 11, number)


def test_a_day_is_open_until_two_days_past_its_end() -> None:
    midnight = NOON + DAY_MS // 2
    assert first_open(NOON) == first_open(midnight - 1) == day(20)
    assert first_open(midnight) == day(21)


def test_in_the_beginning_every_day_that_there_is_is_listed_the_oldest_first() -> None:
    found = [day(21), date(2025, 1, 1), day(23)]
    assert days_to_list(None, found, [], NOON) == [date(2025, 1, 1), day(21)]  # tomorrow is not over the horizon yet


def test_later_the_days_that_were_left_open_are_listed_and_those_that_are_marked() -> None:
    assert days_to_list(day(20), [], [day(3), day(21), day(25)], NOON) == [day(3), day(20), day(21), day(22)]


def test_what_was_left_for_long_is_listed_from_there_on() -> None:
    assert len(days_to_list(date(2026, 1, 1), [], [], NOON)) == 326


@pytest.mark.parametrize(
    ("lengths", "max_bytes", "count"),
    [
        ([], None, 0),
        ([5, 5, 5], None, 0),
        ([5, 5, 5, 5], None, 3),
        ([5, 5, 5], 10, 2),
        ([5, 5], 10, 0),
        ([11], 10, 0),  # it is a batch, and the last one
        ([11, 1], 10, 1),
        ([4, 4, 4, 4], 100, 3),
    ],
)
def test_a_batch_has_so_many_objects_and_bytes_at_most(lengths: list[int], max_bytes: int | None, count: int) -> None:
    assert full_batch(lengths, 3, max_bytes) == count


def test_the_watermark_stays_before_open_days_and_never_goes_back() -> None:
    assert closed_after(day(10), None, NOON) == day(11)
    assert closed_after(day(22), day(18), NOON) == day(20)
    assert closed_after(day(3), day(18), NOON) == day(18)
