"""Holds what clients were told against what was so: each done once, each refused for a reason that was one, each read
shown something that was there."""

import itertools
from collections.abc import Callable, Iterable

from arco_catalog.iceberg.errors import Refusal
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.planning.answers import Document, TableState
from arco_catalog.state.fields import mapping
from arco_catalog.tasks.execution import PRINCIPAL as WORKER
from tests.simulation.programs import rows, unread_keys
from tests.simulation.programs.bodies import MARK
from tests.simulation.programs.history import Asked, Effect, History, Shown
from tests.simulation.programs.reasons import document_of, explained
from tests.simulation.programs.requests import thing
from tests.simulation.programs.states import CatalogState
from tests.simulation.programs.unread_keys import is_unprotected

TICK = 0.002
"""Seconds: machines tell whole milliseconds."""


def judged(history: History) -> list[str]:
    """All that is wrong with a run's answers."""
    wrong = list(history.problems)
    for asked in history.asked:
        wrong += _asked(history, asked)
    for effect in history.effects:
        wrong += _effect(history, effect)
        wrong += _late(history, effect)
    for shown in history.shown:
        if not _true(history, shown):
            wrong.append(f"{shown.process} was shown what never was: {shown.request}: {shown.told!r}")
    wrong += [f"{each.file} was deleted, and {each.needed_by} needs it" for each in history.deletions if each.needed_by]
    return wrong


def _asked(history: History, asked: Asked) -> list[str]:
    effects = history.of(asked.principal)
    units = {effect.unit for effect in effects}
    wrong: list[str] = []
    unprotected = is_unprotected(history, asked)
    if unprotected:
        wrong += unread_keys.problems(history, asked, effects)
    elif asked.contradiction is not None:
        wrong.append(f"{asked} was answered {asked.told!r}, and {asked.contradiction!r}")
    if len(units) > 1 and not unprotected:
        wrong.append(f"{asked} was applied {len(units)} times")
    if asked.in_progress:
        wrong.append(f"{asked} was told that somebody is at it, and nobody was")
    if isinstance(asked.told, Refusal):
        if units and not unprotected:
            wrong.append(f"{asked} was told {asked.told!r}, and is applied")
        elif not explained(history, asked, asked.told):
            wrong.append(f"{asked} was told what was never true: {asked.told!r}")
    elif asked.told is not None:
        if not units:
            wrong += _nothing_done(history, asked)
        elif len(units) == 1:
            wrong += _done(history, asked, effects)
    if asked.undone and units and asked.key_ms is None:
        wrong.append(f"{asked} was told that nothing was done, and is applied")
    return wrong


def _nothing_done(history: History, asked: Asked) -> list[str]:
    """A yes without an effect: there must have been nothing to do."""
    moments = history.window(asked.since, asked.until)
    if any(_nothing_to_do(history, moment.state, asked) for moment in moments):
        return []
    return [f"{asked} was told yes, and is not applied"]


def _nothing_to_do(history: History, state: CatalogState, asked: Asked) -> bool:
    request = asked.request
    match request.kind:
        case "stage":
            return request.names[0] not in state.names and request.names[0][0] in state.namespaces
        case "no-op":
            return _property(document_of(history, state, request.names[0]), "nothing") == "new"
        case "set-properties":
            value = state.namespaces.get(request.namespace)
            if value is None:
                return False
            fixed = history.properties[value].get("fixed")
            return fixed is None if request.choice else fixed == "1"
        case _:
            return False


def _property(document: JsonObject | None, name: str) -> object:
    properties = (document or {}).get("properties")
    return properties.get(name) if isinstance(properties, dict) else None


def _done(history: History, asked: Asked, effects: list[Effect]) -> list[str]:
    """A yes with an effect: of what it says, complete, and with the marks that it promises."""
    wrong: list[str] = []
    told = asked.told
    entities = {effect.entity for effect in effects}
    if isinstance(told, TableState) and told.entity not in entities:
        wrong.append(f"{asked} was answered with {told.entity}, and changed {entities}")
    request = asked.request
    if request.kind == "transaction" and len(entities) != len(request.names) + len(request.creates):
        wrong.append(f"{asked} was done in part: {entities}")
    state = [moment.state for moment in history.window(asked.until, asked.until)][-1]
    if request.kind.startswith(("govern", "protect")):
        wrong += _said_of_governance(history, asked, effects)
    if request.kind == "update-policy":
        body = told.body if isinstance(told, Document) and told.body is not None else {}
        if mapping(body, "policy").get("version") != (request.needs or 0) + 1:
            wrong.append(f"{asked} was to replace version {request.needs}, and was answered with {body}")
    if request.kind == "replace-model":
        wrong += _replaced(history, asked, effects)
    for effect in effects:
        if effect.kind.startswith("drop-") and effect.entity in state.marks:
            wrong += _marked(history, state, asked, effect)
    return wrong


def _replaced(history: History, asked: Asked, effects: list[Effect]) -> list[str]:
    """The version that was named is the one that was replaced, and by the one that was told."""
    told = asked.told.body if isinstance(asked.told, Document) else None
    change = (str(asked.body["expected"]), str((told or {}).get("entity-version")))
    for effect in effects:
        versions = [each.state.models.get(effect.entity) for each in history.window(asked.since, effect.at)]
        if change not in itertools.pairwise(versions):
            return [f"{asked} was told {change[1]}, and {effect.entity} had the versions {versions}"]
    return []


def _said_of_governance(history: History, asked: Asked, effects: list[Effect]) -> list[str]:
    """The answer has what was asked for, and nothing that was not there by then."""
    told = asked.told.body if isinstance(asked.told, Document) else None
    if told is None or any(told.get(name) != value for name, value in asked.body.items()):
        return [f"{asked} was answered with {told}, which lacks what it changed"]
    wrong: list[str] = []
    for effect in effects:
        state = [moment.state for moment in history.window(effect.at, effect.at)][-1]
        strange = told.keys() - state.governance.get(effect.entity, {}).keys()
        if strange:
            wrong.append(f"{asked} was answered with {sorted(strange)}, which nobody had said")
    return wrong


def _marked(history: History, state: CatalogState, asked: Asked, effect: Effect) -> list[str]:
    """A drop is answered when its mark was there, and from then on nothing moves what was dropped. A duplicate of an
    earlier drop of the table may have put its own mark in place of it since."""
    stone = next((stone for stones in state.stones.values() for stone in stones if stone.entity == effect.entity), None)
    if stone is None or stone.operation != effect.unit:
        return []  # undropped since, and perhaps dropped again
    wrong: list[str] = []
    since = history.window(effect.at, asked.until)
    if not any(moment.state.marks.get(effect.entity) == effect.unit for moment in since):
        wrong.append(f"{asked} was answered, and its mark is not on {effect.entity}")
    for moment in history.moments:
        if moment.at > asked.until:
            if effect.entity in moment.state.live():
                break
            if moment.state.files[effect.entity] != state.files[effect.entity]:
                wrong.append(f"{effect.entity} moved after its drop was answered")
                break
    return wrong


def _effect(history: History, effect: Effect) -> list[str]:
    """A commit builds on what was there, while its name meant that."""
    wrong: list[str] = []
    if effect.file is None:
        return wrong
    mine = _marks(history.documents[effect.file])
    before = _marks(history.documents[effect.base]) if effect.base is not None else set()
    own = {effect.principal} if _leaves_mark(history, effect.principal) else set()
    if mine != before | own:
        wrong.append(f"{effect.file} has the changes of {mine}, not of {before | own}")
    asked = next((asked for asked in history.asked if asked.principal == effect.principal), None)
    if effect.base is not None:
        base, new = history.documents[effect.base], history.documents[effect.file]
        request, body = (None, {}) if asked is None else (asked.request, asked.body)
        wrong += [f"{effect.file}: {each}" for each in rows.problems(history.manifests, request, body, base, new)]
    if effect.kind == "commit" and asked is not None and effect.name is not None:
        since = max(asked.since, effect.since)
        states = [moment.state for moment in history.window(since, effect.at)]
        if not any(_means(state, effect) for state in states[:-1] or states):
            wrong.append(f"{asked} committed to what {effect.name[1]} was before, or was later")
    return wrong


def _late(history: History, effect: Effect) -> list[str]:
    """A write that takes effect was sent before a deadline of its request (docs/design/commit.md#rule-5)."""
    request = next((each for each in history.asked if each.principal == effect.principal), None)
    deadline = None if request is None else request.deadlines.get(effect.process)
    if deadline is None or effect.sent <= deadline + TICK:
        return []
    return [f"{request} took effect by a write sent {effect.sent - deadline:.3f} s after its deadline"]


def _means(state: CatalogState, effect: Effect) -> bool:
    there = None if effect.name is None else state.names.get(effect.name)
    return there is not None and there.entity == effect.entity


def _leaves_mark(history: History, principal: str) -> bool:
    """Whether the commits of a client add a property with its name. Those of an expiry by a worker do not."""
    if principal == WORKER:
        return False
    asked = next((asked for asked in history.asked if asked.principal == principal), None)
    return asked is None or asked.request.kind not in ("no-op", "add-rows", "compact")


def _marks(document: JsonObject) -> set[str]:
    properties = document.get("properties")
    assert isinstance(properties, dict)
    return {name.removeprefix(MARK) for name in properties if name.startswith(MARK)}


def _true(history: History, shown: Shown) -> bool:
    """Whether a read was shown what was so at one instant since it was sent; a load, a state that the entity had since
    the name meant it: the pointer is read after the name, and may have been moved under another name since."""
    states = [moment.state for moment in history.window(shown.since, shown.until)]
    match shown.told:
        case (entity, file):
            return _had_since_it_was_named(states, shown, entity, file)
    test = _read(history, shown)
    return any(test(state) for state in states)


def _had_since_it_was_named(states: Iterable[CatalogState], shown: Shown, entity: str, file: str) -> bool:
    kind = thing(shown.request.kind)
    named = False
    for state in states:
        there = state.relation(shown.request.names[0], kind)
        named = named or (there is not None and there.entity == entity)
        if named and state.files.get(entity) == file:
            return True
    return False


def _read(history: History, shown: Shown) -> Callable[[CatalogState], bool]:
    request, told = shown.request, shown.told
    kind = thing(request.kind)
    match told:
        case Refusal():
            return lambda state: _refused_read(state, shown, kind, told)
        case frozenset():
            return lambda state: told == _tables(state.names.items(), request.namespace)
        case None:
            return lambda state: state.relation(request.names[0], kind) is not None
        case governance if request.kind == "load-governance":
            return lambda state: (
                (there := state.relation(request.names[0], kind)) is not None
                and state.governance.get(there.entity, {}) == governance
            )
        case properties:
            return lambda state: (
                (value := state.namespaces.get(request.namespace)) is not None
                and history.properties[value] == properties
            )


def _refused_read(state: CatalogState, shown: Shown, kind: str, refusal: Refusal) -> bool:
    name = type(refusal).__name__
    if shown.request.namespace:
        return name == "NoSuchNamespace" and shown.request.namespace not in state.namespaces
    return (
        name in ("NoSuchTable", "NoSuchView", "NoSuchSemanticModel")
        and state.relation(shown.request.names[0], kind) is None
    )


def _tables(names: Iterable[tuple[tuple[tuple[str, ...], str], object]], namespace: tuple[str, ...]) -> frozenset[str]:
    return frozenset(
        name for (held, name), there in names if held == namespace and getattr(there, "kind", "") == "table"
    )
