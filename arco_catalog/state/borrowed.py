"""Folders outside of an entity's own locations from which its metadata takes files. The registry records them as
*borrowed*, so that no purge of another entity deletes files in them (docs/design/purge.md#rule-16).

The entry of the entity's name lists them, and so does the tombstone after a drop. In addition, the index has a key for
every pair of such a path and an entity, by which the entities that borrow from a location are found."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.state.fields import optional_text, text, texts
from arco_catalog.state.index import Edits, Index
from arco_catalog.state.locations import Location
from arco_catalog.state.needs import Needs, Scan, Steps
from storage_backends.lazy_dataclass import dataclass

MAX_BORROWED = 32
"""The limit of borrowed folders of one entity."""
MAX_QUOTED = 200
"""How many characters of a file's name an error quotes."""


def borrowed_key(path: str, entity: str) -> str:
    """Returns the index key of the entry by which an entity borrows files from a path, given by its normal form."""
    return f"{_borrowed_in(path)}\n{entity}"


@dataclass(frozen=True, slots=True)
class Loans:
    """The paths from which an entity borrows files, by their normal forms. Of a path in `widened` it may borrow all
    files below, of any other only the files directly in it. Paths in entries of an older version of the program count
    as widened."""

    locations: tuple[str, ...] = ()
    widened: frozenset[str] = frozenset()

    @classmethod
    def parse(cls, entry: JsonObject) -> "Loans":
        """Returns the loans, the paths from which an entity borrows files, in the entry of the entity's name or in its
        tombstone; empty if that has none."""
        paths = texts(entry, "borrowed")
        return cls(paths, frozenset(paths) - {*texts(entry, "borrowed_files")})

    def to_json(self) -> JsonObject:
        """Returns the fields by which the entry of an entity's name records the paths from which it borrows files;
        empty if there are no paths."""
        direct: list[JsonValue] = [path for path in self.locations if path not in self.widened]
        return {"borrowed": [*self.locations], "borrowed_files": direct} if self.locations else {}

    def cover(self, path: Location) -> bool:
        """Whether these borrowed paths include the files directly in a path."""
        return path.normal in self.locations or path.inside_any(self.widened)


def borrowed_holds(entity: str, loans: Loans, transaction: str | None = None) -> Edits:
    """Returns the index changes that record the paths from which an entity borrows files; with a transaction, as
    intents of it, which is still open. `borrowers_of` counts intents too."""
    hold: JsonObject = {"entity": entity} if transaction is None else {"entity": entity, "transaction": transaction}
    direct: JsonObject = {**hold, "direct": True}
    return {borrowed_key(path, entity): hold if path in loans.widened else direct for path in loans.locations}


def returned_loans(entity: str, paths: Iterable[str]) -> Edits:
    """Returns the index changes by which an entity no longer borrows files from these paths."""
    return {borrowed_key(path, entity): None for path in paths}


def renewed_loans(index: Index, entity: str, before: Iterable[str], loans: Loans) -> Steps[Edits]:
    """Returns the index changes by which an entity borrows files from the paths of `loans`, and no longer from the
    others in `before`. Fields of the present entries that a later version added stay in them."""
    holds = borrowed_holds(entity, loans)
    yield Needs(keys=[*holds])
    edits: dict[str, JsonObject | None] = {**returned_loans(entity, before)}
    for key, hold in holds.items():
        stored = index.get(key) or {}
        later = {field: value for field, value in stored.items() if field not in ("transaction", "direct")}
        edits[key] = {**later, **(hold or {})}
    return edits


def folders_of(files: Iterable[str]) -> list[Location]:
    """Returns the folders of these files, each once, in the order of the files. Raises `BadRequest` for a text that is
    no location of a file."""
    paths: dict[str, Location] = {}
    for file in files:
        location = Location.of_file(file)
        if location is None:
            raise BadRequest(
                f"Not a valid location of a file, which the table's metadata names: {file[:MAX_QUOTED]!r}: expected an "
                "absolute URI such as s3://bucket/path/snap-1.avro, without control characters, and with the scheme "
                "file also without the levels '.' and '..'"
            )
        path = replace(location, segments=location.segments[:-1])
        paths.setdefault(path.normal, path)
    return [*paths.values()]


def outside(paths: Sequence[Location], locations: Collection[str]) -> list[Location]:
    """Returns the paths outside of these locations. A path with a level `..` counts as outside, because some readers
    resolve it."""
    return [path for path in paths if path.has_dots or not path.inside_any(locations)]


def merged(loans: Loans, added: Iterable[Location], within: Location | None = None) -> Loans:
    """Returns the loans with these paths added, except paths that the loans include already. If they are more than
    `MAX_BORROWED` then, the deepest paths with parents below `within`, the location of the namespace, are replaced by
    these parents, until they fit. Raises `BadRequest` if they are too many and can't be cut to fit so; `within` None
    allows no replacement."""
    paths = dict.fromkeys([*loans.locations, *(path.normal for path in added if not loans.cover(path))])
    merged_loans = Loans((*paths,), loans.widened)
    while len(merged_loans.locations) > MAX_BORROWED:
        wider = None if within is None else _widened(merged_loans, within)
        if wider is None:
            raise BadRequest(
                f"The table's metadata names, or has named before, manifest lists or statistics in more than "
                f"{MAX_BORROWED} folders outside of the table's locations, a fixed limit: write them below the table's "
                "own location"
            )
        merged_loans = wider
    return merged_loans


def _widened(loans: Loans, within: Location) -> Loans | None:
    """Returns the loans after one step of widening: of the folders whose parent is below `within`, the deepest are
    replaced by their parents, which then count as widened, and folders inside such a parent are left out. None if no
    folder has a parent below `within`."""
    parents = {
        path: parent
        for path in loans.locations
        if (parent := next(Location.of_normal(path).around(), None)) is not None
        and parent != within.normal
        and Location.of_normal(parent).inside(within)
    }
    if not parents:
        return None
    deepest = max(path.count("/") for path in parents)
    raised = {parent for path, parent in parents.items() if path.count("/") == deepest}
    widened = {*loans.widened, *raised}
    left = [path for path in loans.locations if not Location.of_normal(path).inside_any(raised)]
    paths = [*left, *sorted(raised)]
    return Loans((*paths,), frozenset(widened).intersection(paths))


def borrower_of(index: Index, location: Location, entity: str) -> Steps[str | None]:
    """Returns one entity, other than `entity`, that borrows from this location, from a path inside it, or by a widened
    path around it: the first of `borrowers_of`. None if there is none."""
    borrowers = yield from borrowers_of(index, location, entity)
    return next(iter(borrowers), None)


def borrowers_of(index: Index, location: Location, entity: str) -> Steps[Sequence[str]]:
    """Returns all entities, other than `entity`, that borrow from this location, from a path inside it, or by a widened
    path around it; each once. An entity that will do so only if an open transaction commits is one of them."""
    found = (text(hold, "entity") for hold in (yield from _loans_from(index, location)))
    return [*dict.fromkeys(each for each in found if each != entity)]


def pending_borrowing(index: Index, location: Location, borrower: str) -> Steps[str | None]:
    """Returns the open transaction without which the entity `borrower`, one of `borrowers_of`, would not borrow from
    this location; None if it does so already."""
    loans = [hold for hold in (yield from _loans_from(index, location)) if text(hold, "entity") == borrower]
    transactions = [optional_text(hold, "transaction") for hold in loans]
    return None if None in transactions else next(iter(transactions), None)


def _loans_from(index: Index, location: Location) -> Steps[Sequence[JsonObject]]:
    """Returns the entries by which entities borrow from this location, from a path inside it, or by a widened path
    around it."""
    within, around = _borrowed_in(location.normal), [f"{_borrowed_in(path)}\n" for path in location.around()]
    yield Needs(scans=[Scan(prefix) for prefix in (within, *around)])
    holds = [hold for _, hold in index.scan(within)]
    return holds + [hold for prefix in around for _, hold in index.scan(prefix) if hold.get("direct") is not True]


def _borrowed_in(path: str) -> str:
    """Returns the prefix of the index keys of loans of files in a folder, given by its normal form, and in folders
    inside it."""
    return f"borrowed\n{path.rstrip('/')}/"
