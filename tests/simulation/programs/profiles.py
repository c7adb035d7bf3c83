"""What programs may be about. Mixed ones reach everything now and then; the others come back to one thing again and
again, where the protocols are at their most delicate."""

from dataclasses import replace

from tests.simulation.programs.grammar import MIXED, Profile

CROWD = Profile(clients=(3, 4), requests=(2, 3, 4), gap=0.4, rates=(0.0, 0.02, 0.05))
"""More clients with more requests than others have, close together: profiles fill in the rest."""

COMMITS = Profile(
    weights={"commit": 8, "schema": 4, "append": 3, "drop": 5, "create": 5, "rename": 4, "load": 3},
    names=(1, 2),
    clients=(3, 4),
    keyless=0.5,
    deployed=0.2,
    warm=0.8,
    memory=0.1,
    gap=0.3,
    rates=(0.02, 0.05, 0.08),
)
"""Commits, with and without keys, beside names that come to mean something else."""

REGISTRY = Profile(
    weights={
        "create": 6,
        "drop": 8,
        "undrop": 6,
        "rename": 4,
        "register": 2,
        "create-view": 2,
        "drop-view": 1,
        "create-generic": 3,
        "drop-generic": 2,
        "load-generic": 1,
        "create-model": 2,
        "drop-model": 1,
        "load-model": 1,
        "stage": 1,
        "commit": 2,
        "create-namespace": 1,
        "drop-namespace": 1,
        "list": 2,
    },
    names=(1, 2),
    gap=0.4,
    rates=(0.0, 0.02, 0.05),
)
"""Names that are given, taken and given back."""

NAMES = replace(
    CROWD,
    weights={
        "create": 3,
        "create-view": 4,
        "create-generic": 4,
        "create-model": 5,
        "replace-model": 6,
        "register": 3,
        "transaction": 3,
        "rename": 4,
        "rename-view": 4,
        "drop": 3,
        "drop-view": 2,
        "drop-generic": 2,
        "drop-model": 3,
        "undrop": 4,
        "load-model": 1,
    },
    names=(1, 2),
)
"""Every way to take a name, met by every other."""

TRANSACTIONS = Profile(
    weights={"transaction": 10, "commit": 3, "create": 3, "rename": 2, "drop": 2, "list": 4, "load": 3, "schema": 2},
    keyless=0.4,
    doomed=0.3,
    gap=0.5,
    rates=(0.0, 0.02, 0.05),
)
"""Transactions that meet each other, and everybody else."""

CLEANING = Profile(
    weights={"commit": 10, "register": 5, "drop": 4, "undrop": 3, "load": 6, "create": 2, "rename": 1},
    cleaning=1.0,
    overlap=0.5,
    names=(1, 2),
    gap=0.3,
    requests=(2, 3, 4),
    rates=(0.0, 0.02),
)
"""Tables that delete their old metadata files."""

SHORT_MEMORY = Profile(
    weights={"commit": 8, "create": 3, "drop": 2, "rename": 3, "transaction": 3, "create-namespace": 1},
    memory=1.0,
    keyless=0.1,
    names=(1, 2),
    twins=0.4,
    gap=0.4,
    clients=(3, 4),
    rates=(0.03, 0.06),
)
"""Pointers and registries that forget after four moves."""

WRONG_CLOCKS = Profile(wrong_clocks=1.0, old_keys=0.15, gap=0.5)
"""Machines minutes apart, and clocks that are set."""

RECONCILING = Profile(
    weights={"reconcile": 6, "errand": 4, "commit": 4, "create": 6, "transaction": 3, "drop": 2, "undrop": 1},
    doomed=0.4,
    gap=0.5,
    rates=(0.03, 0.06),
)
"""Reconcilers and queued work beside requests that die."""

GOVERNING = replace(
    CROWD,
    weights={
        "govern": 10,
        "govern-view": 2,
        "govern-namespace": 3,
        "protect": 4,
        "protect-namespace": 2,
        "drop-namespace": 1,
        "load-governance": 4,
        "load": 3,
        "load-namespace": 1,
        "set-properties": 2,
        "commit": 4,
        "move": 1,
        "rename": 5,
        "drop": 5,
        "undrop": 4,
        "create": 3,
        "register": 2,
        "transaction": 3,
        "drop-view": 1,
        "create-view": 1,
    },
    names=(1, 2),
    requests=(1, 2, 3),
)
"""Governance that several change at once, of names that change hands."""

PURGING = replace(
    CROWD,
    weights={
        "drop": 8,
        "undrop": 5,
        "purge": 8,
        "create": 4,
        "register": 4,
        "append": 4,
        "commit": 3,
        "stage": 2,
        "move": 2,
        "rename": 1,
        "transaction": 1,
        "load": 1,
    },
    purge=0.8,
    purges=1.0,
    names=(1, 2),
    wrong_clocks=0.3,
    gap=0.6,
)
"""Drops with purge, workers, and whoever wants the table, its place or its files back."""

POLICIES = replace(
    CROWD,
    weights={
        "create-policy": 3,
        "update-policy": 5,
        "attach": 12,
        "detach": 5,
        "drop-policy": 4,
        "rename": 5,
        "drop": 4,
        "undrop": 4,
        "create": 3,
        "create-generic": 2,
        "create-view": 1,
        "create-namespace": 1,
        "drop-namespace": 1,
        "transaction": 1,
    },
    policies=True,
    names=(2, 3),
)
"""Policies, and what they are attached to while it changes its name."""

FOLLOWING = replace(
    CROWD,
    weights={
        "follow": 12,
        "drop-followed": 5,
        "drop": 2,
        "undrop": 2,
        "create-generic": 1,
        "drop-generic": 1,
        "govern": 2,
        "load": 3,
        "list": 1,
        "drop-namespace": 1,
    },
    external=True,
    names=(1, 2, 3),
)
"""A catalog that follows another one, by notifications in any order, and its operator."""

COLLECTING = replace(
    CROWD,
    weights={
        "collect": 12,
        "commit": 6,
        "schema": 2,
        "create": 5,
        "drop": 5,
        "undrop": 4,
        "rename": 2,
        "transaction": 6,
        "register": 2,
        "create-view": 1,
        "drop-view": 1,
        "reconcile": 2,
        "load": 2,
    },
    collects=True,
    names=(1, 2),
    requests=(3, 4, 5),
    doomed=0.3,
    gap=40.0,
)
"""Collections beside requests, and servers that were idle while objects that they remember were collected."""

KEYS = Profile(
    weights={
        "set-keys": 3,
        "commit": 8,
        "schema": 6,
        "create": 4,
        "drop": 4,
        "undrop": 1,
        "rename": 3,
        "transaction": 3,
        "create-generic": 1,
    },
    disagreeing=True,
    names=(1, 2),
    clients=(3, 4),
    keyless=0.1,
    twins=0.4,
    old_keys=0.0,
    gap=0.4,
    rates=(0.02, 0.05, 0.08),
)
"""Servers that disagree on how idempotency keys are read, and changes of the catalog's setting beside requests."""

MONTHS = replace(
    CROWD,
    weights={
        "collect": 8,
        "commit": 8,
        "schema": 2,
        "append": 2,
        "create": 5,
        "drop": 5,
        "undrop": 3,
        "rename": 3,
        "transaction": 4,
        "register": 2,
        "reconcile": 1,
        "load": 4,
        "list": 1,
    },
    months=True,
    names=(1, 2),
    requests=(3, 4, 5),
    wrong_clocks=0.0,
    warm=0.8,
)
"""Servers that were idle for days or weeks, with pointers and HEADs in their caches, beside collections."""

OWN_SETTINGS = replace(
    CROWD,
    weights={
        "commit": 5,
        "schema": 2,
        "create": 5,
        "drop": 5,
        "undrop": 3,
        "rename": 3,
        "transaction": 5,
        "register": 1,
        "purge": 2,
        "load": 2,
        "list": 2,
    },
    own_settings=True,
    purge=0.4,
    purges=0.5,
    names=(1, 2),
)
"""Servers with deadlines, windows and limits of their own."""

SHORT_LIVES = replace(
    CROWD,
    weights={
        "purge": 8,
        "collect": 6,
        "drop": 6,
        "undrop": 3,
        "create": 4,
        "append": 3,
        "commit": 3,
        "transaction": 2,
        "register": 2,
        "reconcile": 1,
    },
    collects=True,
    purge=0.7,
    purges=1.0,
    lives=(0, 1, 2, 5),
    names=(1, 2),
    requests=(3, 4, 5),
    gap=20.0,
)
"""Purges beside collections, by workers that live for seconds."""

DIRECTED = replace(
    CROWD,
    weights={
        "commit": 8,
        "schema": 2,
        "create": 5,
        "drop": 4,
        "undrop": 2,
        "rename": 6,
        "transaction": 8,
        "create-namespace": 1,
        "drop-namespace": 1,
        "register": 1,
        "load": 1,
    },
    names=(1, 2),
    keyless=0.2,
    steps=(2, 3),
    rates=(0.0, 0.0, 0.02),
)
"""Two or three faults, each at a step of a protocol, rather than anywhere."""

REMADE = replace(
    CROWD,
    weights={
        "create-namespace": 5,
        "drop-namespace": 7,
        "set-properties": 1,
        "create": 5,
        "create-view": 1,
        "drop": 7,
        "drop-view": 1,
        "undrop": 6,
        "rename": 3,
        "commit": 2,
        "register": 1,
        "transaction": 2,
        "load": 1,
        "list": 1,
    },
    remade=True,
    names=(1, 2),
    rates=(0.0, 0.02, 0.05),
)
"""Namespaces that are dropped and made again, and the tables that were dropped in them."""

RESTORED = replace(
    CROWD,
    weights={
        "commit": 6,
        "schema": 2,
        "append": 3,
        "create": 4,
        "drop": 5,
        "undrop": 4,
        "rename": 3,
        "transaction": 6,
        "register": 1,
        "create-namespace": 1,
        "drop-namespace": 1,
        "govern": 1,
        "purge": 3,
        "collect": 3,
        "reconcile": 1,
        "load": 2,
        "list": 1,
    },
    restores=("in place",),
    collects=True,
    clients=(2, 3),
    names=(1, 2, 3),
    purge=0.4,
    purges=0.5,
    lives=(0, 1, 5),
    doomed=0.3,
    gap=8.0,
)
"""Catalogs that are lost, and restored from a backup that was made beside requests."""

COPIED = replace(RESTORED, restores=("elsewhere",))
"""Catalogs that live on beside a copy of them, which is adopted when they have ended."""

APPENDING = replace(
    CROWD,
    weights={
        "add-rows": 14,
        "compact": 2,
        "expire": 3,
        "branch": 3,
        "commit": 2,
        "schema": 1,
        "drop": 1,
        "undrop": 2,
        "create": 1,
        "rename": 1,
        "transaction": 1,
        "reconcile": 1,
        "load": 1,
    },
    appends=(2, 3),
    names=(1, 2),
    served=0.5,
    wrong_clocks=0.0,
    doomed=0.3,
)
"""Appends that are rebased, beside expiry, branches, and other commits."""

APPENDING_BESIDE_COLLECTIONS = replace(
    APPENDING,
    weights={**APPENDING.weights, "collect": 6, "drop": 2, "purge": 2},
    collects=True,
    purge=0.5,
    purges=0.5,
    requests=(3, 4, 5),
    gap=20.0,
)
"""The same beside collections and purges."""

EXPIRING = replace(
    APPENDING,
    weights={
        "add-rows": 12,
        "compact": 5,
        "branch": 2,
        "request-expiry": 8,
        "purge": 10,
        "register": 2,
        "drop": 3,
        "undrop": 3,
        "rename": 1,
        "transaction": 1,
        "collect": 2,
        "reconcile": 1,
        "load": 1,
    },
    appends=(2, 2, 3),
    months=True,
    lulls=(0, 0, 0, 0, 1, 2, 3),
    expires=True,
    purge=0.3,
    purges=0.5,
    lives=(0, 0, 5),
    requests=(4, 5, 6),
)
"""Workers that expire snapshots and delete their files days later, beside appends, compactions, drops and purges."""

EXPIRING_BESIDE_RESTORES = replace(EXPIRING, restores=("in place", "elsewhere"), clients=(2, 3), requests=(3, 4, 5))
"""The same in catalogs that are lost and restored, or copied."""

PROFILES: dict[str, Profile] = {
    "mixed": MIXED,
    "commits": COMMITS,
    "registry": REGISTRY,
    "names": NAMES,
    "transactions": TRANSACTIONS,
    "cleaning": CLEANING,
    "short memory": SHORT_MEMORY,
    "wrong clocks": WRONG_CLOCKS,
    "reconciling": RECONCILING,
    "governing": GOVERNING,
    "purging": PURGING,
    "policies": POLICIES,
    "following": FOLLOWING,
    "collecting": COLLECTING,
    "keys": KEYS,
    "months": MONTHS,
    "own settings": OWN_SETTINGS,
    "short lives": SHORT_LIVES,
    "remade": REMADE,
    "directed": DIRECTED,
    "restored": RESTORED,
    "copied": COPIED,
    "appending": APPENDING,
    "appending beside collections": APPENDING_BESIDE_COLLECTIONS,
    "expiring": EXPIRING,
    "expiring beside restores": EXPIRING_BESIDE_RESTORES,
}
