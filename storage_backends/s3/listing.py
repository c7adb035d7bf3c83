"""Parses one page of an S3 bucket's listing (S3 API reference, `ListObjectsV2`)."""

import re
from typing import TYPE_CHECKING
from urllib.parse import unquote_plus

from storage_backends.base import Listed, Version
from storage_backends.wire.bucket_store import ListedPage
from storage_backends.wire.dates import iso_date_ms
from storage_backends.wire.xml import local_name, parse_xml

if TYPE_CHECKING:  # a cold start without a listing must not import XML
    from xml.etree.ElementTree import Element


_EMPTY_PAGE = (
    rb'(?:<\?xml version="1\.0"(?: encoding="(?i:UTF-8)")?\s?\?>\s*)?<ListBucketResult(?: xmlns="[^"<&]*")?>'
    rb"(?:\s*<(?!Contents\b|NextContinuationToken\b|IsTruncated>true)(\w+)(?:\s?/>|>[ -%'-;=?-~]*</\1>))*"
    rb"\s*</ListBucketResult>\s*"
)
"""The last page of a listing if it has no objects: its elements have text alone, in ASCII without escapes."""


def read_listing(body: bytes) -> ListedPage:
    """Parses a page of the listing of an S3 bucket, which is XML, and returns its objects and the token for the next
    page. Raises ValueError unless it is complete, so that no error is taken for an empty listing."""
    if re.fullmatch(_EMPTY_PAGE, body):  # often the first request of a function: an XML parser is slow to import
        return ListedPage((), None)
    root = parse_xml(body, "the listing", "ListBucketResult")
    texts = {"EncodingType": "", "IsTruncated": "", "NextContinuationToken": ""}
    objects: list[Element] = []
    for element in root:  # one pass: paths would walk the whole page for each name
        name = local_name(element)
        if name == "Contents":
            objects.append(element)
        elif name in texts:
            texts[name] = element.text or ""
    continuation = texts["NextContinuationToken"] or None
    if texts["IsTruncated"] == "true" and continuation is None:
        raise ValueError("the listing is truncated and has no NextContinuationToken")
    escaped = texts["EncodingType"] == "url"
    return ListedPage(tuple(_entry(element, escaped) for element in objects), continuation)


def _entry(element: "Element", escaped: bool) -> Listed:
    """Returns the object in an XML element of a listing. `escaped` is whether its key is escaped as in a URL. Raises
    ValueError if a part is missing or malformed."""
    texts = {local_name(child): child.text or "" for child in element}
    try:
        key, version, size, written = texts["Key"], texts["ETag"], texts["Size"], texts["LastModified"]
    except KeyError as error:
        raise ValueError(f"an object of the listing has no {error}") from error
    return Listed(unquote_plus(key) if escaped else key, Version(version), int(size), iso_date_ms(written))
