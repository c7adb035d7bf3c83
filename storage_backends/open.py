"""Opens the store that a URL names, importing only what that store needs."""

from urllib.parse import unquote, urlsplit

from storage_backends.base import ObjectStore
from storage_backends.validation import is_key

FORMS = "file:/absolute/path, memory:, or s3://bucket/prefix"


def open_store(url: str) -> ObjectStore:
    """A new store for `file:/path`, `file:///path`, `memory:` (each its own) or `s3://bucket/prefix`.

    Nothing is read or made yet. Raises ValueError for any other URL.
    """
    parts = urlsplit(url)
    if parts.query or parts.fragment:
        raise ValueError(f"a store URL must not have a query or a fragment (escape ? as %3F and # as %23): {url!r}")
    match parts.scheme:
        case "file":
            return _open_local(url, parts.netloc, unquote(parts.path))
        case "memory":
            return _open_memory(url, parts.netloc + parts.path)
        case "s3":
            return _open_s3(url, parts.netloc, unquote(parts.path))
    raise ValueError(f"unsupported store URL {url!r}: expected {FORMS}")


def _open_local(url: str, host: str, path: str) -> ObjectStore:
    from storage_backends.local import LocalStore

    if host not in ("", "localhost"):
        raise ValueError(f"a file URL must not name a host (write file:/path or file:///path): {url!r}")
    if not path.startswith("/"):
        raise ValueError(f"a file URL must have an absolute path: {url!r}")
    return LocalStore(path)


def _open_memory(url: str, rest: str) -> ObjectStore:
    from storage_backends.memory import MemoryStore

    if rest:
        raise ValueError(f"a memory store has no name: write memory:, not {url!r}")
    return MemoryStore()


def _open_s3(url: str, bucket: str, path: str) -> ObjectStore:
    if not bucket:
        raise ValueError(f"an S3 URL must name a bucket: {url!r}")
    try:
        from storage_backends.s3 import S3Store
    except ModuleNotFoundError as error:
        raise ValueError(
            f"{url!r} needs the extra 's3' (httptools), pip install 'arco-catalog[s3]': {error}"
        ) from error
    prefix = path.strip("/")
    if prefix and not is_key(prefix):
        raise ValueError(
            f"the prefix of an S3 URL must not have an empty, '.' or '..' segment or a control character: {url!r}"
        )
    return S3Store(bucket, prefix)
