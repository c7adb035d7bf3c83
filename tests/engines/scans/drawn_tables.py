"""Tables drawn from a seed, as the steps by which tools/javaclient/Tables.java makes them: changes of schema and spec
among appends, deletes and upserts, branches and tags, expired snapshots, rewritten manifests, statistics that are cut
or missing."""

from collections.abc import Callable
from random import Random

from arco_catalog.iceberg.json import JsonObject, JsonValue
from tests.engines.scans.drawn_values import OLD_TYPES, PROMOTIONS, TRANSFORMS, VALUES, value

NAMES = ("a", "B", "c", "d", "e", "f", "g", "h")
STATISTICS = ("nulls", "nans", "lower", "upper")
"""What may be missing. The count of values is not: where it is, the catalog trusts no count of nulls in a struct."""


def drawn_table(random: Random) -> JsonObject:
    """A table, as Java is to make it."""
    return _Drawing(random).table()


class _Drawing:
    def __init__(self, random: Random) -> None:
        self.random = random
        self.format = random.choice((1, 2, 2, 2, 3, 3))
        self.types = [*VALUES] if self.format == 3 else [*OLD_TYPES]
        self.columns: dict[str, str] = {}
        self.required: set[str] = set()
        self.fields: list[str] = []
        self.branches: list[str] = []
        self.numbers = iter(range(1000))

    def table(self) -> JsonObject:
        schema = self.schema()
        spec = self.spec(schema)
        properties: JsonObject = {"format-version": str(self.format), "commit.manifest.min-count-to-merge": "3"}
        steps: list[JsonValue] = [self.append()]
        for _ in range(self.random.randint(1, 9)):
            steps += self.steps()
        return {"op": "make", "schema": schema, "spec": spec, "properties": properties, "steps": steps}

    def schema(self) -> JsonObject:
        """Ids in the order in which Java gives them: those of nested fields after all others."""
        fields: list[JsonValue] = []
        for name in NAMES[: self.random.randint(1, 5)]:
            self.columns[name] = self.random.choice(self.types)
            if self.random.random() < 0.2:
                self.required.add(name)
            fields.append(_field(len(fields) + 1, name, self.columns[name], required=name in self.required))
        if self.random.random() < 0.5:
            number = len(fields) + 1
            nested = {"s.x": self.random.choice(self.types), "s.Y": self.random.choice(self.types)}
            self.columns |= nested
            inner: list[JsonValue] = [
                _field(number + place, name[2:], type_name) for place, (name, type_name) in enumerate(nested.items(), 1)
            ]
            fields.append(_field(number, "s", {"type": "struct", "fields": inner}))
        return {"type": "struct", "schema-id": 0, "fields": fields}

    def spec(self, schema: JsonObject) -> JsonObject:
        ids = _ids(schema)
        fields: list[JsonValue] = []
        names = self.random.sample([*self.columns], min(len(self.columns), self.random.choice((0, 1, 1, 2, 3))))
        for place, name in enumerate(names):
            transform = self.transform(name)
            self.fields.append(f"p{place}")
            fields.append(
                {"name": f"p{place}", "transform": transform, "source-id": ids[name], "field-id": 1000 + place}
            )
        return {"spec-id": 0, "fields": fields}

    def steps(self) -> list[JsonValue]:
        draws: dict[Callable[[], list[JsonValue]], int] = {
            lambda: [self.append()]: 8,
            self.delete: 2,
            self.positions: 4 if self.format > 1 else 0,
            self.equality: 4 if self.format > 1 else 0,
            self.change_schema: 4,
            self.change_spec: 3,
            self.name_ref: 1,
            lambda: [{"do": "rewrite"}]: 1,
            lambda: [{"do": "rollback"}]: 1,
            lambda: [{"do": "expire"}]: 1,
            self.upgrade: 1,
        }
        return self.random.choices([*draws], [*draws.values()])[0]()

    def append(self) -> JsonObject:
        groups = self.groups(4)
        return {"do": "append", "merge": self.random.random() < 0.5, "groups": groups, "branch": self.branch()}

    def groups(self, limit: int) -> list[JsonValue]:
        """Rows of data files, a file or more each."""
        groups: list[JsonValue] = []
        for _ in range(self.random.randint(0, limit)):
            pools = self.pools()
            rows: list[JsonValue] = [self.row(pools) for _ in range(self.random.randint(1, 5))]
            groups.append({"rows": rows, "options": self.options()})
        return groups

    def branch(self) -> str | None:
        return self.random.choice(self.branches) if self.branches and self.random.random() < 0.3 else None

    def pools(self) -> dict[str, list[JsonValue]]:
        """Few values of each column, so that statistics prune."""
        pools: dict[str, list[JsonValue]] = {}
        for name, type_name in self.columns.items():
            nulls = 0.0 if name in self.required else 0.2
            pools[name] = [value(self.random, type_name, nulls) for _ in range(self.random.randint(1, 3))]
            if nulls and self.random.random() < 0.1:
                pools[name] = [None]
        return pools

    def row(self, pools: dict[str, list[JsonValue]]) -> JsonObject:
        row: JsonObject = {}
        nested: JsonObject = {}
        for name, pool in pools.items():
            if name.startswith("s."):
                nested[name[2:]] = self.random.choice(pool)
            else:
                row[name] = self.random.choice(pool)
        if nested:
            row["s"] = None if self.random.random() < 0.1 else nested
        return row

    def options(self) -> JsonObject:
        without: list[JsonValue] = [name for name in STATISTICS if self.random.random() < 0.08]
        without += [
            f"{self.random.choice(STATISTICS)}:{self.random.randint(1, 9)}"
            for _ in range(self.random.choice((0, 0, 1, 3)))
        ]
        options: JsonObject = {"truncate": self.random.choice((1, 2, 16)), "without": without}
        if self.random.random() < 0.05:
            options["records"] = 0
        return options

    def delete(self) -> list[JsonValue]:
        return [{"do": "delete", "file": self.random.randrange(100)}]

    def positions(self) -> list[JsonValue]:
        file = self.random.randrange(100)
        if self.format == 3:
            return [{"do": "vector", "file": file, "branch": self.branch()}]
        scope = self.random.choice(("referenced", "bounds", "wide", "partition"))
        step: JsonObject = {"do": "positions", "file": file, "scope": scope, "groups": self.groups(1)}
        return [{**step, "branch": self.branch()}]

    def equality(self) -> list[JsonValue]:
        """Not by floats, of which Java has -0.0 before 0.0."""
        names = [name for name, kind in self.columns.items() if "." not in name and kind not in ("float", "double")]
        if not names:
            return []
        columns: list[JsonValue] = [*self.random.sample(names, self.random.randint(1, min(2, len(names))))]
        pools = self.pools()
        rows: list[JsonValue] = [self.row(pools) for _ in range(self.random.randint(1, 3))]
        step: JsonObject = {"do": "equality", "columns": columns, "rows": rows, "options": self.options()}
        groups = self.groups(1)  # by the same commit, as those of an upsert
        return [{**step, "global": self.random.random() < 0.3, "groups": groups, "branch": self.branch()}]

    def change_schema(self) -> list[JsonValue]:
        top = [name for name in self.columns if not name.startswith("s.")]
        promotable = [name for name in top if self.columns[name] in PROMOTIONS]
        change = self.random.choice(("add", "drop", "rename", "promote", "promote"))
        if change == "add":
            name = f"n{next(self.numbers)}"
            self.columns[name] = self.random.choice(self.types)
            return [{"do": "schema", "changes": [["add", name, self.columns[name]]]}]
        if change == "promote" and promotable:
            name = self.random.choice(promotable)
            self.columns[name] = PROMOTIONS[self.columns[name]]
            return [{"do": "schema", "changes": [["promote", name, self.columns[name]]]}]
        if change == "rename" and top:
            name = self.random.choice(top)
            to = f"r{next(self.numbers)}"
            self.columns = {to if each == name else each: kind for each, kind in self.columns.items()}
            self.required = {to if each == name else each for each in self.required}
            return [{"do": "schema", "changes": [["rename", name, to]]}]
        if change == "drop" and len(top) > 1:
            name = self.random.choice(top)
            del self.columns[name]
            self.required.discard(name)
            return [{"do": "schema", "changes": [["drop", name]]}]
        return []

    def change_spec(self) -> list[JsonValue]:
        if self.fields and self.random.random() < 0.4:
            name = self.fields.pop(self.random.randrange(len(self.fields)))
            return [{"do": "spec", "changes": [["remove", name]]}]
        if self.fields and self.random.random() < 0.2:
            place = self.random.randrange(len(self.fields))
            name, self.fields[place] = self.fields[place], f"q{next(self.numbers)}"
            return [{"do": "spec", "changes": [["rename", name, self.fields[place]]]}]
        column = self.random.choice([*self.columns])
        name = f"q{next(self.numbers)}"
        self.fields.append(name)
        return [{"do": "spec", "changes": [["add", column, name, self.transform(column)]]}]

    def transform(self, column: str) -> str:
        return self.random.choice(TRANSFORMS[self.columns[column]])

    def name_ref(self) -> list[JsonValue]:
        name = f"ref{next(self.numbers)}"
        if self.random.random() < 0.5:
            return [{"do": "tag", "name": name}]
        self.branches.append(name)
        return [{"do": "branch", "name": name}]

    def upgrade(self) -> list[JsonValue]:
        self.format = min(3, self.format + 1)
        return [{"do": "property", "key": "format-version", "value": str(self.format)}]


def _field(number: int, name: str, kind: JsonValue, *, required: bool = False) -> JsonObject:
    return {"id": number, "name": name, "required": required, "type": kind}


def _ids(schema: JsonObject) -> dict[str, JsonValue]:
    ids: dict[str, JsonValue] = {}
    fields = schema["fields"]
    assert isinstance(fields, list)
    for each in fields:
        assert isinstance(each, dict)
        if isinstance(inner := each["type"], dict):
            ids |= {f"{each['name']}.{name}": number for name, number in _ids(inner).items()}
        else:
            ids[str(each["name"])] = each["id"]
    return ids
