"""Checks the size of an answer against the limit of the host that carries it: a Lambda function returns at most 6 MB of
JSON, in which the body is one string, in base64 if it is not text."""

from dataclasses import replace

from arco_catalog.iceberg.errors import AnswerTooLarge
from storage_backends.lazy_dataclass import dataclass

LAMBDA_PAYLOAD_BYTES = 6 << 20
"""Maximum size of all that a function returns (Lambda quotas, "Invocation payload")."""
ENVELOPE_BYTES = 16 << 10
"""The part of the limit that is reserved for status and headers."""
BESIDE_BYTES = 4 << 10
"""The part of the limit that `check` reserves for the rest of the body, such as the location of a metadata file: it
checks one part of an answer before the change, and the whole answer must fit afterwards."""

_ESCAPED = (b'"', b"\\", b"\n", b"\r", b"\t")


@dataclass(frozen=True, slots=True)
class AnswerLimit:
    """The limit of a host for one answer: `payload_bytes` is the most that the host carries, with status, headers and
    the encoding of the body; with `gzipped` the body may be compressed."""

    payload_bytes: int
    gzipped: bool

    def check(self, content: bytes, what: str, remedy: str) -> None:
        """Checks before a change that the host could carry an answer with this `content`, the bytes that `what` has
        after the change. Raises `AnswerTooLarge`, with `what` and the `remedy` in the message."""
        roomier = replace(self, payload_bytes=self.payload_bytes - BESIDE_BYTES)
        if not roomier.fits(content):
            raise AnswerTooLarge(
                f"{what} would be {len(content):,} bytes, more than the host can return (at most "
                f"{self.payload_bytes:,} bytes as they are sent, with headers). Nothing was changed: {remedy}"
            )

    def fits(self, body: bytes) -> bool:
        """Whether the host can carry a body, as text or, if that is allowed, compressed."""
        return self.carries(body, text=True) or (self.gzipped and self.carries(pack(body), text=False))

    def carries(self, body: bytes, *, text: bool) -> bool:
        """Whether an answer with these bytes is small enough for the host: escaped as `text`, or else in base64."""
        size = size_as_text(body) if text else 4 * (len(body) + 2) // 3
        return size <= self.body_bytes

    @property
    def body_bytes(self) -> int:
        """The bytes that the body of an answer may take as it is sent."""
        return self.payload_bytes - ENVELOPE_BYTES


def size_as_text(body: bytes) -> int:
    """Returns the number of bytes that a body, or a part of one, has in a host's answer as text, where some characters
    are escaped."""
    return len(body) + sum(map(body.count, _ESCAPED))


def pack(body: bytes) -> bytes:
    """Returns the body as gzip, at the fastest level, which loses little on JSON. Equal bodies give equal bytes."""
    from gzip import compress  # deferred: a cold start with a small answer saves the time

    return compress(body, 1, mtime=0)
