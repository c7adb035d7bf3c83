"""The registry's index behaves as a sorted dictionary, and its keys keep levels apart."""

from hypothesis import given
from hypothesis import strategies as st

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state.index import (
    Index,
    namespace_key,
    namespaces_in,
    relation_key,
    relations_in,
    tombstone_key,
    tombstones_of,
)

names = st.text(st.characters(exclude_categories=("Cc", "Cs")), min_size=1, max_size=6)
namespaces = st.lists(names, min_size=1, max_size=3).map(tuple)
entries: st.SearchStrategy[JsonObject | None] = st.none() | st.integers().map(lambda n: {"n": n})
edit_lists = st.lists(st.dictionaries(names, entries, max_size=4), max_size=6)


@given(edit_lists)
def test_an_edited_index_is_the_sorted_dictionary_of_its_edits(edits: list[dict[str, JsonObject | None]]) -> None:
    index, model = Index({}), dict[str, JsonObject]()
    for edit in edits:
        index = index.edited(edit)
        for key, entry in edit.items():
            if entry is None:
                model.pop(key, None)
            else:
                model[key] = entry
    assert list(index.scan("")) == sorted(model.items())
    assert all(index.get(key) == entry for key, entry in model.items())


@given(edit_lists, names)
def test_an_index_is_succeeded_and_never_changed(edits: list[dict[str, JsonObject | None]], key: str) -> None:
    index = Index({key: {"first": True}})
    for edit in edits:
        index.edited(edit)
    assert list(index.scan("")) == [(key, {"first": True})]


@given(st.dictionaries(names, st.just({}), max_size=12), names)
def test_a_scan_from_a_key_goes_on_where_another_stopped(model: dict[str, JsonObject], start: str) -> None:
    index = Index(model)
    assert [key for key, _ in index.scan("", start)] == [key for key in sorted(model) if key >= start]


@given(namespaces, st.lists(namespaces, max_size=8), names)
def test_a_level_lists_its_direct_children_and_nothing_else(
    parent: tuple[str, ...], others: list[tuple[str, ...]], child: str
) -> None:
    everything = {*others, parent, (*parent, child), (*parent, child, "deeper")}
    index = Index({namespace_key(namespace): {} for namespace in everything})
    listed = {key.rpartition("\n")[2] for key, _ in index.scan(namespaces_in(parent))}
    assert listed == {n[-1] for n in everything if n[:-1] == parent}


@given(namespaces, namespaces, names)
def test_tables_of_one_namespace_are_not_listed_in_another(
    one: tuple[str, ...], other: tuple[str, ...], name: str
) -> None:
    index = Index({relation_key(one, name): {}})
    assert index.any_in(relations_in(other)) == (one == other)


def test_all_tombstones_of_a_name_are_found_and_no_others() -> None:
    tombstones = [(("a",), "t", "1"), (("a",), "t", "2"), (("a",), "t2", "3"), (("a", "t"), "x", "4")]
    index = Index({tombstone_key(*tombstone): {} for tombstone in tombstones})
    assert [key[-1] for key, _ in index.scan(tombstones_of(("a",), "t"))] == ["1", "2"]
