"""How clients spell a name in a path, where they differ from each other (docs/engines.md, docs/decisions/0028).

Iceberg's Java client (Spark, Trino, Flink) form-encodes path segments: a space is `+`, a plus `%2B`. PyIceberg and
DuckDB percent-encode both. So in a path `+` is a space. iceberg-go, iceberg-rust and ClickHouse leave a plus bare, and
lose some characters altogether: reading their `+` as a space would drop another table than they named.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from arco_catalog.http.percent import decode_form, decode_text
from arco_catalog.iceberg.errors import BadRequest


@dataclass(frozen=True, slots=True, eq=False)
class Spelling:
    """One client's. `plus_is_space` tells what a bare `+` stands for. `loses` are characters that its paths do not
    carry; with `trims_end`, neither is a space at the end. `parent_twice`: the query's `parent` is encoded twice."""

    client: str
    plus_is_space: bool = True
    loses: str = ""
    trims_end: bool = False
    parent_twice: bool = False

    def decode(self, segment: bytes) -> str:
        """A segment of a path. Raises `BadRequest`."""
        return decode_form(segment) if self.plus_is_space else decode_text(segment)

    def parent(self, decoded: str) -> str:
        """The `parent` of a query. What does not decode a second time was encoded once."""
        if not self.parent_twice or not decoded.isascii():
            return decoded
        try:
            return decode_text(decoded.encode())
        except BadRequest:
            return decoded

    def lost(self, name: str) -> str:
        """What of a name this client's paths would lose, in the order of the name."""
        end = " " if self.trims_end and name.endswith(" ") else ""
        return "".join(character for character in name if character in self.loses) + end


USUAL = Spelling("this client")

_BY_PRODUCT = {
    # apache/iceberg-go, catalog/rest: url.JoinPath decodes what it is given; url.PathEscape leaves a plus.
    "GoIceberg": Spelling("iceberg-go", plus_is_space=False, loses="/%"),
    # apache/iceberg-rust, crates/catalog/rest: names are put into the URL as they are, and its parser reads them.
    "iceberg-rs": Spelling("iceberg-rust", plus_is_space=False, loses="/?#%\\", trims_end=True),
    # ClickHouse, RestCatalog.cpp: names as they are, and nothing escapes a space.
    "ClickHouse": Spelling("ClickHouse", plus_is_space=False, loses="/?#% "),
    # PyIceberg quotes the levels of `parent`, and requests quotes the parameter.
    "PyIceberg": Spelling("PyIceberg", parent_twice=True),
}


def spelling_of(headers: Mapping[str, str]) -> Spelling:
    """The spelling of the client that the User-Agent names first; header names are lower case."""
    return _BY_PRODUCT.get(headers.get("user-agent", "").partition("/")[0], USUAL)
