"""Programs of updates, found at random, whose cost must not grow faster than they and their table do.

A program is a few kinds of updates done in turn, each on objects of its own choice; it is run over and over, on tables
of two sizes. After the cost of reading the table once, another turn must cost the same on both.
"""

from dataclasses import dataclass

from hypothesis import assume, given, seed
from hypothesis import strategies as st

from arco_catalog.iceberg.errors import Refusal
from arco_catalog.iceberg.table import apply_commit, parse_commit
from tests.fuzz.campaign import bounds
from tests.iceberg.big_table import UPDATES, big_table
from tests.iceberg.counted import counted, steps_of
from tests.iceberg.values import LOCATION, NOW, Object

SMALL, LARGE = 32, 256
WARM_UP, TURNS = 8, 16


@dataclass(frozen=True)
class Step:
    """One kind of updates; the nth turn is about the object number `start + n * stride`."""

    kind: str
    start: int
    stride: int

    def updates(self, size: int, turn: int) -> list[Object]:
        return UPDATES[self.kind](size, (self.start + turn * self.stride) % (SMALL - 2))


steps = st.builds(Step, st.sampled_from([*UPDATES]), st.integers(0, 7), st.sampled_from([0, 1, 1, 1, 3, 7]))
programs = st.lists(steps, min_size=1, max_size=4)


def cost(program: list[Step], size: int, turns: int) -> int | None:
    """Steps of a commit of so many turns on a table of a size; None if it is refused."""
    updates = [update for turn in range(turns) for step in program for update in step.updates(size, turn)]
    base, body = counted(big_table(size)), counted({"requirements": [], "updates": updates})
    refused = False

    def work() -> None:
        nonlocal refused
        try:
            apply_commit(base, parse_commit(body), now_ms=NOW + 1, base_location=f"{LOCATION}/m.json", name="db.t")
        except Refusal:
            refused = True

    taken = steps_of(work)
    return None if refused else taken


def check(program: list[Step]) -> bool:
    """Fails if more turns cost more on the larger table. False: the program is refused, which decides nothing."""
    more: list[int] = []
    for size in (SMALL, LARGE):
        few, many = cost(program, size, WARM_UP), cost(program, size, WARM_UP + TURNS)
        if few is None or many is None:
            return False
        more.append(many - few)
    small, large = more
    message = f"{TURNS} more turns take {small} steps on a small table, {large} on a large one"
    assert large <= 1.5 * max(small, 0) + 400, message
    return True


def run(examples: int, *, number: int | None = None) -> None:
    """Tries so many programs: others for each `number`, the same ones each time without one."""
    test = given(programs)(lambda program: assume(check(program)) and None)
    if number is not None:
        test = seed(number)(test)
    bounds(examples, derandomize=number is None)(test)()
