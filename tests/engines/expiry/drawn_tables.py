"""Tables drawn from a seed, as the steps by which tools/javaclient/Expiry.java makes them, and their snapshots set back
to drawn times: what expires of them depends on ages, branches, tags, retention of each, and shared files."""

from collections.abc import Callable
from random import Random
from typing import Any

from arco_catalog.iceberg.json import JsonObject, JsonValue

NOW_MS = 1_795_000_000_000
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
AGES_MS = (0, HOUR_MS, DAY_MS, 2 * DAY_MS, 3 * DAY_MS, 5 * DAY_MS, 6 * DAY_MS, 10 * DAY_MS)
"""What settings and snapshots are drawn from, so that many are equal."""


SHARED_PUFFIN: JsonObject = {
    "op": "make",
    "properties": {"format-version": "3", "history.expire.max-snapshot-age-ms": "1"},
    "steps": [
        {"do": "append", "merge": False, "files": 2},
        {"do": "vectors", "file": 0, "count": 2},
        {"do": "vectors", "file": 0, "count": 1},
    ],
}
"""Of two vectors in one Puffin file, one is replaced. The manifest that names both is then only of an expired
snapshot."""

AGES_OF_REFS: JsonObject = {
    "op": "make",
    "properties": {"format-version": "2", "history.expire.max-ref-age-ms": "1"},
    "steps": [
        {"do": "append", "merge": False, "files": 1},
        {"do": "tag", "name": "kept", "snapshot": 0},
        {"do": "tag", "name": "old", "snapshot": 0},
        {"do": "ref-age", "name": "kept", "ms": 20 * DAY_MS},
    ],
}
"""Two tags, of which one has an age of its own."""
FOCUSED = (SHARED_PUFFIN, AGES_OF_REFS)
"""Tables for what is drawn rarely."""


def drawn_steps(random: Random) -> JsonObject:
    """A request to make a table."""
    return _Drawing(random).request()


def set_back(random: Random, metadata: dict[str, Any]) -> dict[str, Any]:
    """The metadata with other times, by which its snapshots are up to ten days old, the later ones younger."""
    snapshots = metadata.get("snapshots", [])
    ages = sorted((random.choice(AGES_MS[1:]) + random.choice((-1, 0, 0, 1)) for _ in snapshots), reverse=True)
    times = {
        each["snapshot-id"]: NOW_MS - age
        for each, age in zip(sorted(snapshots, key=lambda each: each["timestamp-ms"]), ages, strict=True)
    }
    log, last = [], 0
    for entry in metadata.get("snapshot-log", []):
        last = max(last, times.get(entry["snapshot-id"], last))
        log.append({**entry, "timestamp-ms": last})
    return {
        **metadata,
        "snapshots": [{**each, "timestamp-ms": times[each["snapshot-id"]]} for each in snapshots],
        "snapshot-log": log,
        "metadata-log": [],
        "last-updated-ms": NOW_MS - 1,
    }


class _Drawing:
    def __init__(self, random: Random) -> None:
        self.random = random
        self.format = random.choice((1, 2, 3, 3, 3))
        self.branches: list[str] = []
        self.tags: list[str] = []

    def request(self) -> JsonObject:
        properties: JsonObject = {
            "format-version": str(self.format),
            "commit.manifest.min-count-to-merge": str(self.random.choice((2, 3, 100))),
        }
        if self.random.random() < 0.7:
            properties["history.expire.max-snapshot-age-ms"] = str(self.random.choice(AGES_MS[1:]))
        if self.random.random() < 0.5:
            properties["history.expire.min-snapshots-to-keep"] = str(self.random.randint(1, 4))
        if self.random.random() < 0.4:
            properties["history.expire.max-ref-age-ms"] = str(self.random.choice(AGES_MS[1:]))
        steps: list[JsonValue] = [self.append()]
        for _ in range(self.random.randint(2, 22)):
            steps.append(self.step())
        return {"op": "make", "properties": properties, "steps": steps}

    def step(self) -> JsonObject:
        draws: dict[Callable[[], JsonObject], int] = {
            self.append: 8,
            lambda: self.on_file("delete"): 3,
            lambda: self.on_file("overwrite"): 3,
            lambda: self.on_file("rewrite"): 2,
            lambda: self.on_file("positions"): 3 if self.format == 2 else 0,
            self.vectors: 9 if self.format == 3 else 0,
            lambda: {"do": "manifests"}: 2,
            lambda: self.statistics("statistics"): 2,
            lambda: self.statistics("partition-statistics"): 1,
            self.new_ref: 4,
            self.retention: 5 if self.branches or self.tags else 0,
            self.move: 2,
            self.upgrade: 1,
        }
        return self.random.choices([*draws], [*draws.values()])[0]()

    def append(self) -> JsonObject:
        step: JsonObject = {"do": "append", "merge": self.random.random() < 0.5, "files": self.random.randint(0, 3)}
        if self.random.random() < 0.1:
            return {**step, "staged": True}
        return {**step, "branch": self.branch()}

    def branch(self) -> str | None:
        return self.random.choice(self.branches) if self.branches and self.random.random() < 0.35 else None

    def on_file(self, what: str) -> JsonObject:
        return {"do": what, "file": self.random.randrange(100), "branch": self.branch()}

    def vectors(self) -> JsonObject:
        """Of the first files, so that a later vector often replaces one of a file with several."""
        step = self.on_file("vectors")
        return {**step, "file": self.random.randrange(3), "count": self.random.randint(1, 3)}

    def statistics(self, what: str) -> JsonObject:
        return {"do": what, "snapshot": self.random.randrange(100), "shared": self.random.random() < 0.4}

    def new_ref(self) -> JsonObject:
        kind = self.random.choice(("branch", "tag"))
        names = self.branches if kind == "branch" else self.tags
        names.append(f"{kind}{len(names)}")
        return {"do": kind, "name": names[-1], "snapshot": self.random.randrange(100)}

    def retention(self) -> JsonObject:
        name = self.random.choice([*self.branches, *self.tags, "main"])
        what = self.random.choice(("ref-age", "snapshot-age", "to-keep"))
        if what == "to-keep":
            return {"do": what, "name": name, "count": self.random.randint(1, 4)}
        return {"do": what, "name": name, "ms": self.random.choice(AGES_MS[1:])}

    def move(self) -> JsonObject:
        place = self.random.randrange(100)
        moves: list[JsonObject] = [
            {"do": "rollback"},
            {"do": "set-current", "snapshot": place},
            {"do": "cherry-pick", "snapshot": place},
        ]
        if self.branches:
            name = self.random.choice(self.branches)
            moves += [{"do": "replace-branch", "name": name, "snapshot": place}, {"do": "remove-branch", "name": name}]
        if self.tags:
            moves.append({"do": "remove-tag", "name": self.random.choice(self.tags)})
        return self.random.choice(moves)

    def upgrade(self) -> JsonObject:
        self.format = min(3, self.format + 1)
        return {"do": "property", "key": "format-version", "value": str(self.format)}
