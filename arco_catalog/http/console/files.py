"""The files of the console, which `make console` builds into the folder `built` beside this module."""

import gzip
import hashlib
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

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


@dataclass(frozen=True)
class StaticFile:
    """A file of the console: its content type and its bytes. The name of an `immutable` one changes with its
    content."""

    media_type: str
    body: bytes
    immutable: bool

    @cached_property
    def etag(self) -> str:
        """The entity tag of the bytes, with its quotes."""
        return f'"{hashlib.sha256(self.body).hexdigest()[:32]}"'

    @cached_property
    def packed(self) -> bytes:
        """The bytes in gzip."""
        return gzip.compress(self.body, mtime=0)


@dataclass(frozen=True, slots=True)
class Console:
    """The files of the console by their names, and the first page."""

    files: Mapping[str, StaticFile]
    index: StaticFile


def read_console(folder: Path = BUILT) -> Console:
    """Returns the built files in `folder`. If there are none, the console is one page with how to build it."""
    found = sorted(folder.glob("*")) if folder.is_dir() else []
    files = {file.name: _read(file) for file in found if file.suffix in _MEDIA_TYPES}
    index = files.pop(INDEX, None) or StaticFile(_MEDIA_TYPES[".html"], _PLACEHOLDER, immutable=False)
    return Console(files, index)


def _read(file: Path) -> StaticFile:
    static = StaticFile(_MEDIA_TYPES[file.suffix], file.read_bytes(), immutable=file.name != INDEX)
    _ = static.etag, static.packed  # computed at the start of the server, not in a request
    return static
