"""The files of the console, which `make console` builds into the folder `built` beside this module."""

import gzip
import hashlib
from collections.abc import Mapping
from pathlib import Path

from arco_catalog.http.console.clients import SignIn
from arco_catalog.http.console.headers import console_headers
from storage_backends.lazy_dataclass import dataclass

BUILT = Path(__file__).with_name("built")
INDEX = "index.html"

_MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
_PLACEHOLDER = b"""<!doctype html>
<html lang="en">
<title>Arco: the console is not built</title>
<h1>The console is not built</h1>
<p>Run <code>make console</code> in the checkout of the catalog, and start the server again. It needs Node.js and npm.
The catalog itself works without the console.</p>
</html>
"""


@dataclass(frozen=True, slots=True)
class StaticFile:
    """A file of the console: its content type, its bytes, these in gzip, and their entity tag with its quotes. The name
    of an `immutable` one changes with its content."""

    media_type: str
    body: bytes
    packed: bytes
    etag: str
    immutable: bool


@dataclass(frozen=True, slots=True)
class Console:
    """The files of the console by their names, apart from them the first page, the `headers` of each, and how people
    sign in."""

    files: Mapping[str, StaticFile]
    index: StaticFile
    headers: Mapping[str, str]
    sign_in: SignIn


def read_console(folder: Path = BUILT, sign_in: SignIn | None = None) -> Console:
    """Returns the built files in `folder` of the types that the console has, with the ways to sign in; None stands for
    no issuers. If there is no first page, an own one that explains how to build the console takes the place of it."""
    sign_in = sign_in or SignIn()
    found = sorted(folder.glob("*")) if folder.is_dir() else []
    files = {file.name: _static_file(file.name, file.read_bytes()) for file in found if file.suffix in _MEDIA_TYPES}
    index = files.pop(INDEX, None) or _static_file(INDEX, _PLACEHOLDER)
    return Console(files, index, console_headers(sign_in.origins), sign_in)


def _static_file(name: str, body: bytes) -> StaticFile:
    """Returns a file of the console as it is served, with the compressed form and the ETag."""
    etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    return StaticFile(
        _MEDIA_TYPES[Path(name).suffix], body, gzip.compress(body, mtime=0), etag, immutable=name != INDEX
    )
