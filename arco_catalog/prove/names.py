"""Judges the names of a namespace: creations, drops, renames, and what reads showed of them, by a search for an order
in which an atomic catalog would have given the same answers. Names that no rename joins are judged apart."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from arco_catalog.prove.findings import Breaks, Finding
from arco_catalog.prove.history import READS, History, Kind, Observation, Status
from arco_catalog.prove.linearizability import Event, Names, SearchResult, Verdict, search

ALREADY_EXISTS = "AlreadyExistsException"

Effect = Callable[[Names], Names | None]


@dataclass(frozen=True, slots=True)
class NamesVerdict:
    """The violations, and the names for which the search was given up."""

    findings: Sequence[Finding]
    undecided: Sequence[str] = ()


def check_names(history: History) -> NamesVerdict:
    """Judges all names of a history, and returns the violations and the names for which the search was given up. An
    order that is missing even without the reads before the end of the run breaks the specification: a change that was
    completed did not happen, or happened two times. One that is missing only with these reads, or where the search
    without them is given up, is weaker than linearizable."""
    findings: list[Finding] = []
    undecided: list[str] = []
    for names in _joined(history.observations):
        result = _search(names, history.observations)
        if result.verdict is Verdict.UNDECIDED:
            undecided += names
        if result.verdict is not Verdict.NOT_LINEARIZABLE:
            continue
        lasting = [
            observation
            for observation in history.observations
            if observation.final or observation.operation.kind not in READS
        ]
        among = ", ".join(names)
        worse = _search(names, lasting)
        if worse.verdict is Verdict.NOT_LINEARIZABLE:
            text = f"no order of the changes of {among} gives their answers: {worse.blocked} can't be where it was"
            findings.append(Finding("names", Breaks.SPECIFICATION, text, (worse.blocked,)))
        else:
            text = f"no order of the operations on {among} gives their answers: {result.blocked} can't be where it was"
            findings.append(Finding("names at once", Breaks.LINEARIZABILITY, text, (result.blocked,)))
    return NamesVerdict(findings, undecided)


def _joined(observations: Sequence[Observation]) -> list[tuple[str, ...]]:
    """Returns the names of the run in groups, so that each rename is within one."""
    group: dict[str, set[str]] = {}
    for observation in observations:
        for name in observation.operation.names:
            group.setdefault(name, {name})
        if observation.operation.kind is Kind.RENAME:
            joined = group[observation.operation.names[0]] | group[observation.operation.names[1]]
            group.update(dict.fromkeys(joined, joined))
    return sorted({tuple(sorted(names)) for names in group.values()})


def _search(names: Sequence[str], observations: Sequence[Observation]) -> SearchResult:
    """Searches for an order of the operations on these names that explains what was observed."""
    places = {name: place for place, name in enumerate(names)}
    events = [event for observation in observations for event in _events(observation, places)]
    return search(sorted(events, key=lambda event: event.invoked), (None,) * len(names))


def _events(observation: Observation, places: dict[str, int]) -> Iterator[Event]:
    """Yields the events of an observation on these names; none for other names. A listing and a transaction have events
    only if they succeeded. A success based on tables, such as a commit, has one for every table, which the name then
    had; all else has that of `_effects`, such as of a 404. If the outcome is unknown, the event is optional, and has no
    end."""
    operation = observation.operation
    if operation.kind is Kind.LIST:
        effects: list[Effect] = [_listing(observation, places)] if observation.status is Status.DONE else []
    elif observation.bases and observation.status is Status.DONE:
        shown = zip(operation.names, observation.bases, strict=True)
        effects = [_creator(places[name], base.creator) for name, base in shown if name in places]
    elif operation.kind is Kind.TRANSACTION:  # a refusal does not name the missing table
        effects = []
    elif operation.names and operation.names[0] in places:
        effects = [*_effects(observation, [places[name] for name in operation.names])]
    else:
        effects = []
    completed = math.inf if observation.completed is None else observation.completed
    optional = observation.status is Status.UNKNOWN
    for effect in effects:
        yield Event(operation.id, observation.invoked, math.inf if optional else completed, effect, optional)


def _effects(observation: Observation, places: Sequence[int]) -> Iterator[Effect]:
    """Yields the effects on the names with these places, at most one: of a 404 that the name, of a rename the old one,
    is absent; of the error of a creation or rename that a name already exists that this one, of a rename the new one,
    is present. Other errors have none. An unknown outcome of a creation, drop or rename has that of a success, one of a
    read or commit none."""
    kind, place = observation.operation.kind, places[0]
    if observation.code == 404:
        yield _presence(place, present=False)
    elif observation.status is Status.REFUSED:
        if observation.error == ALREADY_EXISTS and kind in (Kind.CREATE, Kind.RENAME):
            yield _presence(places[-1], present=True)
    elif kind is Kind.CREATE:
        yield _creation(place, observation.operation.id)
    elif kind is Kind.DROP:
        yield _drop(place)
    elif kind is Kind.RENAME:
        yield _rename(place, places[1])
    elif kind is Kind.EXISTS and observation.status is Status.DONE:
        yield _presence(place, present=True)
    elif kind is Kind.LOAD and observation.status is Status.DONE:
        yield _creator(place, observation.tables[0].creator)


def _presence(place: int, *, present: bool) -> Effect:
    """Returns the effect of a read that found the name present or absent: possible only if it is, without a change of
    the state."""
    return lambda state: state if (state[place] is not None) == present else None


def _creator(place: int, creator: str) -> Effect:
    """Returns the effect of a read that found which operation created the object: possible only if that one did,
    without a change of the state."""
    return lambda state: state if state[place] == creator else None


def _creation(place: int, creator: str) -> Effect:
    """Returns the effect of a creation: possible only if the name is free."""
    return lambda state: None if state[place] is not None else _with(state, place, creator)


def _drop(place: int) -> Effect:
    """Returns the effect of a drop: possible only if the name is taken."""
    return lambda state: None if state[place] is None else _with(state, place, None)


def _rename(source: int, target: int) -> Effect:
    """Returns the effect of a rename: possible only if the source is taken and the target is free."""

    def apply(state: Names) -> Names | None:
        if state[source] is None or state[target] is not None:
            return None
        return _with(_with(state, target, state[source]), source, None)

    return apply


def _listing(observation: Observation, places: dict[str, int]) -> Effect:
    """Returns the effect of a listing: possible only if, of these names, it has exactly the ones that are taken. The
    state does not change."""

    def apply(state: Names) -> Names | None:
        shown = all((state[place] is not None) == (name in observation.listed) for name, place in places.items())
        return state if shown else None

    return apply


def _with(state: Names, place: int, creator: str | None) -> Names:
    """Returns the names with another creator at one place."""
    return (*state[:place], creator, *state[place + 1 :])
