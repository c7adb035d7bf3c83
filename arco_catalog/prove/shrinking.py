"""Makes a program that breaks a rule smaller, by running smaller ones."""

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace

from arco_catalog.prove.program import Fault, Program, Step

BreaksRule = Callable[[Program], Awaitable[bool]]
"""Runs a program, and returns whether it breaks the rule again."""


async def shrink(program: Program, breaks_rule: BreaksRule, is_over: Callable[[], bool]) -> Program:
    """Returns the smallest program found that breaks the rule, beginning with `program`, which does: without kills,
    clients, parts of the steps (first large ones and then single ones), faults and delays. Ends when no part can go, or
    the time is over."""
    smaller = True
    while smaller:
        smaller = False
        for candidate in _candidates(program):
            if is_over():
                return program
            if candidate.steps and await breaks_rule(candidate):
                program, smaller = candidate, True
                break
    return program


def _candidates(program: Program) -> Iterator[Program]:
    """Yields programs that have less than this one: first without kills, then without half of the clients, then
    without single ones, without parts of the steps of a client, from large to single ones, and without the fault and
    the delay of one step."""
    if program.kills:
        yield replace(program, kills=())
    for size in dict.fromkeys((max(1, len(program.clients) // 2), 1)):
        for start in range(0, len(program.clients), size):
            yield replace(program, clients=program.clients[:start] + program.clients[start + size :])
    size = max(map(len, program.clients), default=0)
    while size >= 1:
        for number, steps in enumerate(program.clients):
            for start in range(0, len(steps), size):
                rest = steps[:start] + steps[start + size :]
                if len(rest) < len(steps):
                    yield _with_client(program, number, rest)
        size //= 2
    for number, steps in enumerate(program.clients):
        for place, step in enumerate(steps):
            if step.fault is not Fault.NONE or step.delay_ms:
                plain = replace(step, fault=Fault.NONE, delay_ms=0)
                yield _with_client(program, number, (*steps[:place], plain, *steps[place + 1 :]))


def _with_client(program: Program, number: int, steps: tuple[Step, ...]) -> Program:
    """Returns the program with other steps of one client; without the client if there are none."""
    kept = (steps,) if steps else ()
    return replace(program, clients=(*program.clients[:number], *kept, *program.clients[number + 1 :]))
