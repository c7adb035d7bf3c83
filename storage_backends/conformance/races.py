"""Conformance checks of what many concurrent callers see of a store: at most one of them wins a race, and no update is
lost."""

import asyncio
import json

from storage_backends.base import (
    ABSENT,
    Applied,
    Found,
    Matches,
    Outcome,
    PreconditionFailed,
    StoreUnavailable,
    Unknown,
)
from storage_backends.conformance.check import Examination, Fault, Finding, ok, together

CREATORS = 8
ROUNDS = 3
WRITERS = 4
UPDATES = 3
"""By each writer. Google Cloud Storage takes one write a second to an object, and these are to one."""
ATTEMPTS = 200
PAUSE_S = 0.2


async def race_to_create(examination: Examination) -> Finding:
    """Three times, creates one object from eight concurrent callers. Raises `Fault` if more than one is reported as
    applied, if none is and no outcome is unknown, or if the object is then missing, or does not have the body of the
    one that was applied."""
    for number in range(ROUNDS):
        key = examination.key(f"race/{number}")
        outcomes = await asyncio.gather(
            *(examination.store.put(key, f"creator {place}".encode(), ABSENT) for place in range(CREATORS))
        )
        winners = [place for place, outcome in enumerate(outcomes) if isinstance(outcome, Applied)]
        unknown = any(isinstance(outcome, Unknown) for outcome in outcomes)
        if len(winners) > 1 or not (winners or unknown):
            raise Fault(
                f"{len(winners)} of {CREATORS} concurrent creates of one object were reported as applied, expected one"
            )
        found = await examination.store.get(key)
        if not isinstance(found, Found) or (winners and found.body != f"creator {winners[0]}".encode()):
            raise Fault("the object is missing, or does not have the body of the create that was reported as applied")
    return ok("one winner in each")


async def racing_updates(examination: Examination) -> Finding:
    """Lets four writers append three times each to one object by compare-and-swap, and verifies that all applied
    updates are in it, and no refused one; one of unknown outcome may be either. Raises `Fault` if not, if a writer is
    refused or throttled 200 times for one update, and if the object is missing."""
    key = examination.key("counter")
    await examination.write(key, b"[]", ABSENT)
    outcomes: list[tuple[str, type[Outcome]]] = []

    async def update(name: str) -> None:
        for attempt in range(ATTEMPTS):
            tag = f"{name}.{attempt}"
            try:
                current = await examination.store.get(key)
                if not isinstance(current, Found):
                    raise Fault("the object that writers update is missing")
                body = json.dumps([*json.loads(current.body), tag]).encode()
                outcome = await examination.store.put(key, body, Matches(current.version))
            except StoreUnavailable:  # throttled: not applied
                outcome = PreconditionFailed(None, 0)
            outcomes.append((tag, type(outcome)))
            if not isinstance(outcome, PreconditionFailed):
                return
            await asyncio.sleep(PAUSE_S * (attempt + 1) / ATTEMPTS)
        raise Fault(
            f"a writer that repeats an update with the current version was refused, or throttled, all {ATTEMPTS} times"
        )

    async def work(writer: int) -> None:
        for number in range(UPDATES):
            await update(f"{writer}.{number}")

    await together(work(writer) for writer in range(WRITERS))
    last = await examination.store.get(key)
    there = json.loads(last.body) if isinstance(last, Found) else []
    lost = [tag for tag, outcome in outcomes if outcome is Applied and tag not in there]
    if lost:
        raise Fault(f"of {WRITERS * UPDATES} updates, {len(lost)} that were reported as applied are lost")
    if any(outcome is PreconditionFailed and tag in there for tag, outcome in outcomes):
        raise Fault("an update that was reported as refused, or as not applied, is in the object")
    return ok(f"no update of {WRITERS * UPDATES} lost")
