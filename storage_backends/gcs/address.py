"""Builds the URLs of requests to GCS: pure functions. Source: Cloud Storage documentation, "JSON API overview" and its
reference."""

import re
from urllib.parse import quote, urlencode

from storage_backends.base import StoreError
from storage_backends.wire.exchange import Request
from storage_backends.wire.http1 import request_head

_BUCKET = re.compile(r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]")


def check_bucket(bucket: str) -> None:
    """Raises `StoreError` for a name that no bucket can have by its length and characters; other rules of GCS, such
    as that a name is no IP address, are left to GCS."""
    if not _BUCKET.fullmatch(bucket):
        raise StoreError(
            f"no GCS client can be made: invalid bucket name {bucket!r}: expected 3 to 222 lower-case letters, digits, "
            "dots, hyphens and underscores, with a letter or digit at both ends"
        )


def target_of(bucket: str, request: Request, user_project: str | None) -> str:
    """Returns the path and query of a request: that of batches for one that carries other requests; a POST uploads the
    object; all other methods name the object, or list the bucket if the key is empty. `user_project` is billed, None
    for the bucket's; the parts of a batch name it, and the batch does not."""
    if request.parts:
        return "/batch/storage/v1"
    objects = f"/storage/v1/b/{quote(bucket, safe='')}/o"
    query = dict(request.query)
    if user_project:
        query["userProject"] = user_project
    if request.method == "POST":
        path, query = f"/upload{objects}", {"uploadType": "media", "name": request.key, **query}
    else:
        path = f"{objects}/{quote(request.key, safe='')}" if request.key else objects
    return f"{path}?{urlencode(query, quote_via=quote, safe='')}" if query else path


def part_head(bucket: str, part: Request, user_project: str | None) -> bytes:
    """Returns the first lines of a request that is sent within another request. The token of the outer request
    authorizes it, too."""
    return request_head(part.method, target_of(bucket, part, user_project), part.headers, 0)
