"""Decodes the query of a request, and parses the values of parameters."""

from arco_catalog.http.percent import decode_form
from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.json import dumps
from storage_backends.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Query:
    """The decoded names and values of a request's query in the order sent. A name may occur more than once."""

    pairs: tuple[tuple[str, str], ...] = ()

    @classmethod
    def parse(cls, encoded: bytes) -> "Query":
        """Returns the query that the text after the `?` of a URL encodes. Raises `BadRequest` if it does not decode."""
        pairs = []
        for field in encoded.split(b"&"):
            if field:
                name, _, value = field.partition(b"=")
                pairs.append((decode_form(name), decode_form(value)))
        return cls(tuple(pairs))

    def all(self, name: str) -> tuple[str, ...]:
        """Returns all values of a parameter of the query, in the order sent; empty if it is absent."""
        return tuple(value for key, value in self.pairs if key == name)

    def one(self, name: str) -> str | None:
        """Returns the value of a parameter of the query, None if it is absent. Raises `BadRequest` if it occurs more
        than once."""
        if not self.pairs:
            return None
        values = self.all(name)
        if len(values) > 1:
            raise BadRequest(f"Query parameter {name!r} is given {len(values)} times: give it once")
        return values[0] if values else None

    def choice(self, name: str, choices: tuple[str, ...], default: str) -> str:
        """Returns the value of a parameter of the query in lower case, or `default` if it is absent. Raises
        `BadRequest` unless it is one of `choices` in upper or lower case (Java's enums are sent as `ALL`), and if it
        occurs more than once."""
        value = self.one(name) if self.pairs else None
        if value is None:
            return default
        if value.lower() not in choices:
            raise BadRequest(f"Query parameter {name!r} must be {' or '.join(choices)}, not {value[:64]!r}")
        return value.lower()

    def flag(self, name: str) -> bool:
        """Returns the value of a boolean parameter of the query, `true` or `false` in upper or lower case (Python
        clients send `True`), False if it is absent. Raises `BadRequest` for any other value, and if it occurs more than
        once."""
        return self.choice(name, ("true", "false"), "false") == "true"

    def positive(self, name: str) -> int | None:
        """Returns the value of an integer parameter of the query, None if it is absent. Raises `BadRequest` for any
        value but an integer of at least 1 with at most 18 digits, and if it occurs more than once."""
        value = self.one(name)
        if value is None:
            return None
        if not (value.isascii() and value.isdigit() and len(value) <= 18 and int(value) >= 1):
            raise BadRequest(
                f"Query parameter {name!r} must be an integer of at least 1, in at most 18 digits, not {value[:64]!r}"
            )
        return int(value)

    @property
    def canonical(self) -> str:
        """One text for all orders and encodings of equal parameters of a query; empty for none. An idempotency key is
        bound to it."""
        return dumps([[name, value] for name, value in sorted(self.pairs)]).decode() if self.pairs else ""


NO_QUERY = Query()
