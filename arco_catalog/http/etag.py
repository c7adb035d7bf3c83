"""Entity tags of the state of a table: how they are computed, and how `If-None-Match` is compared with them."""

import hashlib
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Literal

from arco_catalog.iceberg.json import JsonValue, dumps

Snapshots = Literal["all", "refs"]

_WIRE_FORMAT = 1
"""Part of every tag. Increase it when the response for the same table state changes its bytes."""

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
    """Returns the ETag of a response with a table's state. Different responses have different ETags: it is a hash of
    the metadata location, the `snapshots` parameter, the way of `delegation`, the `grants` of the response in any order
    (`DelegatedAccess.grants`), and the digest of the `labels`. A compressed response has the same one, made weak."""
    parts: list[JsonValue] = [_WIRE_FORMAT, metadata_location, snapshots, delegation, [*sorted(grants)]]
    if labels:
        parts.append(labels)
    return f'"{hashlib.sha256(dumps(parts)).hexdigest()[:32]}"'


def labels_digest(governance: Mapping[str, str]) -> str:
    """Returns a digest of the stored governance from which a response's labels are made; empty text if there is
    none."""
    return hashlib.sha256(dumps({**governance}, sort_keys=True)).hexdigest() if governance else ""


def none_match(if_none_match: str | None, etag: str) -> bool:
    """Whether no tag in `If-None-Match` equals `etag`, so that the response must contain the state. False means that
    the client has the current state, and gets a 304. Without the header the result is True.

    The comparison is weak (RFC 9110 section 13.1.2), because proxies that compress make tags weak. `*` equals every
    tag. A single tag may lack its quotes; any other malformed tag equals no tag.
    """
    if if_none_match is None:
        return True
    sent = if_none_match.strip()
    if etag not in sent:  # of a head of 200 KB no tag is read in vain
        return sent not in ("*", etag.strip('"'))
    return etag not in _TAG.findall(sent)
