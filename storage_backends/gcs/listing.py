"""Parses JSON responses of GCS: the page of a listing, and the resource of one object. Source: the JSON API's
reference, "Objects: list" and "Objects"."""

from typing import Any

import orjson

from storage_backends.base import Listed, Version
from storage_backends.lazy_dataclass import dataclass
from storage_backends.wire.bucket_store import ListedPage
from storage_backends.wire.dates import iso_date_ms

PAGE_FIELDS = "kind,nextPageToken,items(name,generation,size,timeCreated)"
"""The fields that a listing requests of each page and object."""
OBJECT_FIELDS = "generation,timeCreated"


@dataclass(frozen=True, slots=True)
class ObjectState:
    """The generation of an object in GCS, which is its version, and the time at which it was written, in milliseconds
    since 1970."""

    version: Version
    written_ms: int


def read_page(body: bytes) -> ListedPage:
    """Parses a page of the listing of a GCS bucket, which is JSON. Raises ValueError for any other body, and for an
    object without a part, so that no error is taken for an empty listing."""
    page = _loaded(body)
    if page.get("kind") != "storage#objects":
        raise ValueError("the listing is not of the kind storage#objects")
    items = page.get("items", [])
    if not isinstance(items, list):
        raise ValueError("the items of the listing are not a list")
    continuation = page.get("nextPageToken") or None
    return ListedPage(tuple(map(_entry, items)), continuation)


def read_state(body: bytes) -> ObjectState:
    """Reads the generation and the time of one object, in a JSON resource with the fields `OBJECT_FIELDS`. Raises
    ValueError for any other body, and if one is missing or malformed."""
    return _state(_loaded(body))


def generation_in(body: bytes) -> Version:
    """Returns the generation in the response to the write of an object. Raises ValueError if it has none."""
    return Version(_text(_loaded(body), "generation"))


def _loaded(body: bytes) -> dict[str, Any]:
    """Returns the JSON object in a response body of GCS. Raises `ValueError` for any other body."""
    value = orjson.loads(body)
    if not isinstance(value, dict):
        raise ValueError("the answer is not a JSON object")
    return value


def _entry(item: object) -> Listed:
    """Returns the object that an item of a listing's JSON describes. Raises `ValueError` for an item in another
    form."""
    if not isinstance(item, dict):
        raise ValueError("an item of the listing is not a JSON object")
    state = _state(item)
    return Listed(_text(item, "name"), state.version, int(_text(item, "size")), state.written_ms)


def _state(item: dict[str, Any]) -> ObjectState:
    """Returns the version and the time of an object from the JSON that describes it. Raises `ValueError` if one is
    missing or malformed."""
    return ObjectState(Version(_text(item, "generation")), iso_date_ms(_text(item, "timeCreated")))


def _text(item: dict[str, Any], name: str) -> str:
    """Returns the string in a field of a JSON resource; the API writes numbers of 64 bits as strings. Raises ValueError
    if there is none, or an empty one."""
    value = item.get(name)
    if not isinstance(value, str) or not value:
        raise ValueError(f"an object in the answer has no {name} that is a string, and not empty")
    return value
