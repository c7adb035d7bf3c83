"""Keys of S3 stores without STS, which engines get as they are.

Such a key gives access to all of its prefix, and does not expire, whatever expiry the answer has. So an operator must
enable it explicitly, and the catalog vends it only if it owns the whole prefix. The keys are in a file:

    [{"prefix": "s3://sales", "opens-whole-prefix": true,
      "reader": {"access-key-id": "...", "secret-access-key": "..."}, "writer": {...}}]
"""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.json import JsonObject, JsonValue, MalformedJson, loads
from arco_catalog.state.locations import Location
from arco_catalog.vending.credential import StorageCredential
from arco_catalog.vending.errors import CredentialsRefused
from arco_catalog.vending.scope import Scope
from arco_catalog.vending.storage_config import AwsStorage
from storage_backends.lazy_dataclass import dataclass
from storage_backends.s3.signature import Credentials

MAX_BYTES = 1 << 20
"""The limit of a file of S3 keys in bytes."""

_CONSENT = "opens-whole-prefix"
_KEY_FIELDS = ("access-key-id", "secret-access-key")


@dataclass(frozen=True, slots=True)
class StaticKeys:
    """The static S3 keys of one prefix, a bucket or a folder: one for readers and one for writers, of which one may be
    None."""

    prefix: Location
    reader: Credentials | None
    writer: Credentials | None

    def key(self, *, write: bool) -> Credentials | None:
        """Returns the key to vend for reading, or for reading and writing (`write`): for writing the writer's, or the
        reader's if there is none; for reading the reader's only, None if there is none."""
        return self.writer or self.reader if write else self.reader


def parse_static_keys(body: bytes) -> tuple[StaticKeys, ...]:
    """Reads the keys in the content of a file of S3 keys. Raises `ValueError` if it is malformed or has two entries
    with the same prefix; the message quotes no key."""
    try:
        document = loads(body)
    except MalformedJson:
        raise ValueError("the file of S3 keys is not valid JSON") from None  # the error may quote it
    if not isinstance(document, list):
        raise ValueError("the file of S3 keys must hold a JSON array of entries")
    keys = tuple(_entry(entry, f"entry {number}") for number, entry in enumerate(document, 1))
    if len({each.prefix.normal for each in keys}) < len(keys):
        raise ValueError("the file of S3 keys has two entries with the same prefix")
    return keys


def longest_match(keys: Sequence[StaticKeys], location: Location) -> StaticKeys | None:
    """Returns the keys of the longest prefix that contains a location as written, without decoding; None if no prefix
    contains it."""
    around = [each for each in keys if location.written_below(each.prefix)]
    return max(around, key=lambda each: len(each.prefix.segments), default=None)


class StaticIssuer:
    """Vends the static keys of S3 stores, which are in a file. Answers have an expiry, so that clients request the keys
    again, and a principal that has lost the right is then refused. The first request in each half of a lifetime reads
    the file again, so keys are replaced without a restart."""

    def __init__(self, file: str, now_ms: Callable[[], int], lifetime_s: int) -> None:
        self._file = Path(file)
        self._now_ms = now_ms
        self._half_ms = lifetime_s * 1_000 // 2
        self._read: tuple[int, tuple[StaticKeys, ...]] | None = None

    def load(self) -> tuple[StaticKeys, ...]:
        """Reads the file of S3 keys and returns the keys; blocks. Raises `ValueError` for a malformed file or one
        larger than `MAX_BYTES`, and `OSError` for one that can't be read."""
        with self._file.open("rb") as opened:
            body = opened.read(MAX_BYTES + 1)
        if len(body) > MAX_BYTES:
            raise ValueError(f"the file of S3 keys is larger than {MAX_BYTES:,} bytes")
        return parse_static_keys(body)

    async def issue(
        self, config: AwsStorage, scope: Scope, owns: Callable[[Location], bool]
    ) -> tuple[StorageCredential, ...]:
        """Returns a credential for each folder of the scope of which the longest prefix in the file belongs to the
        catalog, by `owns`, and has a key for this access; none for other folders. Raises `CredentialsRefused` if the
        file can no longer be read, or is malformed now."""
        half = self._now_ms() // self._half_ms
        keys, expires_ms = await self._keys(half), (half + 2) * self._half_ms
        issued: list[StorageCredential] = []
        for location in scope.in_store("s3"):
            found = longest_match(keys, location)
            key = found.key(write=scope.write) if found is not None and owns(found.prefix) else None
            if key is not None:
                issued.append(_credential(config, location, key, expires_ms))
        return tuple(issued)

    async def _keys(self, half: int) -> tuple[StaticKeys, ...]:
        """Returns the keys in the operator's file, which a thread reads unless it was read already in `half`, the
        number of the present half of a lifetime. Raises `CredentialsRefused` if the file can't be read or is
        malformed."""
        if self._read is None or self._read[0] != half:
            try:
                self._read = half, await asyncio.to_thread(self.load)
            except (ValueError, OSError) as error:
                raise CredentialsRefused(
                    f"the file of S3 keys {self._file} cannot be read, or is malformed: {error}", "NoKeys"
                ) from error
        return self._read[1]


def _credential(config: AwsStorage, location: Location, key: Credentials, expires_ms: int) -> StorageCredential:
    """Returns a credential with a static key for a location. It has no refresh endpoint: with one, Iceberg's Java
    client requires a session token."""
    properties = {
        **config.client_properties,
        "s3.access-key-id": key.access_key,
        "s3.secret-access-key": key.secret_key,
        "s3.session-token-expires-at-ms": str(expires_ms),
    }
    return StorageCredential(location.uri, properties, expires_ms, None)


def _entry(entry: JsonValue, what: str) -> StaticKeys:
    """Reads an entry of the file of S3 keys; `what` names it in messages. Raises `ValueError`, which quotes no key, for
    a malformed one and for one without the operator's consent."""
    if not isinstance(entry, dict) or set(entry) - {"prefix", "reader", "writer", _CONSENT}:
        raise ValueError(
            f"{what} of the file of S3 keys is not an object, or has a field other than prefix, reader, writer and "
            f"{_CONSENT}"
        )
    if entry.get(_CONSENT) is not True:
        raise ValueError(
            f"{what} of the file of S3 keys needs '{_CONSENT}': true: a caller who may read one table below the prefix "
            "gets a key that opens all of it"
        )
    prefix = entry.get("prefix")
    try:
        location = Location.parse(prefix if isinstance(prefix, str) else "")
    except BadRequest as error:
        raise ValueError(f"{what} of the file of S3 keys: prefix: {error.message}") from error
    if location.scheme != "s3" or not location.authority:
        raise ValueError(
            f"{what} of the file of S3 keys: prefix must be s3://BUCKET or a folder, such as s3://BUCKET/sales"
        )
    if location.reserved:
        raise ValueError(f"{what} of the file of S3 keys: prefix must not be in a folder with the state of a catalog")
    reader, writer = (_key(entry, name, what) for name in ("reader", "writer"))
    if reader is None and writer is None:
        raise ValueError(f"{what} of the file of S3 keys has neither a reader nor a writer")
    return StaticKeys(location, reader, writer)


def _key(entry: JsonObject, name: str, what: str) -> Credentials | None:
    """Reads the key of a `reader` or `writer` (`name`) in an entry of the file of S3 keys; None without one. Raises
    `ValueError` for a malformed one."""
    found = entry.get(name)
    if found is None:
        return None
    texts = [found.get(field) for field in _KEY_FIELDS] if isinstance(found, dict) else []
    access, secret = texts if len(texts) == len(_KEY_FIELDS) else (None, None)
    valid = isinstance(found, dict) and set(found) == {*_KEY_FIELDS}
    if not valid or not isinstance(access, str) or not isinstance(secret, str) or not (access and secret):
        raise ValueError(
            f"{what} of the file of S3 keys: {name} must have {' and '.join(_KEY_FIELDS)} of an S3 store as "
            "texts that are not empty, and nothing else"
        )
    return Credentials(access, secret)
