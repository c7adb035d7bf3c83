"""Splits the URL of a store into its parts."""

from urllib.parse import unquote, urlsplit

from storage_backends.lazy_dataclass import dataclass
from storage_backends.validation import is_key

_WRITE_INTERVALS_MS = {"gs": 1_000}


def write_interval_ms(scheme: str) -> int:
    """Returns the milliseconds between two writes of one object that a store with this scheme demands: it throttles
    more frequent ones. 0 without such a limit. Source: Cloud Storage documentation, "Quotas & limits", Objects."""
    return _WRITE_INTERVALS_MS.get(scheme, 0)


@dataclass(frozen=True, slots=True)
class StoreUrl:
    """The parts of a store's URL: `host` is the part between the two slashes and the next one, such as a bucket or
    `container@account...`; `path` is all from that slash on, unescaped; `text` is the URL as it was given."""

    text: str
    scheme: str
    host: str
    path: str

    @classmethod
    def parse(cls, text: str) -> "StoreUrl":
        """Returns the parts of a store's URL. A text without a scheme has an empty one. Raises `ValueError` for a
        text that can't be split, such as one with an open bracket, and for a query or a fragment."""
        parts = urlsplit(text)
        if parts.query or parts.fragment:
            raise ValueError(
                f"a store URL must not have a query or a fragment (escape ? as %3F and # as %23): {text!r}"
            )
        return cls(text, parts.scheme, parts.netloc, unquote(parts.path))

    def prefix(self, kind: str) -> str:
        """Returns the path as a prefix of keys, without slashes at its ends; empty for all of a bucket. Raises
        `ValueError` for one that no key can have; `kind` is what the message calls such a URL, for example `an S3 URL`.
        """
        prefix = self.path.strip("/")
        if prefix and not is_key(prefix):
            why = (
                "must not have an empty, '.' or '..' segment, a control character, invalid Unicode, or over 1,024 bytes"
            )
            raise ValueError(f"the prefix of {kind} {why}: {self.text!r}")
        return prefix
