"""Other forms of a filter that mean the same: names in another case, and the newer JSON with `left`, `right` and
`child`, which Iceberg's Java library does not read."""

from collections.abc import Mapping
from random import Random
from typing import Any, NamedTuple

from arco_catalog.iceberg.json import JsonObject, JsonValue
from tests.engines.scans.drawn_values import VALUES

MIRRORED = {"lt": "gt", "gt": "lt", "lt-eq": "gt-eq", "gt-eq": "lt-eq", "eq": "eq", "not-eq": "not-eq"}


def recased(random: Random, drawn: JsonValue, share: float) -> JsonValue:
    """The filter with a share of its names of columns in upper or lower case."""
    if not isinstance(drawn, dict):
        return drawn
    changed: JsonObject = {}
    for name, value in drawn.items():
        if name == "term" and isinstance(value, str):
            changed[name] = another_case(random, value) if random.random() < share else value
        else:
            changed[name] = recased(random, value, share) if name in ("left", "right", "child", "term") else value
    return changed


def another_case(random: Random, name: str) -> str:
    return random.choice((name.upper(), name.lower()))


class SchemaColumn(NamedTuple):
    """A column by its id and the name of its type."""

    id: int
    type: str


def newer(random: Random, drawn: JsonValue, columns: Mapping[str, SchemaColumn]) -> JsonValue:
    """The filter in the newer form, but for some of its predicates. `columns` are known by the names that filters use:
    most of these become ids."""
    if isinstance(drawn, bool):
        return {"type": "literal", "value": drawn} if random.random() < 0.5 else drawn
    assert isinstance(drawn, dict)
    if drawn["type"] in ("and", "or", "not"):
        sides = {name: newer(random, side, columns) for name, side in drawn.items() if name != "type"}
        return {"type": drawn["type"], **sides}
    if random.random() < 0.2:
        return drawn
    return _predicate(random, drawn, columns)


def _predicate(random: Random, drawn: JsonObject, columns: Mapping[str, SchemaColumn]) -> JsonObject:
    kind, operand = drawn["type"], _operand(random, drawn["term"], columns)
    type_name = columns[str(drawn["term"])].type if str(drawn["term"]) in columns else None
    if "values" in drawn:
        return {"type": kind, "child": operand, "values": _literals(random, drawn["values"], type_name)}
    if "value" not in drawn:
        return {"type": kind, "child": operand}
    value = _literal(random, drawn["value"], type_name)
    if str(kind) in MIRRORED and random.random() < 0.4:
        return {"type": MIRRORED[str(kind)], "left": value, "right": operand}
    return {"type": kind, "left": operand, "right": value}


def _operand(random: Random, term: JsonValue, columns: Mapping[str, SchemaColumn]) -> JsonObject:
    if isinstance(term, str):
        if term in columns and random.random() < 0.8:
            return {"type": "reference", "id": columns[term].id}
        return {"type": "reference", "name": term}
    assert isinstance(term, dict)
    inner = _operand(random, term["term"], columns)
    name, _, width = str(term["transform"]).partition("[")
    arguments: list[JsonValue] = [int(width.removesuffix("]")), inner] if width else [inner]
    functions: list[JsonValue] = [name, [name], {"identifier": [name]}]
    return {"type": "apply", "function": random.choice(functions), "arguments": arguments}


def _literal(random: Random, value: JsonValue, type_name: str | None) -> JsonValue:
    draw = random.random()
    if draw < 0.4:
        return value
    typed: JsonObject = {"data-type": type_name} if draw < 0.7 and _is_of(value, type_name) else {}
    return {"type": "literal", "value": value, **typed}


def _literals(random: Random, values: Any, type_name: str | None) -> JsonValue:
    if random.random() < 0.3 and all(_is_of(each, type_name) for each in values):
        return {"type": "literals", "values": values, "data-type": type_name}
    return [_literal(random, each, type_name) for each in values]


def _is_of(value: JsonValue, type_name: str | None) -> bool:
    """Whether a literal is written as a value of the column's type: dates may be numbers, and numbers out of range."""
    return any(value == each and type(value) is type(each) for each in VALUES.get(type_name or "", ()))
