"""Histories by hand, and by an atomic catalog that takes each operation at one instant."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from arco_catalog.prove.history import History, Kind, Observation, Operation, Status, TableState
from arco_catalog.prove.snapshots import snapshot_id


def state(creator: str, *commits: str) -> TableState:
    """The state of a table, whole."""
    return TableState(creator, commits, f"uuid-{creator}", snapshot_id(creator, commits[-1]) if commits else None)


@dataclass
class _Pending:
    operation: Operation
    invoked: int
    client: int
    result: Observation | None = None


class AtomicCatalog:
    """Tables by their names; each operation takes effect at once."""

    def __init__(self) -> None:
        self.tables: dict[str, TableState] = {}

    def apply(self, operation: Operation, bases: Sequence[TableState]) -> Observation:
        """The outcome of an operation, without its times."""
        names = operation.names
        refused = Observation(operation, Status.REFUSED, 0, code=404)
        taken = replace(refused, code=409, error="AlreadyExistsException")
        match operation.kind:
            case Kind.CREATE:
                if names[0] in self.tables:
                    return taken
                self.tables[names[0]] = state(operation.id)
                return self._done(operation, names[0])
            case Kind.DROP:
                return refused if self.tables.pop(names[0], None) is None else self._done(operation)
            case Kind.RENAME:
                if names[0] not in self.tables:
                    return refused
                if names[1] in self.tables:
                    return taken
                self.tables[names[1]] = self.tables.pop(names[0])
                return self._done(operation)
            case Kind.LOAD:
                return self._done(operation, names[0]) if names[0] in self.tables else refused
            case Kind.EXISTS:
                return self._done(operation) if names[0] in self.tables else refused
            case Kind.LIST:
                return replace(self._done(operation), listed=frozenset(self.tables))
            case Kind.COMMIT | Kind.TRANSACTION:
                if any(name not in self.tables for name in names):
                    return refused
                if any(self.tables[name] != base for name, base in zip(names, bases, strict=True)):
                    return replace(refused, code=409, error="CommitFailedException")
                for name, base in zip(names, bases, strict=True):
                    self.tables[name] = state(base.creator, *base.commits, operation.id)
                shown = names if operation.kind is Kind.COMMIT else ()
                return replace(self._done(operation, *shown), bases=tuple(bases))

    def _done(self, operation: Operation, *shown: str) -> Observation:
        tables = tuple(self.tables[name] for name in shown)
        return Observation(operation, Status.DONE, 0, code=200, tables=tables)


NAMES = ("a", "b", "c")
COUNTS = {Kind.LIST: 0, Kind.RENAME: 2, Kind.TRANSACTION: 2}


def atomic_history(rng: random.Random, operations: int, clients: int, unknown_share: float) -> History:
    """The history of clients at an atomic catalog. Some outcomes are unknown, whether applied, not applied, or applied
    later than the client waited."""
    catalog = AtomicCatalog()
    pending: dict[int, _Pending] = {}
    observations: list[Observation] = []
    late: list[Operation] = []
    time = 0
    for number in range(operations):
        client = rng.randrange(clients)
        while client in pending or rng.random() < 0.5:  # others go on meanwhile
            time += 1
            _advance(rng, catalog, pending, observations, late, time, unknown_share)
        kind = rng.choice(list(Kind))
        time += 1
        pending[client] = _Pending(
            Operation(f"{client}.{number}", kind, tuple(rng.sample(NAMES, COUNTS.get(kind, 1)))), time, client
        )
    while pending:
        time += 1
        _advance(rng, catalog, pending, observations, late, time, unknown_share)
    for operation in late:
        catalog.apply(operation, [])
    reads = [Operation(f"final.{name}", Kind.LOAD, (name,)) for name in NAMES] + [Operation("final.list", Kind.LIST)]
    for operation in reads:
        time += 2
        result = catalog.apply(operation, [])
        observations.append(replace(result, invoked=time - 1, completed=time, final=True))
    return History(observations)


def _advance(
    rng: random.Random,
    catalog: AtomicCatalog,
    pending: dict[int, _Pending],
    observations: list[Observation],
    late: list[Operation],
    time: int,
    unknown_share: float,
) -> None:
    """One pending operation takes effect, or is completed."""
    if not pending:
        return
    each = rng.choice([*pending.values()])
    operation = each.operation
    if each.result is None:
        bases = [catalog.tables[name] for name in operation.names if name in catalog.tables]
        commit = operation.kind in (Kind.COMMIT, Kind.TRANSACTION)
        if commit and len(bases) < len(operation.names):
            bases = []
        if rng.random() < unknown_share:
            unknown = Observation(operation, Status.UNKNOWN, each.invoked, bases=tuple(bases) if commit else ())
            when = rng.choice(("now", "never", "later"))
            if when == "now":
                catalog.apply(operation, bases)
            elif when == "later" and not commit:
                late.append(operation)
            each.result = unknown
        else:
            each.result = catalog.apply(operation, bases)
        return
    known = each.result.status is not Status.UNKNOWN
    observations.append(replace(each.result, invoked=each.invoked, completed=time if known else None))
    del pending[each.client]
