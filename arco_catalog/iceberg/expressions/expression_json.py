"""The JSON forms of filters: the older one with `term`, and the newer one with `child`, `left` and `right`. Both are
read; the older one is written, which all clients read.

A filter comes from a client, so its predicates, depth, literals and characters are bounded.
"""

import math
from collections.abc import Mapping, Sequence
from typing import cast

from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.expressions.expression import (
    FALSE,
    MIRRORED,
    SETS,
    TRUE,
    UNARY,
    And,
    Constant,
    Expression,
    Literal,
    Not,
    Operation,
    Or,
    Predicate,
    Term,
)
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.iceberg.transforms import canonical

MAX_DEPTH = 500
"""Maximum levels of a filter: readers of JSON nest it once more, and recursion must end before the interpreter's."""
MAX_NODES = 10_000
"""Maximum predicates and combinations of a filter."""
MAX_LITERALS = 20_000
"""Maximum literals of all predicates of a filter together."""
MAX_TEXT = 2 << 20
"""Maximum characters of all names and literals of a filter together."""

_CHILD, _LEFT, _RIGHT, _TERM, _VALUE, _VALUES = "child", "left", "right", "term", "value", "values"
_ADVICE = "use a shorter one, or let the client plan its scans (scan-planning-mode=client)"
_MIN_LONG, _MAX_LONG = -(2**63), 2**63 - 1


def parse_expression(value: JsonValue) -> Expression:
    """Reads a filter in either JSON form. Raises `BadRequest` for everything else, and for a filter that is too large:
    a part that can't be read is never taken for `true`."""
    return _Parser().expression(value, MAX_DEPTH)


def expression_json(expression: Expression) -> JsonValue:
    """Returns the JSON form of a filter that all clients read: `term`, `value` and `values`, and `true` or `false` for
    constants. Types of literals are left out."""
    match expression:
        case Constant(value):
            return value
        case Not(child):
            return {"type": "not", _CHILD: expression_json(child)}
        case Predicate():
            return _predicate_json(expression)
    kind = "and" if isinstance(expression, And) else "or"
    return {"type": kind, _LEFT: expression_json(expression.left), _RIGHT: expression_json(expression.right)}


def _predicate_json(predicate: Predicate) -> JsonObject:
    """Returns the JSON of a predicate in the older form, without types of literals."""
    written: JsonObject = {"type": predicate.operation.value, _TERM: _term_json(predicate.term)}
    if predicate.operation in SETS:
        written[_VALUES] = [literal.value for literal in predicate.literals]
    elif predicate.literals:
        written[_VALUE] = predicate.literals[0].value
    return written


def _term_json(term: Term) -> JsonValue:
    """Returns the JSON of a term: the name of a column (the id, if the term has that), or a transform of one."""
    if term.transform == "identity":
        return cast(JsonValue, term.column)
    return {"type": "transform", "transform": term.transform, _TERM: cast(JsonValue, term.column)}


class _Parser:
    """Reads one filter of rows from JSON, and counts its predicates, combinations, literals and characters, which may
    not exceed the limits of this module."""

    def __init__(self) -> None:
        self._nodes, self._literals, self._text = MAX_NODES, MAX_LITERALS, MAX_TEXT

    def expression(self, value: JsonValue, depth: int) -> Expression:
        """Reads an expression of at most `depth` levels. Raises `BadRequest` for a malformed or deeper one, or if the
        filter has too many nodes, literals or characters."""
        if isinstance(value, bool):
            return TRUE if value else FALSE
        if not isinstance(value, dict):
            raise BadRequest(f"Cannot parse a filter: expected an object or a boolean, not {_shown(value)}")
        self._nodes -= 1
        if self._nodes < 0 or depth == 0:
            raise BadRequest(
                f"A filter may have at most {MAX_NODES:,} comparisons and combinations (and, or, not), "
                f"nested {MAX_DEPTH} deep: {_ADVICE}"
            )
        kind = _text(value, "type").lower().replace("_", "-")
        if kind in ("true", "false", "literal"):
            return _constant(kind, value)
        if kind == "not":
            _only(value, _CHILD)
            return Not(self.expression(value[_CHILD], depth - 1))
        if kind in ("and", "or"):
            _only(value, _LEFT, _RIGHT)
            sides = self.expression(value[_LEFT], depth - 1), self.expression(value[_RIGHT], depth - 1)
            return And(*sides) if kind == "and" else Or(*sides)
        return self._predicate(_operation(kind), value)

    def _predicate(self, operation: Operation, value: JsonObject) -> Predicate:
        """Reads a predicate, in the form with `term` or in the one with operands, where the sides of a comparison may
        be exchanged. Fails for any other form."""
        older = _TERM in value
        read = self._old_term if older else self._operand
        if operation in UNARY:
            name = _TERM if older else _CHILD
            _only(value, name)
            return Predicate(operation, read(value[name]))
        if operation in SETS:
            name = _TERM if older else _CHILD
            _only(value, name, _VALUES)
            return Predicate(operation, read(value[name]), tuple(self._literal_set(value[_VALUES])))
        names = (_TERM, _VALUE) if older else (_LEFT, _RIGHT)
        _only(value, *names)
        left, right = value[names[0]], value[names[1]]
        if not older and operation in MIRRORED and not _is_term(left) and _is_term(right):
            operation, left, right = MIRRORED[operation], right, left
        return Predicate(operation, read(left), (self._literal(right),))

    def _old_term(self, value: JsonValue) -> Term:
        """Reads the field `term` of a predicate: a column's name, a reference, or a transform of one of these. Fails
        for any other value."""
        if isinstance(value, str):
            return Term(self._counted(value))
        if isinstance(value, dict) and value.get("type") == "reference":
            return self._reference(value)
        if not isinstance(value, dict) or value.get("type") != "transform":
            raise BadRequest(
                "Cannot parse a term of a filter: expected a name, or an object of the type 'reference' or 'transform'"
            )
        _only(value, "transform", _TERM)
        inner = self._old_term(value[_TERM])
        if inner.transform != "identity":
            raise BadRequest("Cannot parse a term of a filter: a transform of a transform")
        return Term(inner.column, canonical(self._counted(_text(value, "transform"))))

    def _operand(self, value: JsonValue) -> Term:
        """Reads an operand of a predicate: a reference or an applied transform. Fails for any other value."""
        kind = value.get("type") if isinstance(value, dict) else None
        if isinstance(value, dict) and kind == "reference":
            return self._reference(value)
        if isinstance(value, dict) and kind == "apply":
            return self._apply(value)
        raise BadRequest("Cannot parse an operand of a filter: expected an object of the type 'reference' or 'apply'")

    def _reference(self, value: JsonObject) -> Term:
        """Reads a reference to a column by name or id. Fails for any other value."""
        names = value.keys() - {"type"}
        if names == {"id"} and isinstance(value["id"], int) and not isinstance(value["id"], bool):
            return Term(value["id"])
        if names in ({"name"}, {_TERM}):
            return Term(self._counted(_text(value, *names)))
        raise BadRequest(
            "Cannot parse a reference of a filter: expected either an integer `id` or a `name`, and no other field"
        )

    def _apply(self, value: JsonObject) -> Term:
        """Reads a transform as the function of the same name: of a reference, or of an integer and a reference. Fails
        for any other value, and for a transform of a transform."""
        _only(value, "function", "arguments")
        name, arguments = _function_name(value["function"]), value["arguments"]
        if not isinstance(arguments, list) or not 1 <= len(arguments) <= 2:
            raise BadRequest(
                f"Cannot apply the function {name[:100]} in a filter: expected as `arguments` an array of one or two"
            )
        inner = self._operand(arguments[-1])
        if inner.transform != "identity":
            raise BadRequest("Cannot parse an operand of a filter: a transform of a transform")
        if len(arguments) == 1:
            return Term(inner.column, canonical(self._counted(name)))
        width = self._literal(arguments[0]).value
        if not isinstance(width, int) or isinstance(width, bool):
            raise BadRequest(f"Cannot apply the function {name[:100]} in a filter: its first argument is no integer")
        return Term(inner.column, canonical(f"{self._counted(name)}[{width}]"))

    def _literal_set(self, value: JsonValue) -> Sequence[Literal]:
        """Reads the literals of IN or NOT IN, as an array or an object with a type for all. Fails for any other
        value."""
        if isinstance(value, dict) and value.get("type") == "literals":
            _only(value, _VALUES, "data-type")
            values, of_type = value[_VALUES], self._counted(_text(value, "data-type"))
        else:
            values, of_type = value, None
        if not isinstance(values, list):
            raise BadRequest(f"Cannot parse literals of a filter: expected an array, not {_shown(values)}")
        if of_type is None:
            return [self._literal(one) for one in values]
        return [self._bare_literal(one, of_type) for one in values]

    def _literal(self, value: JsonValue) -> Literal:
        """Reads one literal, with a type or without. Fails for any other value."""
        if not isinstance(value, dict):
            return self._bare_literal(value, None)
        if _lower(value.get("type")) != "literal":
            raise BadRequest("Cannot parse a literal of a filter: an object must have the type 'literal'")
        if "data-type" not in value:
            _only(value, _VALUE)
            return self._bare_literal(value[_VALUE], None)
        _only(value, _VALUE, "data-type")
        return self._bare_literal(value[_VALUE], self._counted(_text(value, "data-type")))

    def _bare_literal(self, value: JsonValue, of_type: str | None) -> Literal:
        """Returns a literal of this value and type; `of_type` is None if the filter gives no type. Fails for other JSON
        than a boolean, a string, or a finite number of at most 64 bits, and for too many literals or characters."""
        self._literals -= 1
        if self._literals < 0:
            raise BadRequest(f"A filter may have at most {MAX_LITERALS:,} literals: {_ADVICE}")
        if isinstance(value, str):
            self._counted(value)
        elif isinstance(value, float):
            if not math.isfinite(value):
                raise BadRequest("Cannot parse a literal of a filter: expected a finite number")
        elif not isinstance(value, int) or not _MIN_LONG <= value <= _MAX_LONG:
            raise BadRequest(
                "Cannot parse a literal of a filter: expected a boolean, a string, or a number of at most 64 bits, not "
                f"{_shown(value)}"
            )
        return Literal(value, of_type)

    def _counted(self, text: str) -> str:
        """Returns the text, and subtracts its length from the characters that the filter may yet have. Raises
        `BadRequest` if it has more."""
        self._text -= len(text)
        if self._text < 0:
            raise BadRequest(f"A filter may have at most {MAX_TEXT:,} characters of names and literals: {_ADVICE}")
        return text


def _constant(kind: str, value: JsonObject) -> Expression:
    """Reads a constant: true, false, or a boolean literal. Fails for a literal of another type, and for other
    fields."""
    if kind != "literal":
        _only(value)
        return TRUE if kind == "true" else FALSE
    _only(value, _VALUE)
    if not isinstance(value[_VALUE], bool):
        raise BadRequest(f"Cannot parse a filter: expected a boolean literal, not {_shown(value[_VALUE])}")
    return TRUE if value[_VALUE] else FALSE


def _operation(kind: str) -> Operation:
    """Returns the operation of a type of expression, such as `lt-eq`. Raises `BadRequest` for an unknown one."""
    try:
        return Operation(kind)
    except ValueError:
        raise BadRequest(f"Cannot parse a filter: invalid operation type: {kind[:100]}") from None


def _is_term(value: JsonValue) -> bool:
    """Whether a value is a reference or an applied transform."""
    return isinstance(value, dict) and value.get("type") in ("reference", "apply")


def _function_name(value: JsonValue) -> str:
    """Returns the name of a function of one part, which a string, a list or an object with an `identifier` gives,
    without a catalog other than `iceberg_functions`. Fails for any other value."""
    identifier = value
    if isinstance(value, dict):
        if value.keys() - {"catalog"} != {"identifier"} or value.get("catalog") not in (None, "iceberg_functions"):
            raise BadRequest(
                "Cannot apply a function in a filter: expected only an identifier, and no other catalog than "
                "iceberg_functions"
            )
        identifier = value["identifier"]
    if isinstance(identifier, list) and len(identifier) == 1:
        identifier = identifier[0]
    if not isinstance(identifier, str):
        raise BadRequest(f"Cannot apply a function in a filter: expected a name, not {_shown(identifier)}")
    return identifier


def _only(value: Mapping[str, JsonValue], *names: str) -> None:
    """Raises `BadRequest` unless an object has these fields, besides its type, and no others."""
    if value.keys() - {"type"} != {*names}:
        expected = ", ".join(names) or "no field"
        raise BadRequest(
            f"Cannot parse a {_shown(value.get('type'))} of a filter: expected {expected} besides its type"
        )


def _text(value: Mapping[str, JsonValue], name: str) -> str:
    """Returns the text in a field of a part of a filter. Raises `BadRequest` if it is missing or no text."""
    found = value.get(name)
    if not isinstance(found, str):
        raise BadRequest(f"Cannot parse a filter: expected a string as {name!r}, not {_shown(found)}")
    return found


def _lower(value: JsonValue) -> str:
    """Returns a text in lower case; an empty one for any other value."""
    return value.lower() if isinstance(value, str) else ""


def _shown(value: JsonValue) -> str:
    """Returns a short form of a value for messages: "an object", "an array", or at most 100 characters of any other
    value."""
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "an array"
    return str(value)[:100]
