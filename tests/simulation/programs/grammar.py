"""Draws programs: which requests, by whom, how they are sent, and under which conditions.

A profile says what a program is mostly about. Names are few, so that requests meet.
"""

import random
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from arco_catalog.state.index import Namespace
from tests.simulation.programs.appending import APPENDS
from tests.simulation.programs.requests import WORK, Clients, Conditions, Kind, Name, Program, Request, Sending, Step

DB: Namespace = ("db",)
OTHER: Namespace = ("etc",)
DAY = 86_400
LULLS = (0, 0, 0, 1, 8, 35, 50)
"""Days between requests of one client, in programs of months."""
STEPS = ("core/manifest", "_pointers/", "_idempotency/", "/transactions/", "core/commits/", "/pending/")
"""Objects whose writes are the steps of the protocols."""
AT_STEPS = ("crash-before", "crash-after", "crash-late", "late", "delay", "freeze", "slow", "echo", "lost-answer")
COMMITS: frozenset[Kind] = frozenset(
    {"commit", "append", "add-rows", "compact", "expire", "branch", "schema", "no-op", "move", "transaction"}
)
"""Requests that may delete old metadata files."""
NOTIFIED = 12
"""The times that notifications have."""

ALL: Mapping[Kind, int] = {
    "commit": 10,
    "append": 5,
    "schema": 4,
    "no-op": 2,
    "move": 3,
    "create": 7,
    "stage": 2,
    "register": 4,
    "drop": 7,
    "unregister": 1,
    "undrop": 4,
    "rename": 6,
    "create-view": 2,
    "commit-view": 2,
    "drop-view": 1,
    "rename-view": 1,
    "create-generic": 2,
    "drop-generic": 1,
    "create-model": 1,
    "drop-model": 1,
    "transaction": 8,
    "create-namespace": 1,
    "drop-namespace": 1,
    "set-properties": 1,
    "govern": 4,
    "govern-view": 1,
    "govern-namespace": 1,
    "load": 5,
    "load-view": 1,
    "load-generic": 1,
    "load-model": 1,
    "load-governance": 1,
    "exists": 1,
    "list": 4,
    "load-namespace": 1,
    "reconcile": 2,
    "errand": 1,
}


@dataclass(frozen=True, slots=True)
class Profile:
    """What programs are about: weights of requests, and the chance of each condition. Of several numbers of clients or
    requests each is as likely."""

    weights: Mapping[Kind, int] = field(default_factory=lambda: ALL)
    clients: tuple[int, ...] = (2, 3, 4)
    requests: tuple[int, ...] = (1, 2, 3)
    names: tuple[int, ...] = (2, 3)
    keyless: float = 0.3
    deployed: float = 0.3
    warm: float = 0.5
    shared: float = 0.7
    served: float = 0.3
    spilled: float = 0.25
    proposals: float = 0.25
    """The chance that processes that lose HEAD propose their changes."""
    memory: float = 0.2
    cleaning: float = 0.3
    purge: float = 0.1
    """The chance that a drop asks for a purge."""
    purges: float = 0.0
    """The chance that purges begin while the program runs."""
    collects: bool = False
    """Whether ages are of seconds."""
    months: bool = False
    """Whether requests may lie days or weeks apart."""
    lulls: tuple[int, ...] = LULLS
    """How many days may lie between them."""
    expires: bool = False
    """Whether workers expire snapshots."""
    own_settings: bool = False
    """Whether servers have settings of their own."""
    lives: tuple[int, ...] = (0,)
    """After how many seconds workers and collectors are killed; 0: never."""
    steps: tuple[int, ...] = ()
    """How many faults are at certain steps."""
    remade: bool = False
    """Whether most names are in the namespace that is dropped and made again."""
    external: bool = False
    disagreeing: bool = False
    policies: bool = False
    appends: tuple[Literal[0, 2, 3], ...] = (0,)
    """The format versions of tables that allow rebases of appends; 0 for tables that do not."""
    restores: tuple[Literal["in place", "elsewhere"], ...] = ()
    """Where backups are restored."""
    overlap: float = 0.3
    wrong_clocks: float = 0.25
    hang_ups: float = 0.1
    twins: float = 0.15
    old_keys: float = 0.03
    doomed: float = 0.1
    rates: tuple[float, ...] = (0.0, 0.02, 0.02, 0.05)
    gap: float = 1.5


MIXED = Profile()


def drawn(rng: random.Random, profile: Profile = MIXED) -> Program:
    """One program."""
    program = _Drawing(rng, profile).program()
    return replace(program, conditions=replace(program.conditions, proposals=rng.random() < profile.proposals))


class _Drawing:
    def __init__(self, rng: random.Random, profile: Profile) -> None:
        self.rng = rng
        self.profile = profile
        count = rng.choice(profile.names)
        self.names: list[Name] = [(DB, name) for name in "tuv"[:count]]
        if profile.remade:
            self.names[:-1] = [(OTHER, name) for _, name in self.names[:-1]] or [(OTHER, "t")]
        elif rng.random() < 0.15:
            self.names[-1] = (OTHER, "t")
        self.kinds = list(profile.weights)
        self.weights = list(profile.weights.values())

    def program(self) -> Program:
        rng, profile = self.rng, self.profile
        tables = tuple(name for place, name in enumerate(self.names) if not place or rng.random() < 0.6)
        if profile.external:
            tables = ()
        views = tuple(name for name in self.names if name not in tables and rng.random() < 0.25)
        conditions = self.conditions()
        program = Program(conditions, tables, views, self.clients(conditions))
        if not conditions.restores:
            return program
        # The files of tables are in no backup: none goes that the backup may name.
        deletes: set[Kind] = {"purge", *(COMMITS if conditions.cleaning else ())}
        return replace(
            program,
            beside=self.clients(conditions, without=deletes),
            restored=self.clients(conditions),
            adopted=self.clients(conditions) if conditions.restores == "elsewhere" else (),
        )

    def clients(self, conditions: Conditions, without: Collection[Kind] = ()) -> Clients:
        rng, profile = self.rng, self.profile
        self.weights = [0 if kind in without else weight for kind, weight in profile.weights.items()]
        clients = [
            tuple(self.sending(place, conditions) for place in range(rng.choice(profile.requests)))
            for _ in range(rng.choice(profile.clients))
        ]
        return tuple(clients)

    def conditions(self) -> Conditions:
        rng, profile = self.rng, self.profile
        overlap = rng.random() < profile.overlap
        wrong = rng.random() < profile.wrong_clocks
        purges = bool(profile.purges) and rng.random() < profile.purges  # others draw what they always drew
        restores = rng.choice(profile.restores) if profile.restores else ""
        appends = rng.choice(profile.appends) if len(profile.appends) > 1 else profile.appends[0]
        return Conditions(
            deployed=rng.random() < profile.deployed,
            warm=rng.random() < profile.warm,
            shared=rng.random() < profile.shared,
            served=rng.random() < profile.served,
            spilled=rng.random() < profile.spilled,
            memory=4 if rng.random() < profile.memory else None,
            overlap=overlap,
            shared_folder=overlap and not purges and rng.random() < 0.5,
            cleaning=rng.random() < profile.cleaning,
            ages=profile.collects and (not restores or rng.random() < 0.5),
            months=profile.months,
            expires=profile.expires,
            own_settings=profile.own_settings,
            external=profile.external,
            disagreeing=profile.disagreeing,
            policies=profile.policies,
            appends=appends,
            restores=restores,
            survives=restores == "in place" and rng.random() < 0.3,
            window_ms=rng.choice((0, 2_000)) if purges else None,
            skew_ms=600_000 if wrong else 2_000,
            jumps=wrong and rng.random() < 0.5,
            rate=rng.choice(profile.rates),
            crashes=rng.random() < 0.7,
            doomed="p1" if rng.random() < profile.doomed else None,
            steps=tuple(self.step() for _ in range(rng.choice(profile.steps))) if profile.steps else (),
        )

    def step(self) -> Step:
        rng = self.rng
        key, fault = rng.choice(STEPS), rng.choice(AT_STEPS)
        return Step(f"p{rng.randint(1, 3)}", "put", key, fault, rng.choice((1, 1, 2, 3)))

    def sending(self, place: int, conditions: Conditions) -> Sending:
        rng, profile = self.rng, self.profile
        request = self.request()
        process = f"p{rng.randint(1, 3)}"
        others = tuple(f"p{rng.randint(1, 3)}" for _ in range(2))
        keyed = request.kind not in WORK and rng.random() >= profile.keyless
        age: int | None = None
        if keyed:
            age = rng.randint(0, 5_000)
            if rng.random() < profile.old_keys:
                age = rng.choice((26 * 3_600_000, -6 * 60_000, -4 * 60_000))
        after = rng.random() * profile.gap if place or rng.random() < 0.6 else 0.0
        return Sending(
            request,
            after=after + (DAY * rng.choice(profile.lulls) if profile.months else 0),
            process=process,
            others=others,
            twin=f"p{rng.randint(1, 3)}" if keyed and rng.random() < profile.twins else None,
            timeout=0.005 * 10 ** (3 * rng.random()) if rng.random() < profile.hang_ups else None,
            key_age_ms=age,
        )

    def request(self) -> Request:
        rng = self.rng
        kind = rng.choices(self.kinds, self.weights)[0]
        name = rng.choice(self.names)
        match kind:
            case "commit" | "commit-view":
                return Request(kind, (name,), needs=rng.choice((None, 0)) if kind == "commit" else None)
            case "schema":
                return Request(kind, (name,), choice=rng.randint(0, 1), needs=rng.choice((None, 0, 1)))
            case "add-rows":
                return Request(kind, (name,), choice=rng.choice((0, 0, 0, *range(APPENDS))))
            case "move" | "register":
                return Request(kind, (name,), choice=rng.randint(0, 2), flag=rng.random() < 0.5)
            case "create-generic":
                return Request(kind, (name,), choice=rng.randint(0, 3))
            case "drop":
                return Request(kind, (name,), flag=rng.random() < self.profile.purge)
            case "rename" | "rename-view":
                return Request(kind, (name,), to=rng.choice(self.names))
            case "create-policy" | "drop-policy":
                return Request(kind, (name,), choice=rng.randint(0, 1), flag=rng.random() < 0.3)
            case "update-policy":
                return Request(kind, (name,), needs=rng.choice((0, 0, 1)))
            case "attach" | "detach":
                return Request(kind, (name,), to=rng.choice((*self.names, *self.names, (DB, ""), (OTHER, ""))))
            case "follow" | "drop-followed":
                return Request(kind, (name,), choice=rng.randrange(NOTIFIED))
            case "transaction":
                return self.transaction()
            case "list":
                return Request(kind, namespace=DB, choice=rng.choice((0, 1, 2)))
            case "create-namespace" | "drop-namespace":
                return Request(kind, namespace=OTHER)
            case "govern" | "govern-view" | "protect":
                return Request(kind, (name,), choice=rng.randint(0, 1))
            case "set-properties" | "govern-namespace" | "load-namespace" | "protect-namespace":
                return Request(kind, namespace=rng.choice((DB, OTHER)), choice=rng.randint(0, 1))
            case "reconcile":
                return Request(kind, choice=rng.choice((0, 0, 5, 20)))
            case "errand":
                return Request(kind, choice=rng.randint(0, 5))
            case "set-keys":
                return Request(kind, choice=rng.randint(0, 2))
            case "purge" | "collect":
                lives = self.profile.lives
                return Request(kind, choice=rng.choice(lives) if len(lives) > 1 else lives[0])
            case _:
                return Request(kind, (name,))

    def transaction(self) -> Request:
        """Over names that it changes, and others that it creates."""
        names = self.rng.sample(self.names, len(self.names))
        changed = self.rng.randint(0, min(2, len(names)))
        makes = self.rng.choice((0, 1, 2)) if changed else 2
        return Request(
            "transaction",
            tuple(names[:changed]),
            creates=tuple(names[changed : changed + makes]),
            needs=self.rng.choice((None, 0)),
        )
