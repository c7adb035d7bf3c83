"""Locations that tables may have: parsed, compared after decoding, and kept inside what the operator allowed.

A location reaches engines as text, and engines differ in whether they decode it. So it is read both ways: as written to
find the object, and decoded to judge what it may overlap; a location for which the two could part (an encoded slash or
dot) is refused (docs/design/state.md#locations).
"""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from urllib.parse import unquote

from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.state.characters import first_control_character

_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(//([^/]*))?(/.*)?", re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_FORBIDDEN = frozenset("\\?#")
_DOTS = frozenset((".", ".."))

MAX_BYTES = 900
"""Of any location: keys end at 1,024 bytes in every store."""
MAX_CHOSEN_BYTES = 640
"""Of one that a client chooses: tables of a namespace, and files of a table, have to find room below it."""

RESERVED_FOLDERS = frozenset({"_catalog", "_probe", "_realm", ".arco-store"})
"""Folders of a catalog's own state, of this catalog's or of any other: nothing of a table lies in one, wherever it is.
Compared without regard to case, as some file systems do."""

_SAME_STORE = {"s3a": "s3", "s3n": "s3", "abfs": "abfss"}
_UNSAFE_IN_SLUG = re.compile(r"[^A-Za-z0-9_-]+")


@dataclass(frozen=True)  # without slots: `normal` is cached
class Location:
    """A folder or file: scheme, authority (bucket, or container and account) and path segments as written. A
    `collapsed` one was written with levels that `segments` lack: it may be compared, and is never made a key."""

    scheme: str
    authority: str
    segments: tuple[str, ...]
    collapsed: bool = False

    @classmethod
    def parse(cls, text: str) -> "Location":
        """Reads a location that a client sent. Raises `BadRequest` for what is not an absolute URI, for one with an
        empty level, and for anything that could mean another folder to somebody who decodes it, or who cuts it at a
        query or a fragment."""
        location = cls.parse_stored(text)
        if location.collapsed:
            raise BadRequest(
                f"Not a valid location: {text!r}: it has an empty level ('//'), which object stores do not collapse: "
                "write single slashes, and copy files that lie below an empty level to a location without one"
            )
        return location

    @classmethod
    def parse_stored(cls, text: str) -> "Location":
        """Reads a location that an earlier version may have accepted: with an empty level it is `collapsed`. Otherwise
        as `parse`."""
        # Before anybody decodes it: until nothing changes, that takes time in the square of the length.
        _check_length(text, MAX_BYTES)
        match = _URI.fullmatch(text)
        if forbidden := "".join(sorted(_FORBIDDEN.intersection(text))):
            raise BadRequest(f"Not a valid location: {text!r}: it must not contain any of {forbidden!r}")
        if match is None or _CONTROL.search(text):
            raise BadRequest(f"Not a valid location: {text!r}: expected an absolute URI such as s3://bucket/path")
        scheme = match[1].lower()
        path = match[4] or ""
        segments = _levels(path)
        is_encoded = "%" in path
        for segment in segments:
            decoded = fully_decoded(segment) if is_encoded else segment
            if decoded in (".", "..") or "/" in decoded or "\\" in decoded or _CONTROL.search(decoded):
                raise BadRequest(f"Not a valid location: {text!r}: the segment {segment!r} is not allowed")
        authority = match[3] or ""
        if scheme == "file" and authority not in ("", "localhost"):
            raise BadRequest(f"Not a valid location: {text!r}: a file location has no host")
        scheme = _SAME_STORE.get(scheme, scheme)
        if scheme == "abfss":
            authority = authority.lower()  # a container and a host: neither tells cases apart
        return cls(scheme, "" if scheme == "file" else authority, segments, _is_collapsed(scheme, path.rstrip("/")))

    @classmethod
    def of_file(cls, text: str) -> "Location | None":
        """The object that a file of a table is, by its letters: engines put encoded slashes and more into the names of
        partitions, and never decode them. None for what names no object, or steps out of its folder. Where a store has
        more levels than a path, a name with an empty one, with `.` or with `..` is `collapsed`."""
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
        """The location that has this normal form, as entries keep it. It was judged when it was parsed; decoded, it may
        hold what no client may send."""
        scheme, _, rest = normal.partition("://")
        authority, _, path = rest.partition("/")
        return cls(scheme, authority, _levels(path))

    @property
    def path(self) -> str:
        """The path as written, without slashes at its ends: the object's key in its bucket."""
        return "/".join(self.segments)

    @property
    def uri(self) -> str:
        """The one form that every engine reads: `file:///...` for local files."""
        return f"{self.scheme}://{self.authority}/{self.path}"

    @cached_property
    def normal(self) -> str:
        """The decoded form, by which locations are compared."""
        return f"{self.scheme}://{self.authority}/{'/'.join(fully_decoded(segment) for segment in self.segments)}"

    def inside(self, folder: "Location") -> bool:
        """Whether this is `folder` or lies in it."""
        return f"{self.normal}/".startswith(folder.normal.rstrip("/") + "/")

    def written_below(self, folder: "Location") -> bool:
        """Whether this is `folder` or lies in it by its letters alone, which is how a file's store is found. Whatever
        does is `inside`, too."""
        written = (self.scheme, self.authority, self.segments[: len(folder.segments)])
        return written == (folder.scheme, folder.authority, folder.segments)

    @property
    def has_dots(self) -> bool:
        """Whether a level, decoded or not, is `.` or `..`: an object store takes it by its letters, and other readers
        resolve it."""
        return any(fully_decoded(segment) in _DOTS for segment in self.segments)

    @property
    def reserved(self) -> bool:
        """Whether it is, or lies in, a catalog's own state, this one's or another's."""
        return any(map(is_reserved, self.segments))

    def named_after(self, entity: str) -> bool:
        """Whether its last segment ends in an entity's id, as that of the folder which the catalog makes for it."""
        return bool(self.segments) and self.segments[-1].endswith(f"-{entity}")

    def below(self, *names: str) -> "Location":
        """A location further down. `names` may hold slashes."""
        further = tuple(segment for name in names for segment in _levels(name))
        return Location(self.scheme, self.authority, self.segments + further, self.collapsed)

    def around(self) -> Iterator[str]:
        """Every folder that holds this one, by its normal form, nearest first, the bucket itself last."""
        normal, bucket = self.normal, len(f"{self.scheme}://{self.authority}/")
        end = len(normal)
        for _ in self.segments:
            end = normal.rindex("/", 0, end)
            yield normal[: max(end, bucket)]

    def inside_any(self, folders: Collection[str]) -> bool:
        """Whether this is one of these folders, given by their normal forms, or lies in one. However many there are, it
        takes as long as this location is deep."""
        return self.normal in folders or any(folder in folders for folder in self.around())


def outermost(locations: Sequence[Location]) -> list[Location]:
    """Those that lie in none of the others, in their order; of equal ones the first. Sorted by their letters, what lies
    in a folder follows it."""
    folders = sorted((f"{location.normal.rstrip('/')}/", place) for place, location in enumerate(locations))
    kept: list[int] = []
    last: str | None = None
    for folder, place in folders:
        if last is None or not folder.startswith(last):
            kept.append(place)
            last = folder
    return [locations[place] for place in sorted(kept)]


def _levels(path: str) -> tuple[str, ...]:
    return tuple(segment for segment in path.split("/") if segment)


def _is_collapsed(scheme: str, path: str) -> bool:
    """Whether an object store has another object at this path than at its levels joined. A file system does not."""
    if scheme == "file" or not path:
        return False
    levels = path.removeprefix("/").split("/")
    return "" in levels or not _DOTS.isdisjoint(levels)


def _check_length(text: str, most: int) -> None:
    size = len(text.encode())
    if size > most:
        raise BadRequest(
            f"Not a valid location: {text[:100]!r}... is {size} bytes long, and at most {most} are allowed"
        )


def fully_decoded(segment: str) -> str:
    """Decodes a segment until nothing changes. A check of the result holds for every reader, however often it
    decodes."""
    if "%" not in segment:
        return segment
    for _ in range(len(segment)):
        decoded = unquote(segment)
        if decoded == segment:
            break
        segment = decoded
    return segment


def refuse_reserved(location: Location) -> None:
    """Raises `BadRequest` for what lies in a catalog's own state, this one's or another's."""
    refuse_reserved_path(location.uri)


def refuse_reserved_path(path: str) -> None:
    """The same for a path of any form, such as other catalogs write into metadata logs."""
    for segment in path.split("/"):
        if len(segment) <= MAX_BYTES and _is_reserved(segment):
            raise BadRequest(f"Not allowed: {path[:MAX_BYTES]}: folders named {segment} hold a catalog's own state")


def is_reserved(segment: str) -> bool:
    """Whether a folder of this name, however often it is decoded, is a catalog's own state. One that is too long for
    any store is no folder."""
    return len(segment) <= MAX_BYTES and _is_reserved(segment)


@lru_cache(4_096)  # the folders of a table's files are asked for again and again
def _is_reserved(segment: str) -> bool:
    return fully_decoded(segment).casefold() in RESERVED_FOLDERS


def slug(name: str) -> str:
    """A folder name that every engine and file system takes as it is. Not unique: what follows it must be."""
    return _UNSAFE_IN_SLUG.sub("_", name)[:64].strip("_") or "_"


@dataclass(frozen=True, slots=True)
class AllowedLocations:
    """Where tables may live: inside one of `prefixes`, and never in or around a catalog's own state. `advice` tells how
    other places are allowed."""

    prefixes: Sequence[Location]
    forbidden: Sequence[Location]
    advice: str = "set --allowed-location of arco serve, or ARCO_ALLOWED_LOCATIONS of a function"

    def check(self, text: str) -> Location:
        """The parsed location. Raises `BadRequest` if a table may not be there."""
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
            raise BadRequest(f"Location {text} is reserved for the catalog's own files")
        return location

    def own(self, folder: Location) -> bool:
        """Whether all of a folder is the catalog's to use, so that nothing of another's and no state lies in it."""
        within = any(folder.written_below(prefix) for prefix in self.prefixes)
        return within and not folder.reserved and not self._touches_state(folder)

    def _touches_state(self, location: Location) -> bool:
        return any(location.inside(state) or state.inside(location) for state in self.forbidden)
