"""The different ways in which clients encode names in paths (docs/engines.md, docs/decisions/0028).

Iceberg's Java client (Spark, Trino, Flink) form-encodes path segments: a space is `+`, a plus `%2B`. PyIceberg and
DuckDB percent-encode both. So in their paths `+` is a space. iceberg-go, iceberg-rust and ClickHouse send a plus as
`+`, and cannot send some other characters at all. With their `+` decoded as a space, a drop would hit another table.
"""

from collections.abc import Mapping

from arco_catalog.http.percent import decode_form, decode_text
from arco_catalog.iceberg.errors import BadRequest
from storage_backends.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Spelling:
    """How one `client` encodes names in paths. `plus_is_space`: a `+` in its paths is a space. `loses` are the
    characters that its paths cannot contain; with `trims_end` neither can they end in a space. `parent_twice`: it
    encodes the `parent` of a query twice."""

    client: str
    plus_is_space: bool = True
    loses: str = ""
    trims_end: bool = False
    parent_twice: bool = False

    def decode(self, segment: bytes) -> str:
        """Returns the decoded segment of a path. Raises `BadRequest` if it does not decode."""
        return decode_form(segment) if self.plus_is_space else decode_text(segment)

    def parent(self, decoded: str) -> str:
        """Returns the `parent` of a query, which is `decoded` once already, decoded a second time if the client encodes
        it twice. Text that does not decode a second time is returned as it is."""
        if not self.parent_twice or not decoded.isascii():
            return decoded
        try:
            return decode_text(decoded.encode())
        except BadRequest:
            return decoded

    def lost(self, name: str) -> str:
        """Returns the characters of a name that this client's paths cannot contain, in the order of the name, and a
        space at the end of the name if the paths can't end in one."""
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
    """Returns the spelling of the client that the User-Agent names first, or the usual one; header names are in lower
    case."""
    return _BY_PRODUCT.get(headers.get("user-agent", "").partition("/")[0], USUAL)
