"""What a catalog says at one instant, and what each registry operation may make of that: the model that the real one is
held against."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.planning.governance import PROTECTED, is_protected
from arco_catalog.state.fields import integer, mapping, optional_text, text, texts
from arco_catalog.state.index import Namespace
from tests.simulation.programs.requests import Name


class Lie(AssertionError):
    """Something happened, or was said, that must not be."""


@dataclass(frozen=True, slots=True)
class Relation:
    """A table or view, and the locations that it holds."""

    kind: str
    entity: str
    locations: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Stone:
    """Something that was dropped, and by which operation. `home` is the id of the namespace that it was dropped
    from; None where an operation does not say it."""

    entity: str
    kind: str
    operation: str
    purging: bool = False
    locations: tuple[str, ...] = ()
    purged: bool = False
    home: str | None = None


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy of a name of its own."""

    entity: str
    kind: str
    version: int = 0


@dataclass(frozen=True, slots=True)
class CatalogState:
    """All that answers can tell. `files` are the current metadata files of whatever has or had a name, `marks` the
    drops that pointers tell of, `stones` the dropped of each name in the order of their drops; `namespaces` name the
    object that holds the properties; `governance` is that of each entity which has any, namespaces included;
    `attached` are ids of targets and of the policies that are attached to them, `notified` the time of the last
    notification of each name."""

    namespaces: Mapping[Namespace, str] = field(default_factory=dict)
    names: Mapping[Name, Relation] = field(default_factory=dict)
    stones: Mapping[Name, tuple[Stone, ...]] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    governance: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    marks: Mapping[str, str | None] = field(default_factory=dict)
    policies: Mapping[Name, Policy] = field(default_factory=dict)
    attached: frozenset[tuple[str, str]] = frozenset()
    models: Mapping[str, str] = field(default_factory=dict)
    """The versions of semantic models that have a name, by their ids."""
    spaces: Mapping[Namespace, str] = field(default_factory=dict)
    """Ids of namespaces."""
    notified: Mapping[Name, int] = field(default_factory=dict)
    retired: Mapping[Name, int] = field(default_factory=dict)
    """The last version of the policy that was dropped from each name."""

    def relation(self, name: Name, kind: str | None = None) -> Relation | None:
        """What a name means, if it is of this kind."""
        there = self.names.get(name)
        return there if there is not None and kind in (None, there.kind) else None

    def file(self, name: Name) -> str | None:
        """The metadata file behind a name."""
        there = self.names.get(name)
        return None if there is None else self.files.get(there.entity)

    def target(self, to: Name) -> str | None:
        """The id of what a policy is to be attached to; None if there is none."""
        if not to[1]:
            return self.spaces.get(to[0])
        there = self.names.get(to)
        return None if there is None or there.kind == "semantic-model" else there.entity

    def in_use(self, policy: str) -> bool:
        """Whether a policy is attached to something that is not dropped."""
        living = {*self.live(), *self.spaces.values()}
        return any(by == policy and target in living for target, by in self.attached)

    def rival(self, policy: Policy, target: str) -> bool:
        """Whether another policy of the same type, which is inherited, is attached to a target."""
        others = {each.entity for each in self.policies.values() if each.kind == policy.kind} - {policy.entity}
        return policy.kind.startswith("system.") and any((target, other) in self.attached for other in others)

    def protects(self, entity: str | None) -> bool:
        """Whether an entity is protected from drops and renames."""
        return entity is not None and is_protected(self.governance.get(entity, {}))

    def live(self) -> set[str]:
        """The entities that have a name."""
        return {relation.entity for relation in self.names.values()}

    def taken(self, locations: Iterable[str], but: Sequence[str] = ()) -> bool:
        """Whether somebody else, who is live or being purged, holds what equals, contains or lies inside one of
        these."""
        held = [place for each in self.names.values() if each.entity not in but for place in each.locations]
        purging = [stone for stones in self.stones.values() for stone in stones if stone.purging]
        held += [place for stone in purging for place in stone.locations]
        return any(overlap(mine, other) for mine in locations for other in held)


def overlap(one: str, other: str) -> bool:
    """Whether one location equals or contains the other."""
    one, other = one.rstrip("/") + "/", other.rstrip("/") + "/"
    return one.startswith(other) or other.startswith(one)


def done(state: CatalogState, operations: Iterable[JsonObject]) -> CatalogState:
    """The state after these operations, one after the other. Raises `Lie` for one that was not possible."""
    for operation in operations:
        state = _done(state, text(operation, "kind"), operation)
    return state


def _need(true: bool, kind: str, operation: JsonObject, why: str) -> None:
    if not true:
        raise Lie(
            f"{operation.get('principal')} made {kind} {operation.get('name', operation.get('namespace'))}: {why}"
        )


def _done(state: CatalogState, kind: str, operation: JsonObject) -> CatalogState:
    namespace = texts(operation, "namespace") if "namespace" in operation else ()
    name = (namespace, optional_text(operation, "name") or "")
    what, _, thing = kind.partition("-")
    match what, thing:
        case (("create" | "drop" | "update"), "namespace"):
            return _namespace(state, what, namespace, operation)
        case _, "policy":
            return _policy(state, kind, name, operation)
        case "follow", _:
            return _followed(state, name, operation)
        case "drop", "followed":
            there = state.relation(name, "table")
            _need(there is not None and there.entity == operation.get("entity"), kind, operation, "it means another")
            state = _notified(state, name, operation)
            return _buried(state, name, operation)
        case "govern", _:
            return _governed(state, kind, name, thing, operation)
        case (("create" | "register"), _):
            return _made(state, kind, name, thing, operation)
        case "drop", _:
            there = state.relation(name, thing)
            _need(there is not None and there.entity == operation.get("entity"), kind, operation, "it means another")
            return _buried(state, name, operation)
        case "rename", _:
            return _renamed(state, kind, name, thing, operation)
        case "undrop", _:
            return _undropped(state, kind, name, operation)
        case "collect", "tombstones":
            return _forgotten(state, kind, texts(operation, "entities"), operation)
        case _:  # the registry's own: they change no name by themselves
            return state


def _namespace(state: CatalogState, what: str, namespace: Namespace, operation: JsonObject) -> CatalogState:
    there = namespace in state.namespaces
    _need(there != (what == "create"), f"{what}-namespace", operation, "it is there" if there else "it is not there")
    namespaces = {key: value for key, value in state.namespaces.items() if key != namespace}
    spaces = {key: entity for key, entity in state.spaces.items() if key != namespace or what == "update"}
    if what == "drop":
        held = {*(held for held, _ in state.names), *(held for held, _ in state.policies)}
        _need(namespace not in held, "drop-namespace", operation, "it is not empty")
        entity = state.spaces.get(namespace)
        _need(not state.protects(entity), "drop-namespace", operation, "it is protected")
        state = replace(state, attached=frozenset(pair for pair in state.attached if pair[0] != entity))
    else:
        namespaces[namespace] = ""
        spaces[namespace] = text(operation, "entity")
    return replace(state, namespaces=namespaces, spaces=spaces)


def _policy(state: CatalogState, kind: str, name: Name, operation: JsonObject) -> CatalogState:
    """What is done to a policy, or between it and a target."""
    entity, there = text(operation, "entity"), state.policies.get(name)
    policies = {key: policy for key, policy in state.policies.items() if key != name}
    if kind == "create-policy":
        _need(name[0] in state.namespaces, kind, operation, "its namespace is not there")
        _need(there is None, kind, operation, "it is there")
        version = state.retired.get(name, -1) + 1
        return replace(state, policies={**policies, name: Policy(entity, text(operation, "type"), version)})
    _need(there is not None and there.entity == entity, kind, operation, "it means another")
    assert there is not None
    if kind == "update-policy":
        return replace(state, policies={**policies, name: replace(there, version=there.version + 1)})
    if kind == "drop-policy":
        _need(bool(operation.get("detach_all")) or not state.in_use(entity), kind, operation, "it is in use")
        attached = frozenset(pair for pair in state.attached if pair[1] != entity)
        retired = {**state.retired, name: max(there.version, state.retired.get(name, -1))}
        return replace(state, policies=policies, attached=attached, retired=retired)
    to = mapping(operation, "target")
    target = state.target((texts(to, "namespace"), optional_text(to, "name") or ""))
    _need(target is not None and target == to.get("entity"), kind, operation, "its target means another")
    pair = (str(target), entity)
    if kind == "detach-policy":
        _need(pair in state.attached, kind, operation, "it is not attached")
        return replace(state, attached=state.attached - {pair})
    _need(not state.rival(there, pair[0]), kind, operation, "another of its type is attached")
    return replace(state, attached=state.attached | {pair})


def _followed(state: CatalogState, name: Name, operation: JsonObject) -> CatalogState:
    """The name is a table of another catalog now, and its namespace is there."""
    entity, there = text(operation, "entity"), state.relation(name)
    _need(there is None or (there.kind, there.entity) == ("table", entity), "follow", operation, "it means another")
    namespaces = {name[0]: "", **state.namespaces}
    state = replace(state, namespaces=namespaces, names={**state.names, name: Relation("table", entity)})
    return _notified(state, name, operation)


def _notified(state: CatalogState, name: Name, operation: JsonObject) -> CatalogState:
    at, last = integer(operation, "notified"), state.notified.get(name, -1)
    _need(at > last, text(operation, "kind"), operation, f"{at} comes after {last}")
    return replace(state, notified={**state.notified, name: at})


def _governed(state: CatalogState, kind: str, name: Name, thing: str, operation: JsonObject) -> CatalogState:
    """What it names has its principal's mark now, and all else is as it was."""
    entity = text(operation, "entity")
    if thing == "namespace":
        _need(name[0] in state.namespaces, kind, operation, "it is not there")
    else:
        there = state.relation(name, thing)
        _need(there is not None and there.entity == entity, kind, operation, "it means another")
    changed = dict.fromkeys(texts(operation, "governance"), text(operation, "principal"))
    if changed.pop(PROTECTED, None) is not None:
        changed |= {PROTECTED: "true"} if operation["protected"] else {}
        kept = {key: value for key, value in state.governance.get(entity, {}).items() if key != PROTECTED}
        state = replace(state, governance={**state.governance, entity: kept})
    _need(bool(changed), kind, operation, "nothing was changed")
    after = {**state.governance.get(entity, {}), **changed}
    return replace(state, governance={**state.governance, entity: after})


def _made(state: CatalogState, kind: str, name: Name, thing: str, operation: JsonObject) -> CatalogState:
    _need(name[0] in state.namespaces, kind, operation, "its namespace is not there")
    there = state.relation(name)
    replaced = operation.get("replaced")
    _need((None if there is None else there.entity) == replaced, kind, operation, "the name means something else")
    if there is not None:
        _need(there.kind == thing, kind, operation, "the name means something of another kind")
        state = _buried(state, name, operation)
    entity = text(operation, "entity")
    _need(entity not in state.live(), kind, operation, "the entity has a name")
    return replace(state, names={**state.names, name: Relation(thing, entity)})


def _buried(state: CatalogState, name: Name, operation: JsonObject) -> CatalogState:
    there, kind, purging = state.names[name], text(operation, "kind"), bool(operation.get("purge"))
    _need(not state.protects(there.entity), kind, operation, "it is protected")
    names = {key: value for key, value in state.names.items() if key != name}
    stone = Stone(there.entity, there.kind, text(operation, "id"), purging, home=state.spaces.get(name[0]))
    return replace(state, names=names, stones={**state.stones, name: (*state.stones.get(name, ()), stone)})


def _renamed(state: CatalogState, kind: str, name: Name, thing: str, operation: JsonObject) -> CatalogState:
    to = mapping(operation, "to")
    target = (texts(to, "namespace"), text(to, "name"))
    there = state.relation(name, thing)
    _need(there is not None and there.entity == operation.get("entity"), kind, operation, "it means another")
    assert there is not None
    _need(not state.protects(there.entity), kind, operation, "it is protected")
    _need(target[0] in state.namespaces, kind, operation, "the namespace is not there")
    _need(target not in state.names, kind, operation, "the target is taken")
    names = {key: value for key, value in state.names.items() if key != name}
    return replace(state, names={**names, target: there})


def _undropped(state: CatalogState, kind: str, name: Name, operation: JsonObject) -> CatalogState:
    stones = state.stones.get(name, ())
    _need(bool(stones), kind, operation, "nothing was dropped")
    last = stones[-1]
    _need(last.entity == operation.get("entity"), kind, operation, f"{last.entity} was dropped last")
    _need(name not in state.names, kind, operation, "the name is taken")
    _need(name[0] in state.namespaces, kind, operation, "its namespace is not there")
    return replace(
        state,
        names={**state.names, name: Relation(last.kind, last.entity)},
        stones={**state.stones, name: stones[:-1]},
    )


def _forgotten(state: CatalogState, kind: str, entities: Sequence[str], operation: JsonObject) -> CatalogState:
    """Tombstones that a collection takes away: of what is neither restored nor being purged."""
    for stones in state.stones.values():
        _need(not any(s.purging and s.entity in entities for s in stones), kind, operation, "it is being purged")
    left = {
        name: tuple(stone for stone in found if stone.entity not in entities) for name, found in state.stones.items()
    }
    return replace(state, stones={name: found for name, found in left.items() if found})


def in_order(seen: CatalogState, said: CatalogState) -> CatalogState:
    """The state as it was seen, its tombstones in the order of the operations, and with what they leave of
    notifications and dropped policies."""
    stones: dict[Name, tuple[Stone, ...]] = {}
    for name, found in seen.stones.items():
        order = [stone.entity for stone in said.stones.get(name, ())]
        stones[name] = tuple(sorted(found, key=lambda stone: order.index(stone.entity)))
    return replace(seen, stones=stones, notified=said.notified, retired=said.retired)


def differences(said: CatalogState, seen: CatalogState) -> str | None:
    """How what the operations make of a catalog differs from what its index says, None if it does not."""
    meant = {name: (relation.kind, relation.entity) for name, relation in said.names.items()}
    shown = {name: (relation.kind, relation.entity) for name, relation in seen.names.items()}
    if meant != shown:
        return f"names should mean {meant}, and mean {shown}"
    if set(said.namespaces) != set(seen.namespaces):
        return f"namespaces should be {set(said.namespaces)}, and are {set(seen.namespaces)}"
    if said.policies != seen.policies:
        return f"policies should be {said.policies}, and are {seen.policies}"
    if said.attached != seen.attached:
        return f"{sorted(said.attached)} should be attached, and {sorted(seen.attached)} are"
    there = {entity for _, entity in shown.values()} | {*seen.governance}
    there |= {stone.entity for stones in seen.stones.values() for stone in stones}
    for entity in there:
        if (wanted := said.governance.get(entity, {})) != (found_there := seen.governance.get(entity, {})):
            return f"the governance of {entity} should be {wanted}, and is {found_there}"
    buried = {(name, stone.entity): stone.home for name, stones in said.stones.items() for stone in stones}
    found = {(name, stone.entity): stone.home for name, stones in seen.stones.items() for stone in stones}
    if buried.keys() != found.keys() or any(home not in (None, found[stone]) for stone, home in buried.items()):
        return f"tombstones should be {buried}, and are {found}"
    return None
