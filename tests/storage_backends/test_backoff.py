"""Pauses: between their bounds whatever the dice say, and by one formula everywhere."""

import ast
from itertools import pairwise

import pytest

from storage_backends.backoff import (
    ATTEMPTS,
    CAP_S,
    full_jitter,
    growing_pause_s,
    limit_attempts,
    pause_s,
    poll_pause_s,
)
from tools.support.environment import PROJECT


@pytest.mark.parametrize(("random", "pause"), [(0.0, 1.0), (0.5, 2.0), (0.75, 2.5)])
def test_a_pause_is_as_far_between_its_bounds_as_the_dice_say(random: float, pause: float) -> None:
    assert pause_s(random, 3.0, 1.0) == pause


def test_the_longest_pause_doubles_up_to_a_limit() -> None:
    longest = [growing_pause_s(1.0, attempt, base_s=0.1, cap_s=1.0) for attempt in range(6)]

    assert longest == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]
    assert growing_pause_s(0.0, 5) == 0.0
    assert growing_pause_s(1.0, 100_000) == CAP_S


def test_a_look_at_what_others_do_is_never_at_once() -> None:
    assert (poll_pause_s(0.0, 0.2), poll_pause_s(0.5, 0.2), poll_pause_s(1.0, 0.2)) == pytest.approx((0.1, 0.2, 0.3))


def test_a_call_is_tried_a_bounded_number_of_times_the_first_at_once() -> None:
    pauses = [*full_jitter(lambda: 1.0)]

    assert len(pauses) == ATTEMPTS
    assert pauses[0] == 0.0
    assert all(earlier <= later <= CAP_S for earlier, later in pairwise(pauses))


def test_no_other_module_makes_a_pause_of_chance() -> None:
    rooms = ("arco_catalog", "storage_backends", "lambda", "reconciler")
    files = [file for room in rooms for file in sorted((PROJECT / room).rglob("*.py"))]

    assert [file for file in files if any(map(reckons_with_chance, ast.walk(ast.parse(file.read_text()))))] == []


def reckons_with_chance(node: ast.AST) -> bool:
    """Whether this is a sum or a product of a number drawn by `random()`."""
    return isinstance(node, ast.BinOp) and any(
        isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr == "random"
        for part in (node.left, node.right)
    )


def test_a_caller_may_bound_the_number_of_tries_further() -> None:
    with limit_attempts(2):
        assert len([*full_jitter(lambda: 1.0)]) == 2
    assert len([*full_jitter(lambda: 1.0)]) == ATTEMPTS
