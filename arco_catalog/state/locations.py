"""Locations of tables and files: reads them, compares them, and checks that the operator allows them.

Engines get a location as text, and only some of them decode it. So the catalog uses it as written to find the object,
and decoded to find overlaps. It rejects a location for which the two could be different folders: with an encoded slash
or backslash, or a level that decodes to `.` or `..` (docs/design/state.md#locations).
"""

import re
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property, lru_cache
from urllib.parse import unquote

from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.state.characters import first_control_character
from storage_backends.lazy_dataclass import dataclass

_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(//([^/]*))?(/.*)?", re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_FORBIDDEN = frozenset("\\?#")
_DOTS = frozenset((".", ".."))

MAX_BYTES = 900
"""The limit of a location in bytes. Keys have at most 1,024 bytes in every store."""
MAX_CHOSEN_BYTES = 640
"""The limit of a location that a client chooses, which leaves room for the names of tables and files below it."""

RESERVED_FOLDERS = frozenset({"_catalog", "_probe", "_realm", ".arco-store"})
"""The names of folders with a catalog's own state, this catalog's or another's. No file of a table may be in one, at
any depth. The comparison ignores case, as some file systems do."""

_SAME_STORE = {"s3a": "s3", "s3n": "s3", "abfs": "abfss"}
_UNSAFE_IN_SLUG = re.compile(r"[^A-Za-z0-9_-]+")


@dataclass(frozen=True)  # without slots: `normal` is cached
class Location:
    """The location of a folder or file: scheme, authority (bucket, or container and account) and path segments as
    written. A `collapsed` one was written with an empty level, or for a file in an object store with a level `.` or
    `..`: it may be compared, and is never made a key."""

    scheme: str
    authority: str
    segments: tuple[str, ...]
    collapsed: bool = False

    @classmethod
    def parse(cls, text: str) -> "Location":
        """Reads a location that a client sent. Raises `BadRequest` if it is not an absolute URI, is too long, has an
        ASCII control character or a backslash, in a file system a host other than `localhost`, elsewhere an empty level
        before the end, or could be another folder for an engine that decodes it, resolves `.` and `..`, or splits it at
        a query or fragment."""
        location = cls.parse_stored(text)
        if location.collapsed:
            raise BadRequest(
                f"Not a valid location: {text!r}: it has an empty level ('//'), which object stores do not collapse: "
                "write single slashes, and copy files that lie below an empty level to a location without one"
            )
        return location

    @classmethod
    def parse_stored(cls, text: str) -> "Location":
        """Reads a location that an earlier version may have accepted: one with an empty level is `collapsed`. Schemes
        with which engines name one store, such as s3a and s3, become one. Raises `BadRequest` for everything else that
        `parse` rejects."""
        # The length comes first, because repeated decoding takes time in the square of it.
        _check_length(text, MAX_BYTES)
        match = _URI.fullmatch(text)
        if forbidden := "".join(sorted(_FORBIDDEN.intersection(text))):
            raise BadRequest(f"Not a valid location: {text!r}: it must not contain any of {forbidden!r}")
        if _CONTROL.search(text):
            raise BadRequest(f"Not a valid location: {text!r}: it must not contain control characters")
        if match is None:
            example = f"file://{text}" if text.startswith("/") else "s3://bucket/path"
            raise BadRequest(f"Not a valid location: {text!r}: expected an absolute URI such as {example}")
        scheme = match[1].lower()
        path = match[4] or ""
        segments = _levels(path)
        is_encoded = "%" in path
        for segment in segments:
            decoded = fully_decoded(segment) if is_encoded else segment
            if decoded in (".", "..") or "/" in decoded or "\\" in decoded or _CONTROL.search(decoded):
                raise BadRequest(
                    f"Not a valid location: {text!r}: the segment {segment!r} is not allowed: it is or decodes to '.', "
                    "'..' or a name with a slash, backslash or control character"
                )
        authority = match[3] or ""
        if scheme == "file" and authority not in ("", "localhost"):
            raise BadRequest(f"Not a valid location: {text!r}: a file location must not name a host")
        scheme = _SAME_STORE.get(scheme, scheme)
        if scheme == "abfss":
            authority = authority.lower()  # a container and a host, both of which ignore case
        return cls(scheme, "" if scheme == "file" else authority, segments, _is_collapsed(scheme, path.rstrip("/")))

    @classmethod
    def of_file(cls, text: str) -> "Location | None":
        """Reads the location of a table's file as written, without decoding, because engines write encoded slashes and
        other escapes into the names of partitions. None for a text that is no URI, has control characters or no path
        or, in a file system, has `.` or `..`. In an object store a name with an empty level, `.` or `..` is
        `collapsed`."""
        match = _URI.fullmatch(text)
        if match is None or _CONTROL.search(text):
            return None
        path = match[4] or ""
        segments = _levels(path)
        scheme = _SAME_STORE.get(match[1].lower(), match[1].lower())
        if not segments or (scheme == "file" and not _DOTS.isdisjoint(segments)):
            return None
        authority = match[3] or ""
        if scheme == "abfss":
            authority = authority.lower()
        return cls(scheme, "" if scheme == "file" else authority, segments, _is_collapsed(scheme, path))

    @classmethod
    def of_normal(cls, normal: str) -> "Location":
        """Returns the location with this normal form, as entries store it. It is not checked: that was done when it
        was parsed, and the decoded form may have characters that no client may send."""
        scheme, _, rest = normal.partition("://")
        authority, _, path = rest.partition("/")
        return cls(scheme, authority, _levels(path))

    @property
    def path(self) -> str:
        """The location's path as written, without empty levels and slashes at its ends: unless it is `collapsed` or in
        a file system, the key of the object in its bucket."""
        return "/".join(self.segments)

    @property
    def uri(self) -> str:
        """The location's URI in the form that every engine reads: `file:///...` for local files."""
        return f"{self.scheme}://{self.authority}/{self.path}"

    @cached_property
    def normal(self) -> str:
        """The decoded form of the location's URI, by which locations are compared."""
        return f"{self.scheme}://{self.authority}/{'/'.join(fully_decoded(segment) for segment in self.segments)}"

    def inside(self, folder: "Location") -> bool:
        """Whether this location is `folder` or lies in it, at any depth, by the decoded forms."""
        return f"{self.normal}/".startswith(folder.normal.rstrip("/") + "/")

    def written_below(self, folder: "Location") -> bool:
        """Whether this location is `folder` or is inside it as written, without decoding. The store of a file is found
        by this. It implies `inside`."""
        written = (self.scheme, self.authority, self.segments[: len(folder.segments)])
        return written == (folder.scheme, folder.authority, folder.segments)

    @property
    def has_dots(self) -> bool:
        """Whether a level of the location, decoded or not, is `.` or `..`: an object store takes it by its letters, and
        other readers resolve it."""
        return any(fully_decoded(segment) in _DOTS for segment in self.segments)

    @property
    def reserved(self) -> bool:
        """Whether a level of the location, decoded and in any case of letters, is in `RESERVED_FOLDERS`: then only the
        records of a catalog or realm may have it, of this one or another."""
        return any(map(is_reserved, self.segments))

    def named_after(self, entity: str) -> bool:
        """Whether the location's last segment ends in `-` and this entity's id, as in the location that the catalog
        generates for the entity."""
        return bool(self.segments) and self.segments[-1].endswith(f"-{entity}")

    def below(self, *names: str) -> "Location":
        """Returns the location with the levels of these names added at its end. `names` may contain slashes."""
        further = tuple(segment for name in names for segment in _levels(name))
        return Location(self.scheme, self.authority, self.segments + further, self.collapsed)

    def around(self) -> Iterator[str]:
        """Yields the normal forms of all folders that contain this location, from its parent up to the bucket; none for
        a bucket."""
        normal, bucket = self.normal, len(f"{self.scheme}://{self.authority}/")
        end = len(normal)
        while end > bucket:  # an encoded slash in a name adds a level
            end = normal.rindex("/", 0, end)
            yield normal[: max(end, bucket)]

    def inside_any(self, folders: Collection[str]) -> bool:
        """Whether this location is one of these paths, given by their normal forms, or is inside one. For a set the
        time depends only on the depth of this location."""
        return self.normal in folders or any(folder in folders for folder in self.around())


def outermost(locations: Sequence[Location]) -> list[Location]:
    """Returns the locations that are inside none of the others, in their order; of equal ones the first."""
    # In sorted order the locations inside a folder follow it directly.
    folders = sorted((f"{location.normal.rstrip('/')}/", place) for place, location in enumerate(locations))
    kept: list[int] = []
    last: str | None = None
    for folder, place in folders:
        if last is None or not folder.startswith(last):
            kept.append(place)
            last = folder
    return [locations[place] for place in sorted(kept)]


def _levels(path: str) -> tuple[str, ...]:
    """Returns the levels of a path, without empty ones."""
    return tuple(filter(None, path.split("/")))


def _is_collapsed(scheme: str, path: str) -> bool:
    """Whether the path of an object has an empty level, or the level `.` or `..`. False for a path in a file system,
    and for an empty path."""
    if scheme == "file" or not path:
        return False
    levels = path.removeprefix("/").split("/")
    return "" in levels or not _DOTS.isdisjoint(levels)


def _check_length(text: str, limit: int) -> None:
    """Raises `BadRequest` for a location of more than `limit` bytes in UTF-8."""
    size = len(text.encode())
    if size > limit:
        raise BadRequest(
            f"Not a valid location: {text[:100]!r}... is {size} bytes long, and at most {limit} are allowed, a fixed "
            "limit: choose a shorter one"
        )


def fully_decoded(segment: str) -> str:
    """Decodes the percent-encoding of a path segment repeatedly, until it no longer changes. A check of the result
    covers readers that decode any number of times."""
    if "%" not in segment:
        return segment
    for _ in range(len(segment)):
        decoded = unquote(segment)
        if decoded == segment:
            break
        segment = decoded
    return segment


def refuse_reserved(location: Location) -> None:
    """Raises `BadRequest` for a location that only the records of a catalog or realm may have, of this one or
    another."""
    refuse_reserved_path(location.uri)


def refuse_reserved_path(path: str) -> None:
    """Raises `BadRequest` for a path of which a level, decoded and in any case of letters, is in `RESERVED_FOLDERS`,
    which only the records of a catalog or realm may have. A level that is too long for any store is ignored. The path
    may have any form, such as other catalogs write into metadata logs."""
    for segment in path.split("/"):
        if len(segment) <= MAX_BYTES and _is_reserved(segment):
            raise BadRequest(
                f"Location {path[:MAX_BYTES]} is not allowed, also not in the log of a metadata file to register: "
                f"folders named {segment} hold a catalog's own state, and no files of tables"
            )


def is_reserved(segment: str) -> bool:
    """Whether a path segment, decoded any number of times and in any case of letters, is in `RESERVED_FOLDERS`, below
    which are the records of a catalog or realm. False for a segment that is too long for any store."""
    return len(segment) <= MAX_BYTES and _is_reserved(segment)


@lru_cache(4_096)  # a table's files are in few folders, which are checked for each file
def _is_reserved(segment: str) -> bool:
    """Whether a level of a path is in `RESERVED_FOLDERS`, however it is encoded and in any case of letters."""
    return fully_decoded(segment).casefold() in RESERVED_FOLDERS


def slug(name: str) -> str:
    """Returns a folder name for `name` of at most 64 characters, which every engine and file system accepts: letters,
    digits, `_` and `-`, with one `_` for a run of others, and without `_` at the ends. It is `_` if none is left.
    Different names may get the same, so the caller must append a unique part."""
    return _UNSAFE_IN_SLUG.sub("_", name)[:64].strip("_") or "_"


@dataclass(frozen=True, slots=True)
class AllowedLocations:
    """The locations that tables of a catalog may have: inside one of `prefixes`, but not in or around the folders in
    `forbidden`, which have a catalog's state. `advice` is the part of an error that explains how to allow other
    locations."""

    prefixes: Sequence[Location]
    forbidden: Sequence[Location]
    advice: str = "set --allowed-location of the server or command, or ARCO_ALLOWED_LOCATIONS"

    def check(self, text: str) -> Location:
        """Reads a location, and returns it if a table may have it. Raises `BadRequest` if it is not valid, too long,
        reserved, outside of the allowed prefixes, or inside or around a catalog's state."""
        _check_length(text, MAX_CHOSEN_BYTES)
        location = Location.parse(text)
        control = first_control_character(text) or first_control_character(location.normal)
        if control is not None:
            raise BadRequest(f"Not a valid location: {text!r}: the character {control} is not allowed")
        refuse_reserved(location)
        if not any(location.written_below(prefix) for prefix in self.prefixes):
            allowed = ", ".join(dict.fromkeys(prefix.uri for prefix in self.prefixes))
            raise BadRequest(
                f"Location {text} is outside the allowed locations: {allowed}. To allow others, {self.advice}"
            )
        if self._touches_state(location):
            raise BadRequest(f"Location {text} overlaps with a catalog's own state: choose a location beside that")
        return location

    def own(self, folder: Location) -> bool:
        """Whether the catalog may use all of a folder: it is allowed, and neither inside nor around a catalog's
        state."""
        within = any(folder.written_below(prefix) for prefix in self.prefixes)
        return within and not folder.reserved and not self._touches_state(folder)

    def _touches_state(self, location: Location) -> bool:
        """Whether a location is inside one of the `forbidden` folders or around one."""
        return any(location.inside(state) or state.inside(location) for state in self.forbidden)
