"""How each client spells a request about a name: the whole target, and the User-Agent that it sends beside it.

Taken from the clients' sources and run against them: Java's `URLEncoder`, Go's `url.JoinPath` and `url.PathEscape`, the
WHATWG parser that reqwest has (and Node), and what PyIceberg and DuckDB send to a server.
"""

import posixpath
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from urllib.parse import quote, quote_plus, unquote

from arco_catalog.http.options import UNIT_SEPARATOR

BASE = "/v1/wh"
GO_LEAVES = "$&+,/:;=@"
"""What Go leaves bare in a path; in a segment by itself not the slash, the comma and the semicolon."""
WHATWG_LEAVES = "!$%&'()*+,-./:;=@[\\]^_|~"

Levels = Sequence[str]


@dataclass(frozen=True)
class Speller:
    """A client. `target` takes what follows the prefix: words of the route, namespaces as tuples of levels, and names.
    `parent` is the value of the query parameter."""

    name: str
    user_agent: str
    target: Callable[..., str]
    parent: Callable[[Levels], str]

    def __str__(self) -> str:
        return self.name


def by_segment(encode: Callable[[str], str]) -> Callable[..., str]:
    """Clients that encode each level and each name on its own."""

    def target(*parts: str | Levels) -> str:
        return "/".join(
            [BASE, *(encode(part) if isinstance(part, str) else "%1F".join(map(encode, part)) for part in parts)]
        )

    return target


def java(text: str) -> str:
    """`URLEncoder.encode`, which Iceberg's `RESTUtil.encodeString` is up to 1.11."""
    return quote_plus(text, safe="*").replace("~", "%7E")


def percent(text: str) -> str:
    """`urllib.parse.quote(text, safe="")` of PyIceberg, `StringUtil::URLEncode` of DuckDB."""
    return quote(text, safe="")


def go(*parts: str | Levels) -> str:
    """iceberg-go: levels escaped, names as they are, then `JoinPath`, which cleans and decodes all of it."""
    segments = [
        part if isinstance(part, str) else "%1F".join(quote(level, safe="$&+:=@~") for level in part) for part in parts
    ]
    raw = "/".join([BASE, *segments])
    joined = posixpath.normpath(raw) + ("/" if raw.endswith("/") else "")
    if re.search(r"%(?![0-9A-Fa-f]{2})", joined):
        return BASE  # an escape that is none is an error, which JoinPath swallows
    if not re.search(r"[^A-Za-z0-9\-._~$&+,/:;=@%!'()*\[\]]", joined):
        return joined
    return quote(unquote(joined), safe=GO_LEAVES)


def rust(*parts: str | Levels) -> str:
    """iceberg-rust: put together as they are, and read by the parser of URLs."""
    joined = "/".join([BASE, *(part if isinstance(part, str) else UNIT_SEPARATOR.join(part) for part in parts)])
    path, mark, query = joined.strip(" ").partition("#")[0].replace("\\", "/").partition("?")
    return quote(path, safe=WHATWG_LEAVES) + mark + query


def form(levels: Levels) -> str:
    return quote_plus(UNIT_SEPARATOR.join(levels))


JAVA = Speller("java", "Apache-HttpClient/5.5 (Java/17.0.15)", by_segment(java), form)
PYICEBERG = Speller(
    "pyiceberg",
    "PyIceberg/0.12.0",
    by_segment(percent),
    lambda levels: quote_plus(UNIT_SEPARATOR.join(map(percent, levels))),
)
DUCKDB = Speller(
    "duckdb",
    "duckdb/v1.5.5(linux_amd64) python/3.11",
    by_segment(percent),
    lambda levels: percent(UNIT_SEPARATOR.join(levels)),
)
ICEBERG_GO = Speller("iceberg-go", "GoIceberg/0.5.0", go, form)
ICEBERG_RUST = Speller("iceberg-rust", "iceberg-rs/0.8.0", rust, form)
CLICKHOUSE = Speller("ClickHouse", "ClickHouse/26.3.1.1 (official build)", by_segment(str), form)
"""Sends names as they are: no more of them than plain ones and a plus."""

SPELLERS = (JAVA, PYICEBERG, DUCKDB, ICEBERG_GO, ICEBERG_RUST)
LOSES = {ICEBERG_GO.name: "/%", ICEBERG_RUST.name: "/?#%\\"}

NAMES = (
    *("two words", " leading", "trailing ", " ", "a+b", "+", "a + b", "100%", "%2F", "%41", "%20", "%2B"),
    *("a/b", "/", "what?", "#1", "a.b", "...", ".hidden", "it's", 'q"t', "b`t", "back\\slash", "\\"),
    *("🧊", "é", "e\u0301", "שלום עולם", "a;b,c", "a=b&c", "a:b@c", "$*~-_", "{x}|^<y>", "[a]!()"),
    *("x" * 255, "ü" * 127, "表" * 85, "tables", "register", "\u200f", "\u00a0"),
)
"""Names that clients may try to create."""

NEVER = (
    *(("", "empty"), (".", "must not be '.'"), ("..", "must not be '..'")),
    *(("x" * 256, "256 bytes"), ("表" * 86, "258 bytes")),
    *(("a\u202eb", "U+202E"), ("\u2028", "U+2028"), ("\u2067a", "U+2067")),
    *(("a\x1fb", "control"), ("a\nb", "control"), ("\x7f", "control"), ("a\x85", "control")),
)
"""Names that no catalog makes, and a word of why."""


def lost(speller: Speller, name: str) -> bool:
    """Whether the client could not ask for the name again."""
    return bool({*name} & {*LOSES.get(speller.name, "")}) or (speller is ICEBERG_RUST and name.endswith(" "))
