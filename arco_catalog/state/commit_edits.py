"""Commit objects with only the edits of the index, in a registry of version 2
(docs/design/registry.md#whole-commit-objects).

HEAD is always whole: it has the embedded edits and the directory of the index, and lists up to 500 commits. The object
of the same commit has only what the commit changed in the index, and lists the commits since its ancestor, the last
commit with a whole object. HEAD as of a commit is that ancestor with the changes of the commits from there on.
"""

from collections.abc import Mapping, Sequence

from arco_catalog.iceberg.errors import InternalError
from arco_catalog.iceberg.json import JsonObject, JsonValue, dumps
from arco_catalog.state.fields import integer, mapping, sequence, text, texts

WHOLE_EVERY = 64
"""At least one of so many successive commit objects is whole."""

_FIELDS_OF_HEAD = frozenset({"index", "ancestor", "recent", "before", "cancelled"})
"""The fields of HEAD that an object with only edits does not have, or in which it lists fewer commits."""
Refs = Mapping[str | None, JsonValue]
"""The items of a directory by the ids of their segments."""
_LISTS = ("recent", "cancelled")
"""The fields of HEAD with lists of its commits."""
_FIELDS_OF_CHANGES = frozenset({"embedded", "removed", "segments", "removed_segments"})
_ADVICE = "Begin a listing at the first page, and give a restore another commit"
"""What to do where HEAD as of a commit can't be computed."""


def is_whole(document: JsonObject) -> bool:
    """Whether a commit object has the whole index."""
    return "changes" not in document


def ancestor_in(commits: Sequence[JsonValue], ancestor: str | None) -> str | None:
    """Returns `ancestor`, the last commit with a whole object, if the object of a new commit may have only the edits
    since that; None if it must be whole. `commits` are those in the new one's list, itself first."""
    return ancestor if any(item_id(item) == ancestor for item in commits[1:WHOLE_EVERY]) else None


def changes_of(before: JsonObject, after: JsonObject) -> JsonObject:
    """Returns the changes between two successive stored forms of the index: embedded edits, and items of the directory
    of segments, that were added or replaced, and the keys and ids of those that were removed.

    An embedded entry that is the same object in both forms is unchanged. Any other counts as replaced, since two that
    are equal may have different bytes. Items of the directory are unchanged if they are equal.
    """
    embedded, known = mapping(after, "embedded"), mapping(before, "embedded")
    added = {key: entry for key, entry in embedded.items() if key not in known or entry is not known[key]}
    changes: JsonObject = {"embedded": added}
    removed = known.keys() - embedded.keys()
    if removed:
        changes["removed"] = [*sorted(removed)]
    refs, old_refs = _refs_in(after), _refs_in(before)
    if refs != old_refs:
        changes["segments"] = [ref for segment, ref in refs.items() if ref != old_refs.get(segment)]
        changes["removed_segments"] = [segment for segment in old_refs if segment not in refs]
    return changes


def only_edits(head: JsonObject, changes: JsonObject) -> JsonObject:
    """Returns the object with only edits of a commit, given as HEAD, which lists its `ancestor`. `changes` is the
    result of `changes_of`. Fields of the index that this program does not know are repeated."""
    ancestor, listed = text(head, "ancestor"), sequence(head, "recent")
    since = listed[: next(place for place, item in enumerate(listed) if item_id(item) == ancestor)]
    commits = {item_id(item) for item in since}
    unknown = {name: value for name, value in mapping(head, "index").items() if name not in _FIELDS_OF_CHANGES}
    stored: JsonObject = {name: value for name, value in head.items() if name not in _FIELDS_OF_HEAD}
    stored |= {"recent": since, "before": ancestor, "listed": len(listed), "changes": {**unknown, **changes}}
    cancelled = [item for item in sequence(head, "cancelled") if item_id(item) in commits]
    return {**stored, "cancelled": cancelled} if cancelled else stored


def is_other_form(document: JsonObject, other: JsonObject) -> bool:
    """Whether two objects are the two forms of one commit: one is whole, the other has only edits, the commits that
    this one lists are the last that the whole one lists, and the other fields of both are equal, except `before` and
    `cancelled`."""
    if is_whole(document) == is_whole(other):
        return False
    whole, edits = (document, other) if is_whole(document) else (other, document)
    commits = sequence(edits, "recent")
    return sequence(whole, "recent")[: len(commits)] == commits and _shared(whole) == _shared(edits)


def _shared(document: JsonObject) -> bytes:
    """Returns the bytes of the fields that have the same values in both forms of a commit's object."""
    others = _FIELDS_OF_HEAD | {"changes", "listed"}
    return dumps({name: value for name, value in document.items() if name not in others}, sort_keys=True)


def chain_of(document: JsonObject) -> Sequence[str]:
    """Returns the ids of the commits from which `head_of` computes HEAD as of a commit, given that commit's object with
    only edits: from the ancestor, which is whole, to the commit itself. Raises `InternalError` if the object names no
    ancestor; of a corrupt item in the list of commits the id is empty."""
    return [text(document, "before"), *(item_id(item) or "" for item in reversed(sequence(document, "recent")))]


def head_of(chain: Sequence[JsonObject]) -> JsonObject:
    """Returns HEAD as of a commit, given the objects of the chain that ends in it, at least from the last whole one on.
    The last object must have only edits. Raises `InternalError` if they are not the objects of successive commits, or
    if none is whole."""
    start = max((place for place, each in enumerate(chain) if is_whole(each)), default=None)
    if start is None:
        raise InternalError(
            f"HEAD as of a registry commit can't be computed: commit {chain[0].get('id')} is not whole, nor is one "
            f"after it: their objects have only edits of the index. {_ADVICE}"
        )
    first, *later = chain[start:]
    index, parent = mapping(first, "index"), first
    embedded: JsonObject = {**mapping(index, "embedded")}
    refs = _refs_in(index)
    for each in later:
        if each.get("parent") != parent.get("id"):
            raise InternalError(
                f"HEAD as of a registry commit can't be computed: commit {each.get('id')}, which has only edits of the "
                f"index, does not follow commit {parent.get('id')}. {_ADVICE}"
            )
        embedded, refs = _changed(embedded, refs, each)
        parent = each
    newest = later[-1]
    unknown = {name: value for name, value in mapping(newest, "changes").items() if name not in _FIELDS_OF_CHANGES}
    whole: JsonObject = {**unknown, "embedded": embedded}
    if refs:
        whole["segments"] = sorted(refs.values(), key=_first_key)
    return {**_history_of(first, newest), "index": whole}


def _refs_in(index: JsonObject) -> Refs:
    """Returns the references to segments in an index, by their ids."""
    return {item_id(ref): ref for ref in sequence(index, "segments")}


def _changed(embedded: JsonObject, refs: Refs, commit: JsonObject) -> tuple[JsonObject, Refs]:
    """Returns the embedded edits and the directory after a commit, given what they were before it. Changes `embedded`
    in place."""
    changes = mapping(commit, "changes")
    embedded |= mapping(changes, "embedded")
    for key in texts(changes, "removed"):
        embedded.pop(key, None)
    gone = {*texts(changes, "removed_segments")}
    left = {segment: ref for segment, ref in refs.items() if segment not in gone}
    return embedded, {**left, **{item_id(ref): ref for ref in sequence(changes, "segments")}}


def _history_of(first: JsonObject, newest: JsonObject) -> JsonObject:
    """Returns HEAD as of the commit `newest` without the index: it lists the commits since `first`, which has a whole
    object, and as many of those that `first` lists as HEAD did."""
    before = {item_id(item) for item in sequence(first, "recent")}
    since = [[item for item in sequence(newest, name) if item_id(item) not in before] for name in _LISTS]
    commits, cancelled = [[*new, *sequence(first, name)] for new, name in zip(since, _LISTS, strict=True)]
    count = integer(newest, "listed")
    kept = {item_id(item) for item in commits[:count]}
    head: JsonObject = {name: value for name, value in newest.items() if name not in ("changes", "listed", "cancelled")}
    head |= {
        "ancestor": text(newest, "before"),
        "recent": commits[:count],
        "before": item_id(commits[count]) if count < len(commits) else first.get("before"),
    }
    still = [item for item in cancelled if item_id(item) in kept]
    return {**head, "cancelled": still} if still else head


def item_id(item: JsonValue) -> str | None:
    """Returns the id at the start of an item of a list in HEAD: of commits with their operations, of commits with the
    attempts that they cancelled, or of segments; None for any other value."""
    return item[0] if isinstance(item, list) and item and isinstance(item[0], str) else None


def _first_key(ref: JsonValue) -> str:
    """Returns the first key in a reference to a segment of the index. Raises `InternalError` if the reference is
    corrupt."""
    match ref:
        case [_, str(first), *_]:
            return first
    raise InternalError("an item in a registry commit's list of segments is damaged")
