"""Reads all versions, current and previous, of objects that an S3 bucket keeps (S3 API reference, `ListObjectVersions`
and `GetBucketVersioning`)."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import unquote_plus

from storage_backends.base import StoreError, StoreUnavailable, Version
from storage_backends.s3.answers import S3Dialect
from storage_backends.s3.carrier import open_transport
from storage_backends.s3.config import S3Config
from storage_backends.validation import is_key
from storage_backends.versions import KeptVersion
from storage_backends.wire.bucket import Bucket
from storage_backends.wire.client import Client
from storage_backends.wire.dates import iso_date_ms
from storage_backends.wire.exchange import Request
from storage_backends.wire.xml import local_name, parse_xml

if TYPE_CHECKING:  # a cold start must not import XML
    from xml.etree.ElementTree import Element


class S3Versions(Bucket):
    """Reads the versions that an S3 bucket keeps of the objects under `prefix`."""

    def __init__(self, bucket: str, prefix: str = "", *, config: S3Config) -> None:
        self._always = config.request_headers()
        client = Client(partial(open_transport, bucket, config), S3Dialect(bucket))
        super().__init__(bucket, prefix, client)

    async def enabled(self) -> bool:
        """Whether the bucket keeps versions of what is written now; False if it never did, or if versioning is
        suspended. Raises `StoreError` if that can't be read."""
        answer = await self._client.read(Request("GET", "", self._always, {"versioning": ""}))
        return answer.status == HTTPStatus.OK and b"<Status>Enabled</Status>" in answer.response.body

    async def list(self, prefix: str) -> AsyncGenerator[KeptVersion, None]:
        """Yields all versions and delete markers of the objects whose keys start with `prefix`, object by object, the
        latest first. Leaves out objects with names that are not valid keys. Raises `StoreError` if a listing fails."""
        whole = self._prefix + prefix
        query = {"versions": "", "encoding-type": "url", "max-keys": str(self.page_size), "prefix": whole}
        resume: dict[str, str] = {}
        left: list[KeptVersion] = []
        while True:
            answer = await self._client.read(Request("GET", "", self._always, {**query, **resume}))
            if answer.status != HTTPStatus.OK:
                raise StoreError(
                    f"the listing of versions in {self._name!r} failed, and arco restore, which may have hidden or "
                    "restored objects before, must be run to the end: the store answered with the unexpected status "
                    f"{answer.status}"
                )
            try:
                found, resume = _read_page(answer.response.body)
            except (ValueError, KeyError) as error:
                raise StoreUnavailable(
                    f"the listing of versions in {self._name!r} failed, and arco restore, which may have hidden or "
                    f"restored objects before, must be run to the end: the answer cannot be read: {error}"
                ) from error
            complete, left = _complete([*left, *found], more=bool(resume))
            for each in complete:
                key = each.key.removeprefix(self._prefix)
                if is_key(key):
                    yield replace(each, key=key)
            if not resume:
                return

    async def get(self, kept: KeptVersion) -> bytes:
        """Returns the bytes of one version of an object. Raises `StoreError` if it can't be read, or is a delete
        marker."""
        answer = await self._client.read(Request("GET", self._key(kept.key), self._always, {"versionId": kept.id}))
        if answer.status != HTTPStatus.OK:
            raise StoreError(
                f"version {kept.id} of {kept.key} cannot be read, and arco restore, which may have hidden or restored "
                f"other objects before, must be run to the end: the store answered status {answer.status}"
            )
        return answer.response.body


def _read_page(body: bytes) -> tuple[list[KeptVersion], dict[str, str]]:
    """Reads a page of a listing of versions. Returns the versions in it, and the query parameters for the next page,
    which are empty after the last. Raises `ValueError` or `KeyError` if the body is no such page."""
    root = parse_xml(body, "the listing of versions", "ListVersionsResult")
    texts = {local_name(child): child.text or "" for child in root}
    escaped = texts.get("EncodingType") == "url"
    found = [_version(child, escaped) for child in root if local_name(child) in ("Version", "DeleteMarker")]
    if texts.get("IsTruncated") != "true":
        return found, {}
    marker = texts["NextKeyMarker"]
    return found, {
        "key-marker": unquote_plus(marker) if escaped else marker,
        "version-id-marker": texts["NextVersionIdMarker"],
    }


def _complete(found: Sequence[KeptVersion], *, more: bool) -> tuple[list[KeptVersion], list[KeptVersion]]:
    """Splits versions: first those of objects of which all versions are listed, ordered by key with the newest first;
    then those of the last object, if `more` pages follow. Some servers list delete markers behind versions, whenever
    they were made."""
    ordered = sorted(found, key=lambda each: (each.key, not each.latest, -each.written_ms))
    last = ordered[-1].key if ordered and more else None
    return [each for each in ordered if each.key != last], [each for each in ordered if each.key == last]


def _version(element: "Element", escaped: bool) -> KeptVersion:
    """Returns the version, or delete marker, in an XML element of a listing. `escaped` is whether its key is escaped as
    in a URL. Raises `KeyError` if a part other than `IsLatest` is missing, and `ValueError` if one is malformed."""
    texts = {local_name(child): child.text or "" for child in element}
    version = Version(texts["ETag"]) if local_name(element) == "Version" else None
    key = unquote_plus(texts["Key"]) if escaped else texts["Key"]
    latest = texts.get("IsLatest") == "true"
    return KeptVersion(key, texts["VersionId"], version, iso_date_ms(texts["LastModified"]), latest)
