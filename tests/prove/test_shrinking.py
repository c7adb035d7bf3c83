"""A program that breaks a rule is made smaller for as long as it breaks the rule."""

import random

import pytest

from arco_catalog.prove.program import Features, Program, draw_program
from arco_catalog.prove.shrinking import shrink

MAX_RUNS = 500


@pytest.mark.parametrize("clients", [1, 2, 3])
async def test_one_step_of_one_client_is_left_of_a_program_of_which_that_breaks_the_rule(clients: int) -> None:
    program = draw_program(random.Random(5), Features(), clients)
    wanted = program.clients[0][2].operation
    runs = 0

    async def breaks_rule(candidate: Program) -> bool:
        nonlocal runs
        runs += 1
        return any(step.operation is wanted for steps in candidate.clients for step in steps)

    smallest = await shrink(program, breaks_rule, lambda: runs > MAX_RUNS)

    assert program.steps > 3
    assert [step.operation for steps in smallest.clients for step in steps] == [wanted]
    assert runs < MAX_RUNS
