"""How many seeds find each bug that is planted for drawn programs, so that bugs are seen that only luck finds.

    python -m tests.simulation.planted --seeds 100 --only copy

A bug that few seeds find needs a program of its own (`programs/focused.py`).
"""

import argparse

import pytest

from tests.simulation.programs.campaign import Schedule, quietly
from tests.simulation.rule_mutations import Mutation
from tests.simulation.test_rule_mutations_for_programs import CASES


def finding(bug: Mutation, about: str, seeds: range) -> list[int]:
    """The seeds whose run fails with the bug."""
    found: list[int] = []
    for seed in seeds:
        with pytest.MonkeyPatch.context() as patch:
            bug(patch)
            if Schedule(about, seed).played().wrong:
                found.append(seed)
    return found


def main() -> None:
    """Prints a line for each planted bug."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.planted", description=__doc__)
    parser.add_argument("--seeds", type=int, default=100, help="how many seeds are tried with each bug")
    parser.add_argument("--only", default="", help="a part of the names of the bugs that are tried")
    options = parser.parse_args()
    with quietly():
        for bug, about in CASES:
            if options.only in bug.__name__:
                found = finding(bug, about, range(options.seeds))
                first = f", first {found[0]}" if found else ""
                print(f"{len(found)} of {options.seeds} seeds of {about!r} find {bug.__name__}{first}", flush=True)


if __name__ == "__main__":
    main()
