"""Filters in Iceberg's expression JSON, drawn from a seed for the columns of a table."""

from collections.abc import Container, Mapping, Sequence
from random import Random

from arco_catalog.iceberg.json import JsonObject, JsonValue
from tests.engines.scans.drawn_values import TRANSFORMS, VALUES

COMPARISONS = ("lt", "lt-eq", "gt", "gt-eq", "eq", "not-eq")
EQUALITY = ("eq", "not-eq")
"""How UUIDs are compared: of their two orders the catalog excludes a file by both, Java by its own."""
NOT_LITERALS = ("NaN", "Infinity", "-Infinity")


def drawn_filter(random: Random, columns: Mapping[str, str], identities: Container[str], depth: int = 3) -> JsonValue:
    """A filter on `columns`, by each one's name its type, without transforms of `identities`: Java takes a condition on
    a transform for one on the column where that is a partition field. Few of its predicates cannot be bound."""
    draw = random.random()
    if depth and draw < 0.45:
        kind = random.choice(("and", "or"))
        return {
            "type": kind,
            "left": drawn_filter(random, columns, identities, depth - 1),
            "right": drawn_filter(random, columns, identities, depth - 1),
        }
    if depth and draw < 0.55:
        return {"type": "not", "child": drawn_filter(random, columns, identities, depth - 1)}
    if draw < 0.57:
        return random.random() < 0.5
    return _predicate(random, columns, identities)


def _predicate(random: Random, columns: Mapping[str, str], identities: Container[str]) -> JsonObject:
    name = random.choice([*columns])
    type_name = columns[name]
    if random.random() < 0.01:
        type_name = _another(random, type_name)
    term: JsonValue = name
    transform = random.choice(TRANSFORMS[type_name])
    if transform != "identity" and name not in identities and random.random() < 0.2:
        return _of_transform(random, {"type": "transform", "transform": transform, "term": term}, type_name, transform)
    draw = random.random()
    if draw < 0.2:
        return {"type": random.choice(("is-null", "not-null")), "term": term}
    if draw < 0.3 and (type_name in ("float", "double") or random.random() < 0.02):
        return {"type": random.choice(("is-nan", "not-nan")), "term": term}
    if draw < 0.45 and (type_name == "string" or random.random() < 0.02):
        prefix = random.choice(("", "a", "ab", "i", "abcdefgh", "ä", "\U0001f600"))
        return {"type": random.choice(("starts-with", "not-starts-with")), "term": term, "value": prefix}
    comparisons = EQUALITY if type_name == "uuid" else COMPARISONS
    return _comparison(random, term, [literal(random, type_name) for _ in range(random.randint(1, 4))], comparisons)


def _comparison(
    random: Random, term: JsonValue, literals: list[JsonValue], comparisons: Sequence[str] = COMPARISONS
) -> JsonObject:
    if random.random() < 0.3:
        return {"type": random.choice(("in", "not-in")), "term": term, "values": literals}
    return {"type": random.choice(comparisons), "term": term, "value": literals[0]}


def _of_transform(random: Random, term: JsonObject, type_name: str, transform: str) -> JsonObject:
    if random.random() < 0.2:
        return {"type": random.choice(("is-null", "not-null")), "term": term}
    if transform.startswith("truncate"):
        if type_name == "string" and random.random() < 0.3:
            return {"type": "starts-with", "term": term, "value": random.choice(("a", "ab", "abc", "i"))}
        return _comparison(random, term, [literal(random, type_name) for _ in range(2)])
    numbers = (0, 1, 2, -1, 47, 54, 574, 17486, 419686, 3)
    if transform == "day" and random.random() < 0.5:
        return _comparison(random, term, [literal(random, "date") for _ in range(2)])
    return _comparison(random, term, [random.choice(numbers) for _ in range(2)])


def _another(random: Random, type_name: str) -> str:
    """Another type, but for another scale of a decimal: Java takes 1.0 and 1.00 for different where it looks into a
    set of literals."""
    other = random.choice([*VALUES])
    return type_name if type_name.startswith("decimal") and other.startswith("decimal") else other


def literal(random: Random, type_name: str) -> JsonValue:
    """A literal as clients send it for a column of a type: dates also as numbers, numbers also out of range."""
    if random.random() < 0.01:
        type_name = _another(random, type_name)
    drawn = random.choice([each for each in VALUES[type_name] if each not in NOT_LITERALS])
    if type_name in ("float", "double"):
        return float(str(drawn)) if random.random() < 0.8 else random.choice((0, 1, -2, 1e300, -1e300))
    if type_name == "int" and random.random() < 0.1:
        return random.choice((2**31, -(2**31) - 1, 2**62))
    if type_name == "date" and random.random() < 0.3:
        return random.choice((-1, 0, 1, 17486, 17487, 19782))
    if type_name in ("timestamp", "timestamptz", "time") and random.random() < 0.3:
        return random.choice((-1, 0, 1, 45296789000, 1510871468000001))
    return drawn
