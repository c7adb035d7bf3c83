"""Folders outside of an entity's own locations from which its metadata takes files: the registry knows them as
*borrowed*, so that nobody purges them under it (docs/design/purge.md#rule-16).

The name's entry lists them, and stays their list when it becomes a tombstone; a key for each finds who borrows there.
"""

from collections.abc import Collection, Iterable, Sequence

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state.fields import text
from arco_catalog.state.index import Edits, Index
from arco_catalog.state.locations import Location, outermost
from arco_catalog.state.needs import Needs, Scan, Steps

MAX_BORROWED = 32
"""Folders of one entity. Of more, those that hold them are kept instead."""


def borrowed_key(folder: str, entity: str) -> str:
    """Key of what one entity borrows from a folder, given by its normal form."""
    return f"{_borrowed_in(folder)}\n{entity}"


def borrowed_holds(entity: str, folders: Iterable[str], transaction: str | None = None) -> Edits:
    """Edits by which an entity borrows from these folders; with a transaction, if that commits."""
    said: JsonObject = {"entity": entity} if transaction is None else {"entity": entity, "transaction": transaction}
    return {borrowed_key(folder, entity): said for folder in folders}


def returned_loans(entity: str, folders: Iterable[str]) -> Edits:
    """Edits by which it borrows from them no longer."""
    return {borrowed_key(folder, entity): None for folder in folders}


def folders_of(files: Iterable[str]) -> list[Location]:
    """The folders of these files, each once. What is no absolute URI lies in no folder of anybody's."""
    located = (Location.of_file(file) for file in files)
    folders = dict.fromkeys(next(location.around()) for location in located if location is not None)
    return [Location.of_normal(folder) for folder in folders]


def outside(folders: Sequence[Location], locations: Collection[str]) -> list[Location]:
    """Those of these folders that lie in none of these locations."""
    return [folder for folder in folders if not folder.inside_any(locations)]


def merged(folders: Sequence[Location]) -> list[str]:
    """The normal forms of few folders that hold all of these."""
    kept = outermost(folders)
    while len(kept) > MAX_BORROWED:
        around = {next(folder.around(), folder.normal) for folder in kept}
        wider = outermost([Location.of_normal(folder) for folder in sorted(around)])
        if len(wider) == len(kept):
            break
        kept = wider
    return [folder.normal for folder in kept]


def borrower_of(index: Index, location: Location, entity: str) -> Steps[str | None]:
    """Another entity that borrows from a folder which equals, contains or lies inside this location."""
    borrowers = yield from borrowers_of(index, location, entity)
    return next(iter(borrowers), None)


def borrowers_of(index: Index, location: Location, entity: str) -> Steps[Sequence[str]]:
    """All other entities that borrow from a folder which equals, contains or lies inside this location."""
    prefixes = [_borrowed_in(location.normal), *(f"{_borrowed_in(folder)}\n" for folder in location.around())]
    yield Needs(scans=[Scan(prefix) for prefix in prefixes])
    found = (text(entry, "entity") for prefix in prefixes for _, entry in index.scan(prefix))
    return [*dict.fromkeys(each for each in found if each != entity)]


def _borrowed_in(folder: str) -> str:
    return f"borrowed\n{folder.rstrip('/')}/"
