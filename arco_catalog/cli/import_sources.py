"""Finds the tables for `arco import` in lists of metadata files, and in folders as Hadoop's catalog lays them out."""

import re
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from arco_catalog.cli.errors import CliError
from arco_catalog.cli.identifiers import parse_identifier
from arco_catalog.cli.session import report_slow_store
from arco_catalog.state.index import Namespace
from arco_catalog.state.locations import Location
from arco_catalog.upkeep.source_tables import SourceTable
from storage_backends import Cursor, Found, ObjectStore

_LINE = re.compile(r'(?P<name>(?:"(?:[^"]|"")*"|[^"\s])+)\s+(?P<location>\S.*)')
_HINT = "version-hint.text"
_VERSION = re.compile(r"v([0-9]{1,18})(?:\.gz)?\.metadata\.json(?:\.gz)?")
_METADATA = re.compile(r".+\.metadata\.json(?:\.gz)?")


class Source(Protocol):
    """A source of `arco import`: has tables, and properties of their namespaces."""

    def tables(self) -> AsyncIterator[SourceTable]:
        """Reads all tables of the source, one after the other. Raises `CliError` if the source can't be read at all."""
        ...

    async def properties_of(self, namespace: Namespace) -> Mapping[str, str]:
        """Returns the properties for a namespace that the import creates; none if the source has none."""
        ...


@dataclass(frozen=True, slots=True)
class ListSource:
    """The source of an import that is a list of tables with their metadata files, which `parse_list` has read. It has
    no properties of namespaces."""

    listed: list[SourceTable]

    async def tables(self) -> AsyncIterator[SourceTable]:
        """Yields the listed tables."""
        for table in self.listed:
            yield table

    async def properties_of(self, namespace: Namespace) -> Mapping[str, str]:
        """Returns no properties: a list has none of a namespace."""
        return {}


def parse_list(lines: Iterable[str], where: str) -> list[SourceTable]:
    """Reads lines `NAMESPACE.TABLE METADATA_LOCATION`, separated by blanks or tabs, and returns the tables. A level
    that contains a dot or a blank is in quotes. Empty lines and lines that begin with # are ignored. Raises `CliError`,
    which names the line and `where` it is, for any other line."""
    found: list[SourceTable] = []
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        match = _LINE.fullmatch(text)
        if match is None:
            raise CliError(f"{where}, line {number}: expected NAMESPACE.TABLE METADATA_LOCATION, not {text[:200]!r}")
        try:
            namespace, name = parse_identifier(match["name"])
        except CliError as failure:
            raise CliError(f"{where}, line {number}: {failure}") from failure
        found.append(SourceTable(namespace, name, match["location"]))
    return found


@dataclass(slots=True)
class _Folder:
    """What the metadata folder of a table has, as far as it shows the current metadata file: whether there is a version
    hint, the names of metadata files by their versions, and the number of metadata files without a version in the
    name."""

    hinted: bool = False
    versions: dict[int, str] = field(default_factory=dict)
    others: int = 0


class FolderSource:
    """The source of an import that is a warehouse of Hadoop's catalog: a namespace is a folder, and a table is a folder
    in it that has a `metadata/`."""

    def __init__(self, url: str, store: ObjectStore) -> None:
        self._url = url
        self._root = Location.parse(url if "//" in url else url.replace(":", "://", 1))
        self._store = store

    async def tables(self) -> AsyncIterator[SourceTable]:
        """Yields the tables in the folder, in the order of their paths. Raises `CliError` if there are none."""
        folders = await self._folders()
        if not folders:
            raise CliError(
                f"there are no tables in {self._url}: no folder in it has a metadata/ with metadata files; check the "
                "URL"
            )
        for path in sorted(folders):
            yield await self._table(path, folders[path])

    async def properties_of(self, namespace: Namespace) -> Mapping[str, str]:
        """Returns no properties: a folder has none of a namespace."""
        return {}

    async def _folders(self) -> Mapping[str, _Folder]:
        """Returns the folders that have a `metadata/` with metadata files or a version hint, by their path below the
        root."""
        folders: dict[str, _Folder] = defaultdict(_Folder)
        after: Cursor | None = None
        async with report_slow_store(self._url):
            while True:
                page = await self._store.list("", after)
                for entry in page.entries:
                    _note(folders, entry.key)
                after = page.after
                if after is None:
                    return folders

    async def _table(self, path: str, folder: _Folder) -> SourceTable:
        """Returns the table in a folder, with the current metadata file or the problem of finding it. A table in the
        warehouse's own folder has the name of that folder, and no namespace."""
        *namespace, name = path.split("/") if path else self._root.segments[-1:] or ("",)
        if not folder.versions:
            problem = (
                "its folder has no vN.metadata.json: only the catalog that it belongs to knows which of its metadata "
                "files is current"
            )
            return SourceTable(tuple(namespace), name, None, problem)
        version = await self._current_version(path, folder)
        key = f"{path}/metadata/" if path else "metadata/"
        return SourceTable(tuple(namespace), name, self._root.below(f"{key}{folder.versions[version]}").uri)

    async def _current_version(self, path: str, folder: _Folder) -> int:
        """Returns the number of the current metadata file, as HadoopCatalog finds it: version-hint.text names a
        version, which may be outdated, so the last of the versions that follow it without a gap is taken. Without a
        usable hint it is the newest."""
        newest = max(folder.versions)
        if not folder.hinted:
            return newest
        found = await self._store.get(f"{path}/metadata/{_HINT}" if path else f"metadata/{_HINT}")
        text = found.body.decode("ascii", "replace").strip() if isinstance(found, Found) else ""
        if not re.fullmatch("[0-9]{1,18}", text) or int(text) not in folder.versions:
            return newest
        version = int(text)
        while version + 1 in folder.versions:
            version += 1
        return version


def _note(folders: dict[str, _Folder], key: str) -> None:
    """Records a file of a warehouse, given by its key, in the folder of its table, if it is in the `metadata/` of that:
    a hint, the name of a metadata file by the version, or one more without a version; ignores any other file."""
    path, _, file = key.rpartition("/")
    if path != "metadata" and not path.endswith("/metadata"):
        return
    table = path.removesuffix("metadata").rstrip("/")
    version = _VERSION.fullmatch(file)
    if file == _HINT:
        folders[table].hinted = True
    elif version is not None:
        folders[table].versions[int(version[1])] = file
    elif _METADATA.fullmatch(file):
        folders[table].others += 1
