"""Marks on locations that the catalog generated for one table and that another request has named since. A purge deletes
everything at a generated location only if it has no mark (docs/design/purge.md#rule-17)."""

from collections.abc import Iterable, Iterator

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.planning.context import Context
from arco_catalog.state.entries import RelationEntry, find_relation
from arco_catalog.state.fields import text, texts
from arco_catalog.state.index import Edits, Index, locations_at, relation_key, released_at
from arco_catalog.state.locations import Location
from arco_catalog.state.needs import Needs, Scan, Steps
from arco_catalog.state.segments import numbered


def shared_marks(
    context: Context, index: Index, locations: Iterable[Location], *, entity: str, fresh: bool = False
) -> Steps[Edits]:
    """Returns the index changes that mark the generated locations of other tables which equal, contain or are inside
    one of these locations. They mark those of dropped tables, and if the operator allows overlaps also those of live
    tables. With `fresh` a location that ends in the entity's id is new, so that no other can be inside."""
    marks: dict[str, JsonObject | None] = {}
    for location in locations:
        new = fresh and location.named_after(entity)
        around = [folder for folder in location.around() if numbered(f"{folder}/")]
        prefixes = [released_at(folder) + "\n" for folder in around]
        if not new:
            prefixes.append(released_at(location.normal))
        yield Needs(scans=[Scan(prefix) for prefix in prefixes])
        for key, claim in _made_for_others(index, prefixes, entity):
            marks[key] = {**claim, "shared": True}
        if context.allow_location_overlap:
            marks |= yield from _live_marks(index, location, around, entity, new=new)
    return marks


def _live_marks(
    index: Index, location: Location, around: Iterable[str], entity: str, *, new: bool
) -> Steps[dict[str, JsonObject | None]]:
    """Returns the index changes that mark the generated locations of other live tables which contain this location, and
    unless it is `new` also the ones that equal it or are inside. The mark is in the entry of the name, and stays there
    in its tombstone. If a hold of an older version does not lead to the entry, the mark is in the hold."""
    prefixes = [f"{locations_at(folder)}\n" for folder in around] + ([] if new else [locations_at(location.normal)])
    yield Needs(scans=[Scan(prefix) for prefix in prefixes])
    holds = [*_made_for_others(index, prefixes, entity)]
    yield Needs(keys=[relation_key(name[:-1], name[-1]) for _, hold in holds if len(name := texts(hold, "name")) > 1])
    marks: dict[str, JsonObject | None] = {}
    for key, hold in holds:
        name = texts(hold, "name")
        entry = find_relation(index, name[:-1], name[-1]) if len(name) > 1 else None
        if entry is None or entry.entity != text(hold, "entity"):
            marks[key] = {**hold, "shared": True}
        elif _is_alone(entry):
            marks[relation_key(name[:-1], name[-1])] = {**entry.json, "shared": True}
    return marks


def _made_for_others(index: Index, prefixes: Iterable[str], entity: str) -> Iterator[tuple[str, JsonObject]]:
    """Iterates over the keys and holds of generated locations of other entities that have no mark."""
    for prefix in prefixes:
        for key, hold in index.scan(prefix):
            holder = text(hold, "entity")
            made = key.partition("\n")[2].rpartition("\n")[0].endswith(f"-{holder}/")
            if holder != entity and made and hold.get("shared") is not True:
                yield key, hold


def _is_alone(entry: RelationEntry) -> bool:
    """Whether the catalog made the locations of an entry, and no other entry shares them."""
    return entry.made and not entry.shared
