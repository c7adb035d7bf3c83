"""The views of `system` are brought up to date, and somebody else's are left as they are."""

from dataclasses import replace

import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField
from pyiceberg.view.metadata import ViewVersion

from reconciler.system.questions import ALL, GROWTH
from reconciler.system.views import write_views
from tests.compact.lake import ServedLake
from tools.demo.server import WAREHOUSE

IN_TRINO = f'"{WAREHOUSE}".system.'


def put(lake: ServedLake, summary: dict[str, str]) -> None:
    """A view of that name, which answers another question, by a version with this summary."""
    lake.client.create_namespace_if_not_exists("system")
    texts = [{"type": "sql", "sql": "SELECT 1 AS one", "dialect": dialect} for dialect in ("spark", "trino")]
    said = {"schema-id": 0, "summary": summary, "representations": texts, "default-namespace": ("system",)}
    schema = Schema(NestedField(1, "one", LongType()))
    lake.client.create_view(("system", GROWTH.name), schema, ViewVersion.model_validate(said))


def shown(lake: ServedLake) -> dict[str, str]:
    """What the view answers, by dialects."""
    version = lake.client.load_view(("system", GROWTH.name)).current_version()
    return {each.root.dialect: each.root.sql for each in version.representations}


@pytest.mark.parametrize("summary", [{}, {"written-by": "arco-pipeline"}], ids=["earlier version", "this version"])
async def test_a_view_of_ours_that_answers_by_another_text_is_replaced(
    lake: ServedLake, summary: dict[str, str]
) -> None:
    put(lake, summary)
    await lake.compact()
    assert shown(lake) == {"spark": GROWTH.text(), "trino": GROWTH.text(IN_TRINO)}
    view = lake.client.load_view(("system", GROWTH.name))
    assert [field.name for field in view.schema().fields] == [name for name, _ in GROWTH.columns]
    assert view.properties["comment"] == GROWTH.description

    again = await lake.compact()
    assert (again.commits, again.read) == (0, 0)
    assert len(lake.client.load_view(("system", GROWTH.name)).versions) == 2


async def test_a_view_that_somebody_wrote_anew_is_left_as_it_is(lake: ServedLake) -> None:
    put(lake, {"engine-name": "spark"})
    await lake.compact()
    assert shown(lake) == {"spark": "SELECT 1 AS one", "trino": "SELECT 1 AS one"}
    assert len(lake.client.list_views("system")) == len(ALL)


async def test_trino_is_told_another_name_only_by_who_says_one(lake: ServedLake) -> None:
    lake.client.create_namespace_if_not_exists("system")
    catalog = lake.mortal()
    for said, named in (("other", "other"), (None, "other"), (WAREHOUSE, WAREHOUSE)):
        write_views(catalog, said)
        assert shown(lake)["trino"] == GROWTH.text(f'"{named}".system.')


async def test_a_view_that_changes_keeps_the_catalog_s_name_in_trino(lake: ServedLake) -> None:
    lake.client.create_namespace_if_not_exists("system")
    catalog = lake.mortal()
    earlier = replace(GROWTH, sql=f"SELECT * FROM ({GROWTH.sql})")
    write_views(catalog, 'the "other" one', [earlier])

    write_views(catalog, None, [GROWTH])

    assert shown(lake) == {"spark": GROWTH.text(), "trino": GROWTH.text('"the ""other"" one".system.')}


async def test_where_there_is_no_realm_nothing_tells_who_may_read_what(lake: ServedLake) -> None:
    await lake.compact()
    assert not lake.client.table_exists("system.readers")
    assert sorted(lake.client.list_views("system")) == sorted(("system", question.name) for question in ALL)
