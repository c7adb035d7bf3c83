"""Draws what the clients of a run do, what the network does to their requests, and when servers are killed."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from arco_catalog.prove.history import Kind, Operation

MAX_OPERATIONS = 200
"""Maximum number of operations in a program: what the search for an order of names can decide."""
TABLES = 5
"""The number of names of tables in a program; so few that clients often meet."""
MIN_STEPS = 4
"""Minimum number of steps of each client of a program; the first one creates the tables besides."""
MAX_CLIENTS = (MAX_OPERATIONS - TABLES) // MIN_STEPS
MAX_DELAY_MS = 60
FAULTY_SHARE = 0.15


class Fault(StrEnum):
    """What the network does to a request."""

    NONE = "none"
    TRUNCATED = "truncated"
    """The connection closes after half of the body; a request without a body is not sent."""
    LOST_ANSWER = "lost answer"
    """The server answers, and the client receives nothing."""
    ABANDONED = "abandoned"
    """The connection closes while the server works."""
    DELAYED = "delayed"
    """The request is sent later, and the client waits for it."""
    LATE = "late"
    """The client receives nothing, and goes on; the request is sent later."""
    DUPLICATED = "duplicated"
    """The request is sent twice, if it has an idempotency key; the client gets the first answer."""


@dataclass(frozen=True, slots=True)
class Step:
    """An operation of a client. `server` chooses the server by its number, modulo how many there are. `cached`: what
    the client saw last of the table is what a commit is based on, and the condition of a load (`If-None-Match`)."""

    operation: Operation
    fault: Fault = Fault.NONE
    delay_ms: int = 0
    server: int = 0
    cached: bool = False


@dataclass(frozen=True, slots=True)
class Program:
    """What each client does, one step after the other, and after how many steps of all of them the servers are
    killed."""

    clients: tuple[tuple[Step, ...], ...]
    kills: tuple[int, ...] = ()

    @property
    def steps(self) -> int:
        """The number of steps of all clients."""
        return sum(map(len, self.clients))


@dataclass(frozen=True, slots=True)
class Features:
    """What a catalog offers of what can be drawn, and whether servers can be killed."""

    renames: bool = True
    transactions: bool = True
    heads: bool = True
    keys: bool = True
    kills: bool = False


WEIGHTS = {
    Kind.CREATE: 10,
    Kind.COMMIT: 40,
    Kind.TRANSACTION: 12,
    Kind.DROP: 4,
    Kind.RENAME: 6,
    Kind.LOAD: 20,
    Kind.EXISTS: 4,
    Kind.LIST: 6,
}


def draw_program(rng: random.Random, features: Features, clients: int) -> Program:
    """Draws a program of at most `MAX_OPERATIONS` operations. The first client creates the tables; all clients have
    equally many steps besides, `MIN_STEPS` at least. With servers that can be killed, up to two kills are drawn.
    There may be `MAX_CLIENTS` at most."""
    choices = [kind for kind in WEIGHTS if _offered(kind, features)]
    tables = [f"t{number}" for number in range(rng.randint(1, TABLES))]
    length = rng.randint(MIN_STEPS, (MAX_OPERATIONS - len(tables)) // clients)
    drawn = [
        tuple(_draw_step(rng, choices, features, tables, f"{client}.{number}") for number in range(length))
        for client in range(clients)
    ]
    created = (Step(Operation(f"created.{table}", Kind.CREATE, (table,))) for table in tables)
    kills = tuple(sorted(rng.sample(range(length * clients), rng.randint(0, 2)))) if features.kills else ()
    return Program(((*created, *drawn[0]), *drawn[1:]), kills)


def _offered(kind: Kind, features: Features) -> bool:
    """Whether the catalog supports a kind of operation; true for all but renames, transactions and HEAD requests."""
    offered = {Kind.RENAME: features.renames, Kind.TRANSACTION: features.transactions, Kind.EXISTS: features.heads}
    return offered.get(kind, True)


def _draw_step(
    rng: random.Random, choices: Sequence[Kind], features: Features, tables: Sequence[str], name: str
) -> Step:
    """Draws the next step of a client: its operation, mostly without a fault of its request, the delay, the server, and
    whether it goes by the table as the client saw it last. With a single table, a commit replaces a rename or
    transaction. Requests are duplicated only if the catalog takes idempotency keys."""
    kind = rng.choices(choices, [WEIGHTS[choice] for choice in choices])[0]
    if kind in (Kind.RENAME, Kind.TRANSACTION) and len(tables) < 2:
        kind = Kind.COMMIT
    count = 0 if kind is Kind.LIST else 2 if kind in (Kind.RENAME, Kind.TRANSACTION) else 1
    faults = [fault for fault in Fault if fault is not Fault.DUPLICATED or features.keys]
    fault = rng.choice(faults) if rng.random() < FAULTY_SHARE else Fault.NONE
    delay = rng.randrange(MAX_DELAY_MS) if fault is not Fault.NONE else rng.choice((0, 0, 0, 5, 20))
    operation = Operation(name, kind, tuple(rng.sample(tables, count)))
    return Step(operation, fault, delay, rng.randrange(8), rng.random() < 0.3)
