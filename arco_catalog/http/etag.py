"""Entity tags of table states: the wire format, and what a client may send back."""

import hashlib
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Literal

from arco_catalog.iceberg.json import JsonValue, dumps

Snapshots = Literal["all", "refs"]

_WIRE_FORMAT = 1
"""Part of every tag. To be raised when the same table state is answered with different bytes than before."""

REMEMBERED_TAGS = 4_096

_TAG = re.compile(r'(?:W/)?("[^"]*")')


@lru_cache(REMEMBERED_TAGS)  # keys of bounded length: a location was parsed before it came here
def table_etag(
    metadata_location: str,
    *,
    snapshots: Snapshots = "all",
    delegation: str = "",
    grants: tuple[str, ...] = (),
    labels: str = "",
) -> str:
    """A tag that differs wherever the answer does: by metadata file, by `snapshots`, by how access is delegated, by
    what the caller is granted (docs/design/README.md#what-was-rejected), and by the digest of the labels."""
    parts: list[JsonValue] = [_WIRE_FORMAT, metadata_location, snapshots, delegation, [*sorted(grants)]]
    if labels:
        parts.append(labels)
    return f'"{hashlib.sha256(dumps(parts)).hexdigest()[:32]}"'


def labels_digest(governance: Mapping[str, str]) -> str:
    """Of the labels that tell of a governance; empty where there are none."""
    return hashlib.sha256(dumps({**governance}, sort_keys=True)).hexdigest() if governance else ""


def none_match(if_none_match: str | None, etag: str) -> bool:
    """Whether the client's `If-None-Match` lets us send the state: False means that it holds this very one (304).

    Weak comparison, as RFC 9110 section 13.1.2 asks: proxies that compress make tags weak. A tag without its quotes is
    taken too. Anything malformed matches nothing, and the state is sent.
    """
    if if_none_match is None:
        return True
    sent = if_none_match.strip()
    if etag not in sent:  # of a head of 200 KB no tag is read in vain
        return sent not in ("*", etag.strip('"'))
    return etag not in _TAG.findall(sent)
