"""How large an answer may be, where the host that carries it has a limit: Lambda takes 6 MB of JSON in which the body
is one string, and base64 if it is not text."""

import gzip
from dataclasses import dataclass, replace

from arco_catalog.iceberg.errors import AnswerTooLarge

LAMBDA_PAYLOAD_BYTES = 6 << 20
"""What a function may return, everything included (Lambda quotas, "Invocation payload")."""
ENVELOPE_BYTES = 16 << 10
"""Kept of it for status and headers."""
BESIDE_BYTES = 4 << 10
"""What an answer may hold beside what grows, a metadata file's location above all: a change is judged by what grows
alone, and must leave room for this, or it would be made and then not be answered."""

_ESCAPED = (b'"', b"\\", b"\n", b"\r", b"\t")


@dataclass(frozen=True, slots=True)
class AnswerLimit:
    """`payload_bytes` is what the host carries; `gzipped` is whether this answer may be compressed."""

    payload_bytes: int
    gzipped: bool

    def check(self, content: bytes, what: str, remedy: str) -> None:
        """For a change, before it is made: what it makes of `what` must be such that the host could carry it back.
        Raises `AnswerTooLarge`, which names the remedy."""
        roomier = replace(self, payload_bytes=self.payload_bytes - BESIDE_BYTES)
        if not roomier.fits(content):
            raise AnswerTooLarge(
                f"{what} would be {len(content):,} bytes, more than the host's response limit. Nothing was "
                f"changed: {remedy}"
            )

    def fits(self, body: bytes) -> bool:
        """Whether the host can carry a body, compressed if need be."""
        return self.carries(body, text=True) or (self.gzipped and self.carries(pack(body), text=False))

    def carries(self, body: bytes, *, text: bool) -> bool:
        """Whether the host can carry these very bytes."""
        size = len(body) + sum(map(body.count, _ESCAPED)) if text else 4 * (len(body) + 2) // 3
        return size + ENVELOPE_BYTES <= self.payload_bytes


def pack(body: bytes) -> bytes:
    """The body as gzip, the same bytes each time; the fastest level, which loses little on JSON."""
    return gzip.compress(body, 1, mtime=0)
