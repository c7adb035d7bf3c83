"""`make trace`: what a load and a commit enter on their way, and no more than so many functions."""

import re
import subprocess
import sys

import pytest

from tools.support.environment import PROJECT
from tools.trace import Trace
from tools.trace import traces as take_traces

MAX_FRAMES = {"load": 160, "commit": 750, "load in a realm": 240, "commit in a realm": 850}
"""A load was 268 and a commit 1,090 once, a commit in a realm 1,041."""


@pytest.fixture
async def traces() -> dict[str, Trace]:
    return await take_traces()


@pytest.mark.parametrize("name", MAX_FRAMES)
async def test_a_request_enters_no_more_functions_than_it_may(traces: dict[str, Trace], name: str) -> None:
    assert 100 < traces[name].frames <= MAX_FRAMES[name]


async def test_a_trace_shows_the_layers_in_their_order_and_every_store_call(traces: dict[str, Trace]) -> None:
    for trace in traces.values():
        lines = [line.strip() for line in trace.root.lines(plain_functions=False)]
        layers = [re.sub(r".*\.(\w+)\.\w+$", r"\1", line) for line in lines[:5]]
        assert layers == ["App", "Delivery", "Errors", "Encoding", "Dispatch"]
        assert [line for line in lines if line.startswith(("GET", "PUT"))] == trace.calls
    assert [len(trace.calls) for trace in traces.values()] == [2, 7, 3, 8]


async def test_steps_of_a_load_are_marked_as_concurrent(traces: dict[str, Trace]) -> None:
    marked = [line.strip() for line in traces["load"].root.lines(plain_functions=False) if "||" in line]
    assert marked == ["|| state.access.State.head", "|| state.access.State.pointer", "|| operations.load._read_guess"]


async def test_all_functions_are_shown_if_asked_for(traces: dict[str, Trace]) -> None:
    load = traces["load"]
    assert len([*load.root.lines(plain_functions=True)]) == load.frames


def test_the_tool_prints_all() -> None:
    command = [sys.executable, "-m", "tools.trace"]
    done = subprocess.run(command, cwd=PROJECT, check=True, capture_output=True, text=True, timeout=120)
    heads = [line for line in done.stdout.splitlines() if line and not line.startswith(" ")]
    assert [head.partition(":")[0] for head in heads] == [*MAX_FRAMES]
