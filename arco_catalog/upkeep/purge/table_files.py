"""Reads the files that a table refers to, in an order in which a later lease can continue
(docs/design/purge.md#rule-15)."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Self

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state.fields import integer, mapping, optional_text, texts
from arco_catalog.state.file_directories import FileDirectories
from arco_catalog.tasks.execution import Sessions
from arco_catalog.upkeep.purge.corruption import CorruptFile, Corruption
from arco_catalog.upkeep.purge.reach import files_in, manifests_in, named_by, readable_manifests

MAX_COMPARED = 8
"""Manifest lists before the position whose manifests are not read again: consecutive snapshots share almost all."""


@dataclass(slots=True)
class ReadPosition:
    """How much of a table's files is read: so many manifest lists with all their manifests, and of the next list so
    many manifests."""

    lists: int = 0
    manifests: int = 0


@dataclass(frozen=True, slots=True)
class PartialRead:
    """How far a purge has read the files of another table: up to a position, in the state of some `metadata` files. No
    file before that position is in the places of the purge; `directories` are the directories of these files. `gone` is
    the first of them that is missing, and `corrupt` why the first corrupt one can't be read; empty if there is none."""

    metadata: tuple[str, ...]
    lists: int
    manifests: int
    directories: FileDirectories
    gone: str = ""
    corrupt: str = ""

    @classmethod
    def parse(cls, fields: JsonObject) -> Self:
        """Restores a partial read from the fields that a checkpoint has of it. Raises `InternalError` if they are
        malformed."""
        directories = FileDirectories.parse(mapping(fields, "directories"))
        return cls(
            texts(fields, "metadata"),
            integer(fields, "lists"),
            integer(fields, "manifests"),
            directories,
            optional_text(fields, "gone") or "",
            optional_text(fields, "corrupt") or "",
        )

    def to_json(self) -> JsonObject:
        """Returns the partial read as a checkpoint stores it."""
        return {
            "metadata": [*self.metadata],
            "lists": self.lists,
            "manifests": self.manifests,
            "directories": self.directories.to_json(),
            **({"gone": self.gone} if self.gone else {}),
            **({"corrupt": self.corrupt} if self.corrupt else {}),
        }


async def files_of(
    sessions: Sessions,
    metadata: Sequence[str],
    gone: list[str],
    corrupt: list[Corruption],
    position: ReadPosition,
) -> AsyncGenerator[str, None]:
    """Yields the locations of all files to which these metadata files refer, beginning after `position`, and moves the
    position forward after a manifest's files were yielded. The metadata files that can be read, and the statistics
    files that they name, are always yielded. If one of the metadata files can't be read, the position is set to the
    beginning first. Files that do not exist are added to `gone`, and files that can't be read to `corrupt`."""
    reached = await named_by(sessions, metadata, corrupt)
    gone += reached.gone
    if len(reached.files) < len(metadata):  # the position counts the lists of all of them
        position.lists = position.manifests = 0
    for each in (*reached.files, *reached.statistics):
        yield each
    first, done = position.lists, position.manifests
    seen: set[str] = set()
    for compared in [*reached.lists][max(0, first - MAX_COMPARED) : first]:
        with suppress(CorruptFile):  # its manifests are read already
            seen.update(await manifests_in(sessions, compared, []))
    for number, location in enumerate((*reached.lists, None)):
        if number < first:
            continue
        if location is not None:
            yield location
        listed = reached.direct if location is None else await readable_manifests(sessions, location, gone, corrupt)
        manifests = [*listed]
        seen.update(manifests[:done])
        for index, manifest in enumerate(manifests):
            if manifest in seen:
                continue
            seen.add(manifest)
            yield manifest
            async with aclosing(files_in(sessions, manifest, gone, corrupt)) as files:
                async for file in files:
                    yield file
            position.lists, position.manifests = number, index + 1
        done = 0
        if location is not None:
            position.lists, position.manifests = number + 1, 0
