"""Locations stay where the operator allowed, however they are written."""

import re
from collections.abc import Iterable
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state.entries import overlapping as holder_of
from arco_catalog.state.holds import location_holds, released_holds, restored_holds
from arco_catalog.state.index import Index, location_key
from arco_catalog.state.locations import AllowedLocations, Location, slug
from tests.support.steps import result


def overlapping(index: Index, location: Location, *, but: Iterable[str] = (), fresh: str | None = None) -> str | None:
    """The entity that is in a location's way."""
    holder = result(holder_of(index, location, but=but, fresh=fresh), index)
    return None if holder is None else holder.entity


ALLOWED = AllowedLocations(
    prefixes=[Location.parse("s3://bucket/wh/warehouse"), Location.parse("file:///data")],
    forbidden=[Location.parse("s3://bucket/wh/_catalog"), Location.parse("file:///data/wh/_catalog")],
)


@pytest.mark.parametrize("text", ["file:/data/t", "file:///data/t", "file:///data//t/", "FILE:///data/t"])
def test_one_folder_written_differently_is_one_location(text: str) -> None:
    assert ALLOWED.check(text).normal == "file:///data/t"


@pytest.mark.parametrize("text", ["s3a://bucket/wh/warehouse/t", "s3n://bucket/wh/warehouse/t"])
def test_the_s3_schemes_are_one_store(text: str) -> None:
    assert ALLOWED.check(text).uri == "s3://bucket/wh/warehouse/t"


@pytest.mark.parametrize("prefix", ["abfs://C@Account", "abfss://c@account"])
def test_the_schemes_and_cases_of_an_azure_account_are_one_store(prefix: str) -> None:
    root = Location.parse("abfss://c@account.dfs.core.windows.net/a")

    location = Location.parse(f"{prefix}.dfs.core.windows.net/a/t")

    assert location.written_below(root)
    assert (location.uri, location.path) == ("abfss://c@account.dfs.core.windows.net/a/t", "a/t")
    assert not Location.parse("abfss://other@account.dfs.core.windows.net/a/t").inside(root)
    assert not Location.parse("abfss://c@other.dfs.core.windows.net/a/t").inside(root)


def test_an_encoded_character_is_kept_as_written_and_compared_decoded() -> None:
    location = ALLOWED.check("s3://bucket/wh/warehouse/a%20b")
    assert location.uri == "s3://bucket/wh/warehouse/a%20b"
    assert location.normal == "s3://bucket/wh/warehouse/a b"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "t",
        "/data/t",
        "data/t",
        "file://host/data/t",
        "s3://other/wh/warehouse/t",
        "s3://bucket/wh/warehouse2/t",
        "s3://bucket/wh",
        "s3://bucket/wh/warehouse/../_catalog",
        "s3://bucket/wh/warehouse/%2e%2e/_catalog",
        "s3://bucket/wh/warehouse/%252e%252e/_catalog",
        "s3://bucket/wh/warehouse/a%2fb",
        "s3://bucket/wh/warehouse/a%252Fb",
        "s3://bucket/wh/warehouse/.",
        "s3://bucket/wh/warehouse/a\\b",
        "s3://bucket/wh/warehouse/a%00b",
        "s3://bucket/wh/warehouse/a\nb",
        "s3://bucket/wh/_catalog/core",
        "file:///data/wh/_catalog",
        "file:///data/wh",
        "file:///data",
    ],
)
def test_what_lies_outside_or_could_be_read_so_is_refused(text: str) -> None:
    with pytest.raises(BadRequest):
        ALLOWED.check(text)


def test_a_control_character_is_refused_as_such_though_the_text_is_a_uri() -> None:
    with pytest.raises(BadRequest, match=r"'s3://bucket/a\\nb': it must not contain control characters"):
        ALLOWED.check("s3://bucket/a\nb")


@pytest.mark.parametrize(
    "folder", ["_catalog", "_CATALOG", "%5fcatalog", "%255Fcatalog", "_probe", "_realm", ".arco-store"]
)
@pytest.mark.parametrize("place", ["s3://bucket/wh/warehouse/{}", "file:///data/other/{}/t", "file:///data/{}"])
def test_no_location_lies_in_a_catalogs_state_wherever_that_is(place: str, folder: str) -> None:
    with pytest.raises(BadRequest, match=f"folders named {folder} hold a catalog's own state"):
        ALLOWED.check(place.format(folder))


@pytest.mark.parametrize("name", ["_catalog2", "my_catalog", "catalog", "_catalog.x", "probe", "arco-store"])
def test_a_name_that_is_like_that_of_a_catalogs_state_is_free(name: str) -> None:
    assert ALLOWED.check(f"file:///data/{name}/t").segments[1] == name


@pytest.mark.parametrize(
    ("character", "code"),
    [("\x85", "U+0085"), ("\x9b", "U+009B"), ("\u202e", "U+202E"), ("\u2066", "U+2066"), ("\u2028", "U+2028")],
)
def test_no_location_holds_a_character_that_a_terminal_acts_on(character: str, code: str) -> None:
    for spelled in (character, quote(character), quote(quote(character))):
        with pytest.raises(BadRequest, match=f"the character {re.escape(code)} is not allowed"):
            ALLOWED.check(f"file:///data/a{spelled}b")
    assert Location.parse(f"file:///data/a{character}b").segments[1] == f"a{character}b"  # as it was allowed before


segments = st.text("abc.%2Ff /\\-_ü", min_size=1, max_size=8)


@given(st.lists(segments, max_size=5))
def test_whatever_is_allowed_lies_inside_a_prefix_and_outside_the_state(parts: list[str]) -> None:
    try:
        location = ALLOWED.check("file:///data/" + "/".join(parts))
    except BadRequest:
        return
    assert location.normal.startswith("file:///data/")
    assert ".." not in location.normal.split("/")
    assert not location.normal.startswith("file:///data/wh/_catalog")


@given(
    st.lists(segments | st.just("a%2Fb%252Fc%2Fd"), min_size=1, max_size=5),
    st.sampled_from(["s3://b", "file://", "memory://"]),
)
def test_the_folders_around_a_file_are_those_that_it_is_inside(parts: list[str], bucket: str) -> None:
    """Also where names have encoded slashes, as those of partitions do."""
    file = Location.of_file(f"{bucket}/{'/'.join(parts)}")
    if file is None:
        return
    around = [*file.around()]
    assert len(around) <= len(file.normal)
    for end in range(len(file.normal) + 1):
        folder = Location.of_normal(file.normal[:end])
        if folder.authority == file.authority and folder.normal == file.normal[:end] != file.normal:
            assert (folder.normal in around) is file.inside(folder), folder.normal
    assert all(file.inside(Location.of_normal(each)) for each in around)


def test_a_file_of_a_partition_with_many_slashes_is_inside_its_table() -> None:
    file = Location.of_file("s3://b/t/data/p=a%2Fb%2Fc%2Fd/f.parquet")
    assert file is not None
    assert file.inside_any({"s3://b/t"})
    assert [*file.around()][-2:] == ["s3://b/t", "s3://b/"]


@given(st.text(max_size=80))
def test_a_slug_is_one_safe_segment(name: str) -> None:
    assert Location.parse("file:///x").below(slug(name)).segments == ("x", slug(name))
    assert 1 <= len(slug(name).encode()) <= 64


@pytest.mark.parametrize("other", ["s3://b/t", "s3://b/t/inside", "s3://b"])
def test_a_location_overlaps_what_equals_contains_or_lies_inside_it(other: str) -> None:
    index = Index({}).edited(location_holds("E", [Location.parse("s3://b/t").normal]))
    assert overlapping(index, Location.parse(other)) == "E"


@pytest.mark.parametrize("other", ["s3://b/t2", "s3://b/s", "s3://c/t", "gs://b/t"])
def test_a_neighbour_is_no_overlap(other: str) -> None:
    index = Index({}).edited(location_holds("E", ["s3://b/t"], "live"))
    assert overlapping(index, Location.parse(other)) is None


def test_a_dropped_tables_location_is_free_until_it_is_held_again() -> None:
    place = Location.parse("s3://b/t")
    held = Index({}).edited(location_holds("E", [place.normal]))
    index = held.edited(result(released_holds(held, "E", [place.normal]), held))
    assert overlapping(index, place) is None
    assert overlapping(index.edited(result(restored_holds(index, "E", [place.normal]), index)), place) == "E"


@pytest.mark.parametrize(("task", "holder"), [({}, None), ({"task": "T"}, "E")])
def test_a_hold_of_a_purge_is_in_the_way_only_where_the_purge_has_a_task(task: JsonObject, holder: str | None) -> None:
    """An earlier version wrote `purging` for every drop with a purge, and purged nothing."""
    place = Location.parse("s3://b/t")
    index = Index({location_key(place.normal, "E"): {"entity": "E", "state": "purging", **task}})
    assert overlapping(index, place) == holder


def test_a_location_that_an_earlier_version_released_in_place_is_free() -> None:
    place = Location.parse("s3://b/t")
    index = Index({location_key(place.normal, "E"): {"entity": "E", "state": "dropped"}})
    assert overlapping(index, place) is None


def test_a_tables_own_holds_are_not_in_its_way() -> None:
    place = Location.parse("s3://b/t")
    index = Index({}).edited(location_holds("E", [place.normal]))
    assert overlapping(index, place, but=["E"]) is None


@pytest.mark.parametrize("path", ["wh/warehouse//t", "/wh/warehouse/t", "wh//warehouse/t"])
def test_an_empty_level_is_refused_where_a_store_has_objects_there(path: str) -> None:
    with pytest.raises(BadRequest, match="empty level"):
        ALLOWED.check(f"s3://bucket/{path}")


def test_slashes_at_the_end_of_a_folder_are_accepted() -> None:
    assert ALLOWED.check("s3://bucket/wh/warehouse/t//").uri == "s3://bucket/wh/warehouse/t"


@pytest.mark.parametrize("path", ["t//x", "/t/x", "t/x/", "t/./x", "t/../x"])
def test_a_file_with_a_level_that_a_path_lacks_is_collapsed(path: str) -> None:
    file = Location.of_file(f"gs://bucket/{path}")
    assert file is not None
    assert file.collapsed
    assert file.below("y").collapsed


def test_a_local_file_is_never_collapsed() -> None:
    file = Location.of_file("file:///data//t//x")
    assert file is not None
    assert not file.collapsed
    assert Location.of_file("file:///data/../x") is None


def test_a_collapsed_file_differs_from_the_one_at_its_levels_and_compares_as_it() -> None:
    collapsed, plain = Location.of_file("s3://b/t//x"), Location.of_file("s3://b/t/x")
    assert collapsed is not None
    assert plain is not None
    assert collapsed != plain
    assert collapsed.normal == plain.normal
