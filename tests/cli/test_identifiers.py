"""Table names as people type them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arco_catalog.cli.errors import CliError
from arco_catalog.cli.identifiers import parse_identifier


@pytest.mark.parametrize(
    ("text", "namespace", "name"),
    [
        ("db.t", ("db",), "t"),
        ("a.b.c.t", ("a", "b", "c"), "t"),
        ('"a.b".c', ("a.b",), "c"),
        ('a."b.c"', ("a",), "b.c"),
        ('"a"."b"', ("a",), "b"),
        ('"say ""hi""".t', ('say "hi"',), "t"),
        ("two words.a/b%", ("two words",), "a/b%"),
    ],
)
def test_dots_part_levels_and_quotes_keep_them(text: str, namespace: tuple[str, ...], name: str) -> None:
    assert parse_identifier(text) == (namespace, name)


@pytest.mark.parametrize(
    "text", ["", "t", '"a.b"', ".t", "a.", "a..b", '"a', '"a.b', 'a".b', '"a"b.c', '"".t', "db.t."]
)
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(CliError, match=r"expected NAMESPACE.TABLE, got .*; write it as sales.orders"):
        parse_identifier(text)


@given(st.lists(st.text(min_size=1), min_size=2, max_size=5))
def test_every_name_can_be_typed(levels: list[str]) -> None:
    typed = ".".join('"' + level.replace('"', '""') + '"' for level in levels)

    assert parse_identifier(typed) == (tuple(levels[:-1]), levels[-1])
