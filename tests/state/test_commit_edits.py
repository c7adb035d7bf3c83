"""Commit objects with only edits, and HEAD as of a commit that is made of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arco_catalog.iceberg.errors import InternalError
from arco_catalog.iceberg.json import JsonObject, JsonValue, dumps, loads
from arco_catalog.state import commit_edits, registry
from arco_catalog.state.commit_edits import WHOLE_EVERY, chain_of, changes_of, head_of, is_whole
from arco_catalog.state.commit_record import CommitRecord
from arco_catalog.state.fields import mapping, sequence
from arco_catalog.state.index import Edits, Index
from arco_catalog.state.paths import Paths
from arco_catalog.state.registry import Operation, RegistryState
from arco_catalog.state.segments import Segment
from arco_catalog.state.spilling import Limits, Spilling
from tests.support.past_heads import head_as_of
from tests.support.steps import result

PATHS = Paths("wh")


@dataclass(frozen=True)
class Step:
    """What one commit does. `repaired` is whether its object was lost, and written again from HEAD, `emptied` whether
    all entries before it go."""

    edits: Edits
    operations: int = 1
    cancels: Sequence[str] = ()
    bell: str | None = None
    repaired: bool = False
    emptied: bool = False


class Registry:
    """A registry, the objects of its commits, and HEAD as of each of them."""

    def __init__(self, limits: Limits | None = None, version: int = 2) -> None:
        self.objects: dict[str, bytes] = {}
        self.heads: dict[str, bytes] = {}
        self.head = RegistryState.empty().with_format_version(version)
        self._limits = limits or Limits()
        self._segments: dict[str, Segment] = {}
        self._made = 0

    def commit(self, step: Step) -> str:
        """Makes a commit, and returns its id."""
        self._made += 1
        commit = f"c{self._made}"
        head = self.head.with_bell(step.bell).with_segments(self._segments.get)
        if step.emptied:
            head = replace(head, index=Index({}))
        spilling = Spilling(self._limits, lambda: f"s{self._made}-{len(self._segments)}-{next(numbers)}")
        numbers = iter(range(1_000))
        operations = [Operation(f"{commit}-{place}", "change", {}, None) for place in range(step.operations)]
        if step.cancels:
            operations.append(Operation(f"{commit}-cancel", "cancel", {}, None, cancels=step.cancels))
        spilled = result(head.index_after(step.edits, spilling))
        made = head.successor(commit=commit, at_ms=self._made, edits=step.edits, operations=operations, spilled=spilled)
        self._segments |= {segment.id: segment for segment in made.spilled}
        self.objects[PATHS.registry_commit(commit)] = made.body if step.repaired else made.commit_body
        self.heads[commit] = made.body
        self.head = RegistryState.parse(made.body, None, "HEAD")
        return commit

    def document(self, commit: str) -> JsonObject:
        """The stored object of a commit."""
        document = loads(self.objects[PATHS.registry_commit(commit)])
        assert isinstance(document, dict)
        return document


keys = st.sampled_from(["location\na/\nx", "location\nb/\ny", "namespace\n\na", "relation\na\nt", "relation\na\nu"])
entries = st.none() | st.builds(lambda n: {"n": n, "pad": "x" * n}, st.integers(0, 60))
steps = st.builds(
    Step,
    edits=st.dictionaries(keys | st.builds("relation\na\nt{}".format, st.integers(0, 30)), entries, max_size=4),
    operations=st.integers(0, 4),
    cancels=st.lists(st.sampled_from(["x1", "x2", "x3"]), max_size=2, unique=True),
    bell=st.sampled_from([None, "b1", "b2"]),
    repaired=st.sampled_from([False, False, False, True]),
    emptied=st.sampled_from([False, False, False, False, True]),
)


@given(st.lists(steps, max_size=40), st.sampled_from([(0, 60), (150, 200), (64 << 10, 256 << 10)]))
@settings(deadline=None)
def test_head_as_of_each_commit_is_its_ancestor_with_the_edits_since(
    drawn: Sequence[Step], limits: tuple[int, int]
) -> None:
    made = Registry(Limits(embedded=limits[0], least=limits[0], segment=limits[1]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(commit_edits, "WHOLE_EVERY", 5)
        patch.setattr(registry, "RECENT_COMMITS", 8)
        patch.setattr(registry, "RECENT_OPERATIONS", 12)
        for step in drawn:
            made.commit(step)
        for commit, head in made.heads.items():
            assert head_as_of(commit, made.objects.get, PATHS) == head


@given(st.lists(steps, max_size=40))
@settings(deadline=None)
def test_every_listing_of_a_stored_commit_goes_on_where_the_last_one_ended(drawn: Sequence[Step]) -> None:
    made = Registry()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(commit_edits, "WHOLE_EVERY", 5)
        patch.setattr(registry, "RECENT_COMMITS", 8)
        last = [made.commit(step) for step in drawn]
    cancelled = {commit: each.cancels for commit, each in zip(last, drawn, strict=True) if each.cancels}
    for commit in last:
        listing: CommitRecord | None = CommitRecord(made.document(commit))
        walked: list[str] = []
        while listing is not None:
            assert listing.cancelled() == {each: cancelled[each] for each, _ in listing.recent() if each in cancelled}
            walked += [each for each, _ in listing.recent()]
            listing = None if listing.before is None else CommitRecord(made.document(listing.before))
        assert walked == last[last.index(commit) :: -1]


def test_at_least_every_sixty_fourth_object_is_whole() -> None:
    made = Registry()
    whole = [is_whole(made.document(made.commit(Step({f"k{number}": {}})))) for number in range(3 * WHOLE_EVERY)]
    assert [number for number, each in enumerate(whole) if each] == [0, WHOLE_EVERY, 2 * WHOLE_EVERY]


def test_a_commit_that_lists_no_whole_one_is_whole() -> None:
    made = Registry()
    made.commit(Step({}))
    counts = (registry.RECENT_OPERATIONS, 1, 1)
    assert [is_whole(made.document(made.commit(Step({}, operations=count)))) for count in counts] == [True, True, False]


def test_every_object_of_a_registry_of_version_one_is_head() -> None:
    made = Registry(version=1)
    for number in range(3):
        commit = made.commit(Step({f"k{number}": {}}))
        assert made.objects[PATHS.registry_commit(commit)] == made.heads[commit]
    assert "ancestor" not in made.head.document


def test_the_first_commit_of_version_two_has_only_edits_of_one_of_version_one() -> None:
    made = Registry(version=1)
    before = made.commit(Step({"a": {}}))
    made.head = made.head.with_format_version(2)
    commit = made.commit(Step({"b": {}}))
    assert chain_of(made.document(commit)) == [before, commit]
    assert head_as_of(commit, made.objects.get, PATHS) == made.heads[commit]


def test_an_object_with_only_edits_is_small() -> None:
    made = Registry()
    for number in range(60):
        commit = made.commit(Step({f"relation\na\nt{number:03}": {"pad": "x" * 400}}))
    assert len(made.heads[commit]) > 25_000
    assert len(made.objects[PATHS.registry_commit(commit)]) < 3_500


def test_fields_that_this_version_does_not_know_survive_in_edits() -> None:
    made = Registry()
    made.commit(Step({}))
    index = made.head.document["index"]
    assert isinstance(index, dict)
    later: JsonObject = {**made.head.document, "later": {"x": 1}, "index": {**index, "kind": "later"}}
    made.head = RegistryState.of(later)
    commit = made.commit(Step({"k": {}}))
    assert head_as_of(commit, made.objects.get, PATHS) == made.heads[commit]
    assert made.head.document["later"] == {"x": 1}


@pytest.mark.parametrize("limits", [Limits(), Limits(embedded=0, least=0, segment=60)], ids=["embedded", "spilled"])
def test_a_commit_that_empties_the_index_removes_all_of_it(limits: Limits) -> None:
    made = Registry(limits)
    for number in range(3):
        made.commit(Step({f"relation\na\nt{number}": {"pad": "x" * 60}}))
    commit = made.commit(Step({"k": {}}, emptied=True))
    assert head_as_of(commit, made.objects.get, PATHS) == made.heads[commit]


def test_an_object_with_only_edits_is_not_taken_for_a_registry() -> None:
    made = Registry()
    made.commit(Step({}))
    commit = made.commit(Step({"k": {}}))
    with pytest.raises(InternalError, match="only edits"):
        RegistryState.parse(made.objects[PATHS.registry_commit(commit)], None, "commit")


def spilled_with_later_items(commits: int) -> Registry:
    """A registry whose directory has items with an element more, which a later version of the program wrote."""
    made = Registry(Limits(embedded=0, least=0, segment=60))
    for number in range(commits):
        made.commit(Step({f"relation\na\nt{number}": {"pad": "x" * 60}}))
    index = mapping(made.head.document, "index")
    later: list[JsonValue] = [[*ref, {"x": 1}] for ref in sequence(index, "segments") if isinstance(ref, list)]
    assert len(later) == commits
    made.head = RegistryState.of({**made.head.document, "index": {**index, "segments": later}})
    made.objects[PATHS.registry_commit(made.head.id or "")] = made.heads[made.head.id or ""] = made.head.body
    return made


def test_an_item_of_the_directory_that_has_an_element_more_keeps_it() -> None:
    made = spilled_with_later_items(3)
    commit = made.commit(Step({"relation\na\nt1": {"pad": "y" * 60}}))
    items = sequence(mapping(made.head.document, "index"), "segments")
    assert [len(item) for item in items if isinstance(item, list)] == [5, 4, 5]
    assert not is_whole(made.document(commit))
    assert head_as_of(commit, made.objects.get, PATHS) == made.heads[commit]


def test_changes_have_an_item_of_the_directory_of_which_an_element_changed() -> None:
    before: JsonObject = {"embedded": {}, "segments": [["s1", "a", 3, None, "x"], ["s2", "b", 3, None, "x"]]}
    after: JsonObject = {"embedded": {}, "segments": [["s1", "a", 3, None], ["s2", "b", 3, None, "x"]]}
    assert changes_of(before, after) == {
        "embedded": {},
        "segments": [["s1", "a", 3, None]],
        "removed_segments": [],
    }


def test_changes_have_an_entry_that_is_equal_and_has_other_bytes() -> None:
    before: JsonObject = {"embedded": {"a": {"n": 1}, "b": {"n": 2}}}
    after: JsonObject = {"embedded": {"a": {"n": True}, "b": mapping(before, "embedded")["b"]}}
    assert dumps(changes_of(before, after)) == b'{"embedded":{"a":{"n":true}}}'


def three() -> Mapping[str, JsonObject]:
    made = Registry()
    return {commit: made.document(commit) for commit in [made.commit(Step({f"k{n}": {}})) for n in range(3)]}


def test_a_chain_without_one_of_its_commits_makes_no_head() -> None:
    made = three()
    with pytest.raises(InternalError, match="does not follow"):
        head_of([made["c1"], made["c3"]])


def test_a_chain_that_does_not_begin_with_a_whole_object_makes_no_head() -> None:
    made = three()
    with pytest.raises(InternalError, match="is not whole"):
        head_of([made["c2"], made["c3"]])
