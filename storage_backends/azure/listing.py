"""Parses a page of an Azure container's listing, which is XML. Source: Azure Storage REST API, "List Blobs"."""

from typing import TYPE_CHECKING
from urllib.parse import unquote

from storage_backends.base import Listed, Version
from storage_backends.wire.bucket_store import ListedPage
from storage_backends.wire.dates import http_date_ms
from storage_backends.wire.xml import parse_xml

if TYPE_CHECKING:  # a cold start without a listing must not import XML
    from xml.etree.ElementTree import Element


def read_listing(body: bytes) -> ListedPage:
    """Parses a page of the listing of an Azure container, which is XML, and returns its objects and the marker of the
    next page. Directories of a hierarchical namespace are left out. Raises ValueError unless the page is complete, so
    that no error is taken for an empty listing."""
    root = parse_xml(body, "the listing", "EnumerationResults")
    blobs, marker = root.find("Blobs"), root.find("NextMarker")
    if blobs is None or marker is None:
        raise ValueError("the listing has no Blobs or no NextMarker")
    entries = (_entry(blob) for blob in blobs.iterfind("Blob") if not _is_directory(blob))
    return ListedPage(tuple(entries), marker.text or None)


def _is_directory(blob: "Element") -> bool:
    """Whether a blob in a listing is a directory of a hierarchical namespace, not an object."""
    return blob.findtext("Properties/ResourceType") == "directory"


def _entry(blob: "Element") -> Listed:
    """Returns the object in a blob of a listing. Raises ValueError if a part is missing or malformed."""
    name = blob.find("Name")
    if name is None or not name.text:
        raise ValueError("a blob of the listing has no Name")
    return Listed(
        key=unquote(name.text) if name.get("Encoded") == "true" else name.text,
        version=_version(_text(blob, "Properties/Etag")),
        size=int(_text(blob, "Properties/Content-Length")),
        written_ms=http_date_ms(_text(blob, "Properties/Last-Modified")),
    )


def _version(tag: str) -> Version:
    """Returns an ETag in quotes, as headers have it; a listing leaves the quotes out."""
    return Version(tag if tag.startswith('"') else f'"{tag}"')


def _text(blob: "Element", name: str) -> str:
    """Returns the text of a blob's element. Raises `ValueError` without it."""
    text = blob.findtext(name)
    if text is None:
        raise ValueError(f"a blob of the listing has no {name}")
    return text
