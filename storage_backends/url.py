"""A store's URL in parts."""

from dataclasses import dataclass
from urllib.parse import unquote, urlsplit


@dataclass(frozen=True, slots=True)
class StoreUrl:
    """`host` is what follows two slashes, `path` the rest, unescaped; `text` is the URL as it was given."""

    text: str
    scheme: str
    host: str
    path: str

    @classmethod
    def parse(cls, text: str) -> "StoreUrl":
        """Raises `ValueError` for a query or a fragment, which no store's URL has."""
        parts = urlsplit(text)
        if parts.query or parts.fragment:
            raise ValueError(
                f"a store URL must not have a query or a fragment (escape ? as %3F and # as %23): {text!r}"
            )
        return cls(text, parts.scheme, parts.netloc, unquote(parts.path))
