"""The catalog inside another Python program: as an ASGI app, or served on a free port of this machine.

Serving needs `uvicorn` and `httptools`: install the extra 'serve' of arco-catalog.

Examples:
    An app of one's own event loop, which any ASGI server runs:

    >>> import asyncio
    >>> async def main():
    ...     async with open_app("memory:", warehouse="lake") as app:
    ...         return type(app).__name__
    >>> asyncio.run(main())
    'App'

    A server in a thread, for programs and tests that speak HTTP:

    >>> import json
    >>> from urllib.request import urlopen
    >>> with serving("memory:", warehouse="lake") as server:
    ...     with urlopen(f"{server.uri}/v1/config?warehouse=lake", timeout=30) as answer:
    ...         overrides = json.load(answer)["overrides"]
    >>> overrides["prefix"]
    'lake'

    `RunningCatalog.settings` is what PyIceberg's `load_catalog` takes:

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder, serving(f"file:{folder}/lake") as server:
    ...     sorted(server.settings)
    ['type', 'uri', 'warehouse']
"""

import asyncio
import os
import socket
import threading
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

from arco_catalog.config.parsing import parse_warehouse
from arco_catalog.http.app import App, create_app
from arco_catalog.http.options import HttpOptions
from arco_catalog.operations.open import long_lived, open_catalog
from arco_catalog.protocol.catalog import Settings
from arco_catalog.state.runtime import SystemRuntime
from storage_backends.lazy_dataclass import dataclass
from storage_backends.open import canonical_url, opener_in

if TYPE_CHECKING:
    import uvicorn

__all__ = ["RunningCatalog", "open_app", "serving"]

GRACE_SECONDS = 30
"""How long requests under way may take once the server is to stop; the server then drops them."""

_LOCAL = HttpOptions(health=True, allowed_hosts=())
"""As `arco serve` on loopback: web pages of a browser on this machine are refused."""


@dataclass(frozen=True, slots=True)
class RunningCatalog:
    """A catalog that `serving` serves over HTTP while the context lasts: the URL of the server on this machine (`uri`),
    the name of the one warehouse, and the URL of the store as the caller gave it."""

    uri: str
    warehouse: str
    store: str

    @property
    def settings(self) -> Mapping[str, str]:
        """The properties of a REST catalog, as PyIceberg spells them: `load_catalog("arco", **settings)`. For a store
        in memory they also name the class by which PyIceberg reads files."""
        settings = {"type": "rest", "uri": self.uri, "warehouse": self.warehouse}
        # PyIceberg warns of locations in memory unless it is told how to read files, of which there are none.
        no_files = {"py-io-impl": "pyiceberg.io.pyarrow.PyArrowFileIO"} if self.store.startswith("memory:") else {}
        return settings | no_files


@asynccontextmanager
async def open_app(
    store: str,
    *,
    warehouse: str = "arco",
    allowed_locations: Sequence[str] = (),
    http: HttpOptions | None = None,
    environment: Mapping[str, str] | None = None,
) -> AsyncIterator[App]:
    """Yields an ASGI app that serves one warehouse of the store at a URL, and closes the store with the context.

    A store in S3, Google Cloud or Azure is configured by the `AWS_*`, `GOOGLE_*` or `AZURE_*` variables in
    `environment`, None being that of this process: apps over different accounts may share one. Tables may also be at
    the `allowed_locations`, outside of the store. Without `http` the default options apply, which do not refuse web
    pages of a browser.

    The app authenticates no callers and queries no policy: every request may do everything. Over a store that ignores
    conditional writes it is read-only. Raises `ValueError` for an invalid URL or warehouse, `ValueError` or
    `BadRequest` for an invalid location, and `storage_backends.StoreError` if the store does not answer.
    """
    settings = Settings(parse_warehouse(warehouse))
    known = os.environ if environment is None else environment
    url, *allowed = (canonical_url(url, known) for url in (store, *allowed_locations))
    opened = await open_catalog(settings, url, allowed, SystemRuntime(), opener_in(known))
    async with long_lived(opened) as catalog:
        yield create_app({warehouse: catalog}, http)


@contextmanager
def serving(
    store: str,
    *,
    warehouse: str = "arco",
    allowed_locations: Sequence[str] = (),
    http: HttpOptions | None = None,
) -> Iterator[RunningCatalog]:
    """Serves one warehouse on a free port of 127.0.0.1, from a thread of this process, until the context ends; requests
    under way then have `GRACE_SECONDS` to finish.

    Without `http`, web pages of a browser on this machine are refused, as by `arco serve` on loopback, and `/health`
    answers. Raises at the start what `open_app` raises, and `ModuleNotFoundError` without the extra `serve`; raises at
    the end of the context the error by which the server failed before.
    """
    with _listener() as listener:
        server = _Server(listener, store, warehouse, allowed_locations, _LOCAL if http is None else http)
        thread = threading.Thread(target=server.run, name="arco-catalog", daemon=True)
        thread.start()
        server.ready.result()
        try:
            yield RunningCatalog(f"http://127.0.0.1:{listener.getsockname()[1]}", warehouse, store)
        finally:
            server.stop()
            thread.join()
        if server.failure is not None:
            raise server.failure


def _listener() -> socket.socket:
    """Returns a socket that listens on a free port of 127.0.0.1.

    Its protocol is named since asyncio sends small answers at once (TCP_NODELAY) on connections of such sockets alone:
    the second part of an answer would wait 40 ms for the client's acknowledgement of the first."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
    except OSError:
        listener.close()
        raise
    return listener


class _Server:
    """uvicorn in a thread of its own. `ready` is completed, with None, once the store was opened, or has the error why
    it was not."""

    def __init__(
        self, listener: socket.socket, store: str, warehouse: str, allowed: Sequence[str], http: HttpOptions
    ) -> None:
        self.ready: Future[None] = Future()
        self.failure: BaseException | None = None
        """The error that ended the thread after it was ready; None while it runs, and if `stop` ended it."""
        self._listener = listener
        self._where = store, warehouse, allowed
        self._http = http
        self._server: uvicorn.Server | None = None

    def run(self) -> None:
        """Opens the catalog and serves it until `stop`: the thread's work. Hands every failure to the other thread, by
        `ready`, or by `failure` if it was ready before."""
        try:
            asyncio.run(self._serve())
        except BaseException as error:
            if self.ready.done():
                self.failure = error
            else:
                self.ready.set_exception(error)

    def stop(self) -> None:
        """Makes the server stop after requests under way, at the latest after `GRACE_SECONDS`. Returns at once; the
        caller joins the thread."""
        if self._server is not None:
            self._server.should_exit = True

    async def _serve(self) -> None:
        """Opens the catalog, completes `ready` with None once it is open, and serves it by uvicorn until the server is
        stopped; errors are not given to `ready` here. Raises `ModuleNotFoundError` without uvicorn, and the errors of
        `open_app`."""
        try:
            import uvicorn
        except ModuleNotFoundError as error:
            message = f"{error.name} is not installed: install the extra 'serve' of arco-catalog"
            raise ModuleNotFoundError(message, name=error.name) from error
        store, warehouse, allowed = self._where
        async with open_app(store, warehouse=warehouse, allowed_locations=allowed, http=self._http) as app:
            config = uvicorn.Config(
                app,
                http="httptools",
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=GRACE_SECONDS,
            )
            self._server = uvicorn.Server(config)
            self.ready.set_result(None)  # the listener queues whatever comes before uvicorn accepts it
            await self._server.serve([self._listener])
