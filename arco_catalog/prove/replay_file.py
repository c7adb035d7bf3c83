"""Programs as JSON: the file of a replay."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from arco_catalog.prove.findings import Breaks
from arco_catalog.prove.history import Kind, Operation
from arco_catalog.prove.program import MAX_OPERATIONS, Fault, Program, Step

VERSION = 1
RUN_LIMITS = (1, 4, 16)
"""How many runs of a program a replay may take while it is made smaller."""
MARGIN = 4
"""How many times as many it may take afterwards. A replay that reproduced in twelve of twelve tries may do so in only
four of five; four times the runs make that 998 of 1,000. What does not depend on chance still takes one run."""
MAX_RUNS = MARGIN * max(RUN_LIMITS)


class MalformedReplay(Exception):
    """A file that is no replay, or one of another version, or with too many operations or runs, or none."""


@dataclass(frozen=True, slots=True)
class Replay:
    """A program whose runs break something, `breaks` or worse, and how many runs it may take (`runs`): what depends
    on a race or on chance does not happen in each."""

    program: Program
    breaks: Breaks
    runs: int = 1


def encode(replay: Replay) -> str:
    """Returns the text of the file of a replay, as JSON."""
    program = replay.program
    document = {
        "version": VERSION,
        "breaks": replay.breaks.name,
        "runs": replay.runs,
        "clients": [[_step(step) for step in steps] for steps in program.clients],
        "kills": list(program.kills),
    }
    return json.dumps(document, indent=1) + "\n"


def decode(text: str) -> Replay:
    """Returns the replay in the text of a file. Raises `MalformedReplay` if it is none, has another version, or has too
    many operations or runs, or none."""
    try:
        document = json.loads(text)
        if document["version"] != VERSION:
            raise MalformedReplay(f"The replay has version {document['version']}, and this program reads {VERSION}")
        clients = tuple(tuple(map(_step_of, steps)) for steps in document["clients"])
        program = Program(clients, tuple(map(int, document["kills"])))
        replay = Replay(program, Breaks[document["breaks"]], int(document["runs"]))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError) as error:
        raise MalformedReplay(f"The file is no replay of `arco prove`: {error}") from error
    if not 0 < program.steps <= MAX_OPERATIONS or not 0 < replay.runs <= MAX_RUNS:
        raise MalformedReplay(f"A replay must have 1 to {MAX_OPERATIONS} operations and 1 to {MAX_RUNS} runs")
    return replay


def _step(step: Step) -> Mapping[str, object]:
    """Returns a step as JSON."""
    operation = step.operation
    return {
        "id": operation.id,
        "kind": operation.kind,
        "names": list(operation.names),
        "fault": step.fault,
        "delay-ms": step.delay_ms,
        "server": step.server,
        "cached": step.cached,
    }


def _step_of(document: Mapping[str, object]) -> Step:
    """Reads a step. Raises `KeyError`, `TypeError` or `ValueError` if a field is missing or has a wrong form, but
    accepts any number of names, whatever the kind."""
    names = document["names"]
    if not isinstance(names, list):
        raise TypeError("the field 'names' of a step is no list")
    operation = Operation(str(document["id"]), Kind(str(document["kind"])), tuple(map(str, names)))
    delay, server = int(str(document["delay-ms"])), int(str(document["server"]))
    return Step(operation, Fault(str(document["fault"])), delay, server, bool(document["cached"]))
