"""What clients ask of a catalog, as values: a program is drawn first and played then."""

from dataclasses import dataclass
from typing import Literal

from arco_catalog.state.index import Namespace

Name = tuple[Namespace, str]
"""Of whatever has a name in a namespace."""

Kind = Literal[
    "commit",
    "append",
    "add-rows",
    "compact",
    "expire",
    "branch",
    "schema",
    "no-op",
    "move",
    "create",
    "stage",
    "register",
    "drop",
    "unregister",
    "undrop",
    "rename",
    "create-view",
    "commit-view",
    "drop-view",
    "rename-view",
    "create-generic",
    "drop-generic",
    "create-model",
    "replace-model",
    "drop-model",
    "create-policy",
    "update-policy",
    "attach",
    "detach",
    "drop-policy",
    "follow",
    "drop-followed",
    "transaction",
    "create-namespace",
    "drop-namespace",
    "set-properties",
    "govern",
    "govern-view",
    "govern-namespace",
    "protect",
    "protect-namespace",
    "load",
    "load-view",
    "load-generic",
    "load-model",
    "load-governance",
    "exists",
    "list",
    "load-namespace",
    "reconcile",
    "errand",
    "purge",
    "request-expiry",
    "collect",
    "set-keys",
]

READS: frozenset[Kind] = frozenset(
    {"load", "load-view", "load-generic", "load-model", "load-governance", "exists", "list", "load-namespace"}
)
WORK: frozenset[Kind] = frozenset({"reconcile", "errand", "purge", "request-expiry", "collect", "set-keys"})
"""What runs beside requests, and answers nobody."""
VIEWS: frozenset[Kind] = frozenset(
    {"create-view", "commit-view", "drop-view", "rename-view", "govern-view", "load-view"}
)
GENERIC: frozenset[Kind] = frozenset({"create-generic", "drop-generic", "load-generic"})
MODELS: frozenset[Kind] = frozenset({"create-model", "replace-model", "drop-model", "load-model"})
POLICIES: frozenset[Kind] = frozenset({"create-policy", "update-policy", "attach", "detach", "drop-policy"})
NOTIFICATIONS: frozenset[Kind] = frozenset({"follow", "drop-followed"})


def thing(kind: Kind) -> str:
    """What a request takes a name for."""
    things = {"view": VIEWS, "generic-table": GENERIC, "semantic-model": MODELS, "policy": POLICIES}
    return next((what for what, kinds in things.items() if kind in kinds), "table")


@dataclass(frozen=True, slots=True)
class Request:
    """One request. `names` are what it is about, `creates` what a transaction makes besides, `to` a rename's target, or
    what a policy is attached to: a namespace, where the name in it is empty.

    `needs` is the current schema, or a policy's version, that is required; `choice` tells variants of a kind apart
    (which place a move goes to, what is appended and to which branch, which file is registered, how large a page is, of
    which type a policy is, which time a notification has, after how many seconds a worker is killed, 0 for never);
    `flag` is overwrite, purge, or detach-all.
    """

    kind: Kind
    names: tuple[Name, ...] = ()
    creates: tuple[Name, ...] = ()
    to: Name | None = None
    namespace: Namespace = ()
    needs: int | None = None
    choice: int = 0
    flag: bool = False

    def __str__(self) -> str:
        said = [".".join((*namespace, name)) for namespace, name in self.names]
        said += [f"+{name}" for _, name in self.creates]
        said += [".".join(self.namespace)] if self.namespace else []
        said += [] if self.to is None else [f"to {'.'.join((*self.to[0], self.to[1]))}"]
        said += [] if self.needs is None else [f"if schema {self.needs}"]
        return " ".join(
            [self.kind, *said, *([f"#{self.choice}"] if self.choice else []), *(["!"] if self.flag else [])]
        )


@dataclass(frozen=True, slots=True)
class Sending:
    """How a client sends a request: `after` so many seconds, to a process, and to `others` where it sends again.

    `twin` is a process to which the same is sent at the same time. `timeout` is after how many seconds the client
    hangs up, each time; None waits for ever. `key_age_ms` is how old its idempotency key is when it is sent first, None
    for a request without a key. `tries` is after how many sendings the client gives up; None: late, or never.
    `seconds` is the time that the server has to answer each sending; None: as long as its settings say.
    """

    request: Request
    after: float
    process: str
    others: tuple[str, ...] = ()
    twin: str | None = None
    timeout: float | None = None
    key_age_ms: int | None = 0
    tries: int | None = None
    seconds: float | None = None

    def __str__(self) -> str:
        key = "keyless" if self.key_age_ms is None else f"key {self.key_age_ms / 1000:.0f} s old"
        twin = "" if self.twin is None else f", also at {self.twin}"
        timeout = "" if self.timeout is None else f", hangs up after {self.timeout:.2f} s"
        tries = "" if self.tries is None else f", {self.tries} times at most"
        return f"after {self.after:.2f} s at {self.process}{twin}, {key}{timeout}{tries}: {self.request}"


Clients = tuple[tuple[Sending, ...], ...]
"""What each of several clients sends, one after the other."""


@dataclass(frozen=True, slots=True)
class Step:
    """A fault at one step of a process: at the `number`th of its calls of this kind to a key that contains this."""

    process: str
    kind: Literal["get", "get_range", "put", "delete", "list"]
    key: str
    fault: str
    number: int = 1


@dataclass(frozen=True, slots=True)
class Conditions:
    """What a program runs under: settings of the catalog, what processes remember of its beginning, how much of later
    moves is remembered, clocks, and how often calls go wrong."""

    deployed: bool = False
    warm: bool = False
    shared: bool = True
    served: bool = False
    spilled: bool = False
    proposals: bool = False
    """Whether processes that lose HEAD propose their changes to each other."""
    memory: int | None = None
    overlap: bool = False
    shared_folder: bool = False
    cleaning: bool = False
    window_ms: int | None = None
    """How long a drop with purge can be undone; None: so long that no purge begins."""
    external: bool = False
    """Whether the catalog follows another one."""
    policies: bool = False
    """Whether there is a policy of each name, of one type or the other."""
    appends: Literal[0, 2, 3] = 0
    """The format version of tables that allow rebases of appends; 0 if they do not."""
    ages: bool = False
    """Whether ages are of seconds, so that collections delete objects while a program runs."""
    disagreeing: bool = False
    """Whether the variables of servers disagree on how idempotency keys are read."""
    months: bool = False
    """Whether requests lie days apart, with the ages of a deployment."""
    expires: bool = False
    """Whether workers may have files to delete two days after an expiry."""
    restores: Literal["", "in place", "elsewhere"] = ""
    """Where a backup is restored."""
    survives: bool = False
    """Whether the processes of a catalog that is restored in its place are those of before."""
    own_settings: bool = False
    """Whether servers have settings of their own."""
    skew_ms: int = 2_000
    jumps: bool = False
    rate: float = 0.0
    crashes: bool = True
    doomed: str | None = None
    """A process that dies at one of its first compare-and-swaps."""
    faults: tuple[str, ...] = ()
    """The only faults that there are, by name; all where none is named."""
    steps: tuple[Step, ...] = ()
    """Faults of certain steps, whatever else is drawn."""


@dataclass(frozen=True, slots=True)
class Program:
    """What several clients ask for, each one request after the other, and under which conditions.

    Where a backup is restored, it is made after `clients`. The clients in `beside` run during the backup, and beside a
    copy that is restored from it. Then come those of the `restored` catalog, and those of a copy that was `adopted`.
    """

    conditions: Conditions
    tables: tuple[Name, ...]
    views: tuple[Name, ...]
    clients: Clients
    beside: Clients = ()
    restored: Clients = ()
    adopted: Clients = ()

    def __str__(self) -> str:
        lines = [f"{self.conditions}", f"tables {self.tables}, views {self.views}"]
        for part, clients in (
            ("", self.clients),
            ("beside the backup, ", self.beside),
            ("restored, ", self.restored),
            ("adopted, ", self.adopted),
        ):
            for number, client in enumerate(clients, 1):
                lines += [f"{part}client {number}: {sending}" for sending in client]
        return "\n".join(lines)
