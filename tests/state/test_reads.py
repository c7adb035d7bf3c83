"""A plan whose reads are unchanged is the same plan: laws about any computation on the index."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arco_catalog.iceberg.errors import InternalError
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state import registry
from arco_catalog.state.index import Edits, Index, location_key, locations_at
from arco_catalog.state.needs import Needs, Scan, Steps
from arco_catalog.state.reads import Reads, recorded
from arco_catalog.state.registry import Operation, RegistryState
from arco_catalog.state.segments import Ref
from arco_catalog.state.spilling import Limits
from tests.support.fake_runtime import FakeRuntime
from tests.support.registry_builder import packed
from tests.support.steps import lacks, result

KEYS = ["a", "b", "b1", "b2", "c", location_key("s3://x", "e1"), location_key("s3://x", "e2")]
KEYS += [location_key("s3://x/y", "e3")]
keys = st.sampled_from(KEYS)
entries: st.SearchStrategy[JsonObject | None] = st.none() | st.integers(0, 2).map(lambda n: {"n": n})
edits = st.dictionaries(keys, entries, max_size=len(KEYS))


@dataclass(frozen=True)
class Lookup:
    """One lookup of a random plan: of a key, of a prefix to the first entry with the number `end`, or of holds."""

    kind: str
    what: str
    end: int = -1

    def needs(self) -> Needs:
        if self.kind == "key":
            return Needs(keys=[self.what])
        if self.kind == "holds":
            return Needs(holds=[self.what])
        return Needs(scans=[Scan(self.what, until=self.ends)])

    def ends(self, entry: JsonObject) -> bool:
        return entry["n"] == self.end

    def found(self, index: Index) -> object:
        if self.kind == "key":
            return index.get(self.what)
        if self.kind == "holds":
            return list(index.holds_on(self.what))
        seen: list[object] = []
        for key, entry in index.scan(self.what):
            seen.append((key, entry))
            if self.ends(entry):
                break
        return seen


prefixes = st.sampled_from(["a", "b", "location\n", locations_at("s3://x")])
lookups = st.lists(
    keys.map(lambda key: Lookup("key", key))
    | st.builds(
        Lookup, st.just("scan"), st.sampled_from(["a", "b", "location\n", locations_at("s3://x")]), st.integers(-1, 2)
    )
    | st.just(Lookup("holds", "s3://x")),
    min_size=1,
    max_size=6,
)


def plan(index: Index, chosen: Sequence[Lookup]) -> Steps[list[object]]:
    """A plan whose next lookup depends on what it found before: it leaves some out."""
    found: list[object] = []
    for lookup in chosen:
        if len(str(found)) % 3 == 1:
            found.append("left out")
            continue
        yield lookup.needs()
        found.append(lookup.found(index))
    return found


def head_of(entries: Edits, **fields: object) -> RegistryState:
    document = {**RegistryState.empty().document, **fields}
    return replace(RegistryState.empty(), document=document, index=Index({}).edited(entries))  # type: ignore[arg-type]


def planned(head: RegistryState, chosen: Sequence[Lookup]) -> tuple[list[object], Reads]:
    """What a plan returns, and its reads."""
    seen: list[Needs] = []
    made = result(recorded(plan(head.index, chosen), seen), head.index)
    return made, Reads.of(head, seen)


@given(edits, edits, lookups)
def test_a_plan_whose_reads_hold_is_the_same_plan(before: Edits, later: Edits, chosen: list[Lookup]) -> None:
    head = head_of(before)
    made, reads = planned(head, chosen)
    moved = replace(head, index=head.index.edited(later))

    if result(reads.on(moved)) == reads:
        assert planned(moved, chosen)[0] == made


@given(edits, edits, lookups)
def test_reads_hold_if_every_lookup_finds_the_same(before: Edits, later: Edits, chosen: list[Lookup]) -> None:
    head = head_of(before)
    moved = replace(head, index=head.index.edited(later))
    seen: list[Needs] = []
    result(recorded(plan(head.index, chosen), seen))
    if all(lookup.found(head.index) == lookup.found(moved.index) for lookup in chosen):
        reads = Reads.of(head, seen)
        assert result(reads.on(moved)) == reads


@given(edits, lookups)
def test_reads_are_read_back_as_they_were_stored(before: Edits, chosen: list[Lookup]) -> None:
    _, reads = planned(head_of(before), chosen)
    assert Reads.parse(reads.to_json()) == reads
    assert result(reads.on(head_of(before))) == reads


@pytest.mark.parametrize(
    ("lookup", "changed"),
    [
        (Lookup("key", "a"), "a"),
        (Lookup("key", "c"), "c"),
        (Lookup("scan", "b"), "b1"),
        (Lookup("scan", "b"), "b2"),
        (Lookup("holds", "s3://x"), location_key("s3://x", "e1")),
        (Lookup("holds", "s3://x"), location_key("s3://x", "e2")),
    ],
    ids=str,
)
@pytest.mark.parametrize("entry", [{"n": 2}, None])
def test_a_changed_entry_no_longer_holds(lookup: Lookup, changed: str, entry: JsonObject | None) -> None:
    """Of each pair the first entry exists before, and the second one does not."""
    head = head_of({"a": {"n": 1}, "b1": {"n": 1}, location_key("s3://x", "e1"): {"n": 1}})
    _, reads = planned(head, [lookup])
    moved = replace(head, index=head.index.edited({changed: entry}))

    assert (result(reads.on(moved)) == reads) is (head.index.get(changed) == entry)


def test_a_later_scan_of_the_same_range_may_only_lengthen_it() -> None:
    head = head_of({"b1": {"n": 1}, "b2": {"n": 2}})
    to_first, to_second = (Scan("b", until=Lookup("scan", "b", end).ends) for end in (1, 2))
    for scans in ([to_first, to_second], [to_second, to_first]):
        assert Reads.of(head, [Needs(scans=[scan]) for scan in scans]).ranges["b"].last == "b2"
    assert Reads.of(head, [Needs(scans=[to_first, Scan("b")])]).ranges["b"].last is None


def test_a_new_entry_behind_the_end_of_a_scan_changes_nothing() -> None:
    head = head_of({"b1": {"n": 1}})
    reads = Reads.of(head, [Needs(scans=[Scan("b", until=Lookup("scan", "b", 1).ends)])])
    assert result(reads.on(replace(head, index=head.index.edited({"b2": {"n": 0}})))) == reads
    assert result(reads.on(replace(head, index=head.index.edited({"b": {"n": 0}})))) != reads


def test_another_setting_in_head_counts_as_a_change() -> None:
    reads = Reads.of(head_of({}), [])
    assert result(reads.on(head_of({}, idempotency={"number": 2}))) != reads
    assert result(reads.on(head_of({}, version=2))) != reads


def test_another_commit_without_edits_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if it lists cancellations, and no longer all of the history."""
    monkeypatch.setattr(registry, "RECENT_COMMITS", 1)
    head = head_of({"a": {"n": 1}})
    reads = Reads.of(head, [Needs(keys=["a"])])
    for number in range(3):
        cancel = Operation(f"o{number}", "cancel", {}, None, cancels=["x"])
        head = head.successor(commit=f"c{number}", at_ms=number, edits={}, operations=[cancel])
        assert result(reads.on(head)) == reads


def test_another_whole_commit_object_changes_nothing() -> None:
    """HEAD names the last commit whose object is whole."""
    head, ancestors = head_of({"a": {"n": 1}}, version=2), set[str | None]()
    reads = Reads.of(head, [Needs(keys=["a"])])
    for number in range(130):
        operation = Operation(f"o{number}", "create", {}, None)
        head = head.successor(commit=f"c{number}", at_ms=number, edits={}, operations=[operation])
        ancestors.add(head.ancestor)
        assert result(reads.on(head)) == reads
    assert len(ancestors) > 2


def test_reads_in_segments_are_found_there() -> None:
    entries: Mapping[str, JsonObject] = {f"namespace\n\nn{number:02}": {"n": number} for number in range(40)}
    index, segments = packed(entries, Limits(embedded=20, segment=200), FakeRuntime())
    loaded = {segment.id: segment for segment in segments}
    head = replace(head_of({}), index=index.with_segments(loaded.get))
    reads = Reads.of(head, [Needs(keys=["namespace\n\nn07"], scans=[Scan("namespace\n\nn1")])])

    assert result(reads.on(head), head.index) == reads
    assert lacks(reads.on(replace(head, index=index)), index)


def test_a_plan_that_reads_whole_segments_is_refused() -> None:
    ref = Ref("s", "", 1, None)
    with pytest.raises(InternalError, match="segments"):
        Reads.of(head_of({}), [Needs(segments=[ref])])
