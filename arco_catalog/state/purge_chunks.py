"""The inventory of a table that is purged: the metadata files, manifest lists, manifests and statistics that its
metadata names, in chunks that are linked from the last to the first (docs/design/purge.md). Data files are not in it:
the manifests list them.

A chunk is written once, under a fresh id. The checkpoint of the task names the last one. Losing a chunk costs another
walk over the metadata."""

from enum import StrEnum

from arco_catalog.iceberg.errors import InternalError
from arco_catalog.iceberg.json import JsonObject, dumps
from arco_catalog.state.access import State
from arco_catalog.state.fields import integer, mapping, optional_text, parse_record, sequence, text, texts
from arco_catalog.state.pointer import MetadataFile
from storage_backends.lazy_dataclass import dataclass

MAX_LINKS = 32
"""The number of chunks before it that a chunk names, so that as many are read concurrently."""


class Stage(StrEnum):
    """The steps of taking the inventory of the files that a purge deletes, in their order."""

    LOG = "log"
    LOGGED = "logged"
    TRIES = "tries"
    MANIFESTS = "manifests"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class Position:
    """How far the inventory of a purge is: its `stage`, and where the stage continues. In the metadata log: the
    metadata file to read `next`, and the one read last (`newer`); then the files that only metadata logs name
    (`logged`), and the `folders` that may have metadata files which never became current. In the manifest lists: the
    `chunk` that names the next ones, how many of its `lists` were read, and the last lists that were read (`compared`),
    because a manifest that one of these names is not added twice."""

    stage: Stage = Stage.LOG
    next: MetadataFile | None = None
    newer: str = ""
    logged: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    chunk: str = ""
    lists: int = 0
    compared: tuple[str, ...] = ()

    @classmethod
    def parse(cls, document: JsonObject) -> "Position":
        """Reads a position in a purge's inventory from its JSON. Raises `InternalError`."""
        name = text(document, "stage")
        if name not in set(Stage):
            raise InternalError(
                f"a stored record of a purge's inventory is invalid, or a later version of the program wrote it: the "
                f"stage {name!r} is unknown, and the purge takes the inventory anew"
            )
        following = mapping(document, "next")
        return cls(
            Stage(name),
            MetadataFile(text(following, "location"), integer(following, "ms")) if following else None,
            optional_text(document, "newer") or "",
            texts(document, "logged"),
            texts(document, "folders"),
            optional_text(document, "chunk") or "",
            integer(document, "lists"),
            texts(document, "compared"),
        )

    def to_json(self) -> JsonObject:
        """Returns the JSON of a position in a purge's inventory, which is a part of a chunk."""
        following = self.next
        return {
            "stage": self.stage.value,
            "next": None if following is None else {"location": following.location, "ms": following.ms},
            "newer": self.newer,
            "logged": [*self.logged],
            "folders": [*self.folders],
            "chunk": self.chunk,
            "lists": self.lists,
            "compared": [*self.compared],
        }


@dataclass(frozen=True, slots=True)
class ReachedFile:
    """A file that the metadata of a table names, and the size in bytes; 0 if the file that names it does not record the
    size."""

    location: str
    size: int = 0


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a purge's inventory, which was taken from the table's metadata file `current` on, with the `position`
    after it. `files` are metadata files, of those that were current the newest first, `lists` manifest lists,
    `statistics` files of statistics; `ignored` are metadata files that were met and are not the table's, or are not
    there. `before` are the ids of up to `MAX_LINKS` chunks before, the last first. An inventory in memory is one chunk,
    with an empty `id` and `current`."""

    current: str
    position: Position
    before: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    lists: tuple[str, ...] = ()
    statistics: tuple[str, ...] = ()
    manifests: tuple[ReachedFile, ...] = ()
    ignored: tuple[str, ...] = ()
    id: str = ""

    @classmethod
    def parse(cls, body: bytes, key: str) -> "Chunk":
        """Reads a chunk of a purge's inventory, with the id from the end of the `key` under which it is stored. Raises
        `InternalError` for an invalid record."""
        document = parse_record(body, key)
        return cls(
            text(document, "current"),
            Position.parse(mapping(document, "position")),
            texts(document, "before"),
            texts(document, "files"),
            texts(document, "lists"),
            texts(document, "statistics"),
            tuple(_manifest(each, key) for each in sequence(document, "manifests")),
            texts(document, "ignored"),
            key.rpartition("/")[2].removesuffix(".json"),
        )

    @property
    def body(self) -> bytes:
        """The bytes by which the chunk of a purge's inventory is stored."""
        return dumps(
            {
                "version": 1,
                "current": self.current,
                "position": self.position.to_json(),
                "before": [*self.before],
                "files": [*self.files],
                "lists": [*self.lists],
                "statistics": [*self.statistics],
                "manifests": [[each.location, each.size] for each in self.manifests],
                "ignored": [*self.ignored],
            }
        )


async def read_chunk(state: State, task: str, chunk: str) -> Chunk | None:
    """Reads a chunk of the inventory of a purge's task; None if it does not exist or is corrupt. Raises
    `StoreError`."""
    key = state.paths.purge_chunk(task, chunk)
    found = await state.read(key)
    if found is None:
        return None
    try:
        return Chunk.parse(found.body, key)
    except InternalError:
        return None


async def write_chunk(state: State, task: str, chunk: Chunk) -> None:
    """Stores a chunk of the inventory of a purge's task under its id. Raises `StoreError`."""
    await state.create(state.paths.purge_chunk(task, chunk.id), chunk.body)


def links_to(chunk: Chunk | None) -> tuple[str, ...]:
    """Returns the ids that the chunk written after `chunk` stores in its field `before`: those of `chunk` and of the
    chunks before it, the last first, at most `MAX_LINKS`. Empty for None."""
    return () if chunk is None else (chunk.id, *chunk.before)[:MAX_LINKS]


def _manifest(entry: object, key: str) -> ReachedFile:
    """Reads a manifest in a purge's inventory. Raises `InternalError`."""
    match entry:
        case [str(location), int(size)]:
            return ReachedFile(location, size)
    raise InternalError(
        f"The record {key} of a purge's inventory is invalid, and the purge takes the inventory again: a manifest in "
        "it is not a pair of a location and a size"
    )
