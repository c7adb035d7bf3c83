"""The file of a backup: a tar archive, packed by gzip, that is written and read from its beginning to its end.

The first member describes the catalog or realm. Then come stored objects by their keys, in the order in which they were
read; of an object that was read again the last copy counts. The last member has their number and a digest: an archive
without it is incomplete.
"""

import asyncio
import hashlib
import io
import os
import tarfile
import zlib
from collections.abc import AsyncGenerator, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import IO

from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.json import JsonObject, MalformedJson, dumps, loads
from arco_catalog.state.fields import integer, mapping, optional_text

FORMAT = 1
FIRST, LAST, OBJECTS = "arco-backup.json", "arco-backup-complete.json", "objects/"
AT_ONCE = 64
"""Members that are read in one step."""


@dataclass(frozen=True, slots=True)
class Member:
    """An object in the archive of a backup: the key below the root of the backup, the bytes, and the time at which the
    store wrote it, in milliseconds since 1970, of which the archive keeps whole seconds; 0 for HEAD."""

    key: str
    body: bytes
    written_ms: int = 0


class ArchiveWriter:
    """Writes the archive of a backup to a partial file, and renames it when it is complete. Methods raise `OSError`."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._partial = file.with_name(f"{file.name}.partial")
        self._raw: IO[bytes] | None = None
        self._tar: tarfile.TarFile | None = None
        self._digest = hashlib.sha256()
        self._again: dict[str, int] = {}
        self.objects = 0
        self.bytes = 0

    def begin(self, first: JsonObject) -> None:
        """Opens the partial file, in place of one that an interrupted backup left, and writes the first member,
        `first`, which describes the catalog. Raises `FileExistsError` if the archive exists, and `FileNotFoundError` if
        its folder does not."""
        if self._file.exists():
            raise FileExistsError(f"{self._file} exists: remove it, or write the archive to another file")
        if not self._file.parent.is_dir():
            raise FileNotFoundError(f"there is no folder {self._file.parent} to write {self._file.name} to: make it")
        self._raw = os.fdopen(os.open(self._partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb")
        self._tar = tarfile.open(fileobj=self._raw, mode="w|gz", format=tarfile.PAX_FORMAT)  # noqa: SIM115 it is written to until the end
        self._add(FIRST, dumps({**first, "format": FORMAT}, sort_keys=True), 0)

    async def add(self, members: Sequence[Member], *, again: bool = False) -> None:
        """Adds objects to the archive. `again` is whether the archive already has a previous copy of each."""
        await asyncio.to_thread(self._add_all, members, again)

    async def complete(self, summary: JsonObject) -> None:
        """Writes the last member with this summary, and renames the partial file to the archive's path. Raises
        `FileExistsError` if there is a file by now, and other errors of `OSError`."""
        await asyncio.to_thread(self._complete, summary)

    def abandon(self) -> None:
        """Closes and removes the partial file. Does nothing before `begin`, or if `complete` has written all of the
        file: the partial file is then left, even if it could not be renamed."""
        if self._raw is None or self._tar is None:
            return
        try:
            self._tar.close()
        finally:
            self._raw.close()
            self._partial.unlink(missing_ok=True)

    def _add_all(self, members: Sequence[Member], again: bool) -> None:
        """Adds objects to the archive and to the digest, and counts them; with `again` notes that earlier copies are
        replaced."""
        for member in members:
            self._add(f"{OBJECTS}{member.key}", member.body, member.written_ms)
            _count(self._digest, member)
            self.objects += 1
            self.bytes += len(member.body)
            if again:
                self._again[member.key] = self._again.get(member.key, 0) + 1

    def _complete(self, summary: JsonObject) -> None:
        """Writes the last member, with the checksum, syncs the file to disk, and gives it its name in place of the
        partial one. Raises `FileExistsError` if a file has that name."""
        assert self._tar is not None
        assert self._raw is not None
        again: JsonObject = {**self._again}
        last: JsonObject = {"objects": self.objects, "sha256": self._digest.hexdigest(), "again": again, **summary}
        self._add(LAST, dumps(last, sort_keys=True), 0)
        self._tar.close()
        self._raw.flush()
        os.fsync(self._raw.fileno())
        self._raw.close()
        self._raw = None
        os.link(self._partial, self._file)  # refuses to replace a file that was made meanwhile
        self._partial.unlink()

    def _add(self, name: str, body: bytes, written_ms: int) -> None:
        """Adds a member to the archive."""
        assert self._tar is not None
        info = tarfile.TarInfo(name)
        info.size, info.mtime, info.mode = len(body), written_ms // 1000, 0o600
        self._tar.addfile(info, io.BytesIO(body))


@dataclass
class Archive:
    """A complete archive of a backup on disk, with the documents of the first and the last member."""

    file: Path
    first: JsonObject
    last: JsonObject = field(default_factory=dict)

    @classmethod
    async def opened(cls, file: Path) -> "Archive":
        """Reads all of an archive and checks its digest. Returns the archive, from which objects can then be read.
        Raises `BadRequest` for a file that is not a complete archive, and `OSError`."""
        return await asyncio.to_thread(cls._checked, file)

    @classmethod
    def _checked(cls, file: Path) -> "Archive":
        """Reads a whole archive, and returns it without the objects. Raises `BadRequest` if the first member is not
        that of a backup in this format, or if the number of objects or the digest is not the one in the last member."""
        digest, objects, last = hashlib.sha256(), 0, b""
        members = _members(file)
        name, body, _ = next(members, ("", b"", 0))
        first = _json(file, body) if name == FIRST else {}
        if first.get("format") != FORMAT:
            raise BadRequest(f"{file} is not a backup that this version of arco can read: give a file of `arco backup`")
        for name, body, _ in members:
            if name == LAST:
                last = body
            elif name.startswith(OBJECTS):
                objects += 1
                _count(digest, Member(name.removeprefix(OBJECTS), body))
        summary = _json(file, last) if last else {}
        if integer({"objects": -1, **summary}, "objects") != objects or summary.get("sha256") != digest.hexdigest():
            raise BadRequest(
                f"the backup {file} is damaged or incomplete: its objects do not have its checksum. Give another backup"
            )
        return cls(file, first, summary)

    @property
    def realm(self) -> bool:
        """Whether the archive is a backup of a realm with its catalogs, and not of one catalog."""
        return self.first.get("realm") is True

    @property
    def summary(self) -> JsonObject:
        """The fields of the archive that a report shows."""
        fields = {name: value for name, value in self.last.items() if name != "again"}
        return {"made_ms": self.first.get("made_ms"), "of": optional_text(self.first, "of"), **fields}

    async def objects(self) -> AsyncGenerator[Sequence[Member], None]:
        """Yields the objects of the archive in bounded batches; of an object with several copies only the last one."""
        left: dict[str, int] = {key: integer(mapping(self.last, "again"), key) for key in mapping(self.last, "again")}
        members = _members(self.file)
        while batch := await asyncio.to_thread(lambda: list(islice(members, AT_ONCE))):
            found: list[Member] = []
            for name, body, written_ms in batch:
                key = name.removeprefix(OBJECTS)
                if name == key:
                    continue
                if left.get(key, 0):
                    left[key] -= 1
                else:
                    found.append(Member(key, body, written_ms))
            yield found


def _members(file: Path) -> Iterator[tuple[str, bytes, int]]:
    """Yields the members of an archive that are files, in order: name, body, and time in milliseconds since 1970. A
    corrupt archive raises `BadRequest` when the reading comes to that place. Raises `OSError`."""
    try:
        with tarfile.open(file, "r|gz") as tar:
            for info in tar:
                extracted = tar.extractfile(info) if info.isreg() else None
                if extracted is not None:
                    yield info.name, extracted.read(), int(info.mtime) * 1000
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise BadRequest(f"{file} is damaged, or not a backup: give a file of `arco backup`") from error


def _count(digest: "hashlib._Hash", member: Member) -> None:
    """Adds the key, the length and the bytes of an object to a digest."""
    digest.update(f"{len(member.key)} {member.key} {len(member.body)}\n".encode())
    digest.update(member.body)


def _json(file: Path, body: bytes) -> JsonObject:
    """Reads the JSON of the first or last member of an archive; empty if it is no object. Raises `BadRequest` for a
    member that is no JSON."""
    try:
        document = loads(body)
    except MalformedJson as error:
        raise BadRequest(
            f"the backup {file} is damaged: its first or last member is not JSON. Give another one"
        ) from error
    return document if isinstance(document, dict) else {}
