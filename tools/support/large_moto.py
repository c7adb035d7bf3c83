"""moto in this process, for a bucket of a million objects.

moto goes through the whole bucket for each page of a listing, and to send it so many objects takes an hour. Here keys
are kept in order, and objects are put straight into it.
"""

import gc
import threading
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice

from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from moto.s3 import models
from moto.s3.models import FakeBucket, FakeKey, S3Backend, s3_backends
from moto.s3.utils import _VersionedKeyStore
from werkzeug.serving import make_server

from tools.support.moto_server import QuietHandler, make_atomic
from tools.support.s3_servers import S3Server


class OrderedKeys(_VersionedKeyStore):
    """The keys of a bucket, which are kept in order from the first listing on."""

    def __init__(self) -> None:
        super().__init__()
        self._order: list[str] | None = None

    def setlist(self, key: str, list_: object) -> None:
        """Puts an object."""
        if self._order is not None and key not in self:
            insort(self._order, key)
        super().setlist(key, list_)

    def pop(self, key: str) -> None:  # type: ignore[override]  # as moto has it
        """Deletes an object."""
        super().pop(key)
        if self._order is not None:
            del self._order[bisect_left(self._order, key)]

    def behind(self, prefix: str, after: str | None) -> Iterator[str]:
        """Keys with a prefix, in order, from behind this one on."""
        if self._order is None:
            self._order = sorted(self)
        place = max(bisect_left(self._order, prefix), bisect_right(self._order, after or ""))
        while place < len(self._order) and self._order[place].startswith(prefix):
            yield self._order[place]
            place += 1


def page_of(
    self: S3Backend,
    bucket: FakeBucket,
    prefix: str | None,
    delimiter: str | None,
    continuation_token: str | None,
    start_after: str | None,
    max_keys: int,
) -> tuple[list[FakeKey], bool, str | None]:
    """A page of a listing without folders, for what the page costs. Stands for moto's method of the same arguments."""
    assert delimiter is None
    assert isinstance(bucket.keys, OrderedKeys)
    after = self._pagination_tokens.get(continuation_token or "") or start_after
    names = islice(bucket.keys.behind(prefix or "", after), max_keys + 1)
    found, truncated, token = self._truncate_result([bucket.keys[name] for name in names], max_keys)
    return found, truncated, token


@dataclass(frozen=True)
class LargeMoto:
    """The server, and its only bucket."""

    server: S3Server
    bucket: str

    def put(self, key: str, body: bytes, modified_s: float) -> None:
        """Puts an object that was last modified at this time, in seconds since 1970."""
        made = s3_backends[DEFAULT_ACCOUNT_ID]["aws"].put_object(self.bucket, key, body, disable_notification=True)
        made.last_modified = datetime.fromtimestamp(modified_s, UTC).replace(tzinfo=None)

    def settle(self) -> None:
        """To be called after many objects were put: the garbage collector need not go through them again."""
        gc.collect()
        gc.freeze()


@contextmanager
def large_moto(bucket: str) -> Iterator[LargeMoto]:
    """moto with an empty bucket. It changes moto for the whole process: not for tests beside others."""
    make_atomic()
    setattr(models, "_VersionedKeyStore", OrderedKeys)  # noqa: B010  mypy knows no such name there
    S3Backend.list_objects_v2 = page_of  # type: ignore[method-assign, assignment]
    application = DomainDispatcherApplication(create_backend_app)
    with make_server("127.0.0.1", 0, application, threaded=True, request_handler=QuietHandler) as listening:
        threading.Thread(target=listening.serve_forever, daemon=True).start()
        server = S3Server(f"http://127.0.0.1:{listening.server_port}")
        server.make_bucket(bucket)
        try:
            yield LargeMoto(server, bucket)
        finally:
            listening.shutdown()
