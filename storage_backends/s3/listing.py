"""Parses one page of a bucket's listing (S3 API reference, `ListObjectsV2`)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote_plus

from storage_backends.base import Listed, Version
from storage_backends.wire.dates import iso_date_ms

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element


@dataclass(frozen=True, slots=True)
class ListedPage:
    """Objects under their whole keys, and the token that continues the listing, if it goes on."""

    entries: tuple[Listed, ...]
    continuation: str | None


def read_listing(body: bytes) -> ListedPage:
    """Parses a page. Raises ValueError unless it is complete, so that no error is taken for an empty listing."""
    from xml.etree import ElementTree  # imported here to keep cold starts fast: few requests list

    try:
        root = ElementTree.fromstring(body)
    except ElementTree.ParseError as error:
        raise ValueError(f"it is not XML: {error}") from error
    if root.tag.rpartition("}")[2] != "ListBucketResult":
        raise ValueError(f"its root element is {root.tag}, not ListBucketResult")
    escaped = root.findtext("{*}EncodingType") == "url"
    continuation = root.findtext("{*}NextContinuationToken") or None
    if root.findtext("{*}IsTruncated") == "true" and continuation is None:
        raise ValueError("it is truncated and has no NextContinuationToken")
    return ListedPage(tuple(_entry(element, escaped) for element in root.iterfind("{*}Contents")), continuation)


def _entry(element: "Element", escaped: bool) -> Listed:
    key = _text(element, "Key")
    return Listed(
        key=unquote_plus(key) if escaped else key,
        version=Version(_text(element, "ETag")),
        size=int(_text(element, "Size")),
        written_ms=iso_date_ms(_text(element, "LastModified")),
    )


def _text(element: "Element", name: str) -> str:
    text = element.findtext(f"{{*}}{name}")
    if text is None:
        raise ValueError(f"an object has no {name}")
    return text
