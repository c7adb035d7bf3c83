"""What `make bench-plan` measures, of small tables."""

import pytest

from tools.bench.plan import measure, measure_crowd, site
from tools.bench.plan_tables import Shape
from tools.bench.planners import JavaLibrary, served


@pytest.fixture(scope="module")
def java(tmp_path_factory: pytest.TempPathFactory) -> JavaLibrary:
    return JavaLibrary.compiled(tmp_path_factory.mktemp("classes"))


def test_both_planners_find_the_share_of_files_that_a_filter_keeps(java: JavaLibrary) -> None:
    with site(Shape(5, 200, 3)) as place:
        case = place.cases()[2]
        found = [*measure(place, case, java, 0)]

        assert case.name == "10 % by partition"
        assert case.entries == 200
        assert {(each.times.files, each.times.deletes) for each in found} == {(100, 10)}
        assert [each.mode for each in found] == [
            "ours, cold",
            "ours, warm",
            "Java, cold",
            "Java, warm, no cache",
            "Java, warm, its cache",
        ]
        assert all(0 < each.times.first_s <= each.times.wall_s for each in found)
        assert all(each.cpu_s > 0 for each in found)
        assert found[0].times.sent > 0


def test_eight_plans_at_once_are_measured() -> None:
    with site(Shape(2, 50)) as place:
        found = measure_crowd(place, place.cases()[-1])

    assert found.health_s > 0
    assert found.loop.step > 0


def test_each_filter_keeps_its_share_of_the_files() -> None:
    with site(Shape(4, 500)) as place, served(place.folder) as planner:
        assert [planner.plan(case.filter).files for case in place.cases()] == [2, 2, 200, 200, 2_000, 2_000]


def test_filters_that_leave_too_many_entries_are_left_out() -> None:
    with site(Shape(4, 500)) as place:
        assert [case.name for case in place.cases(500)] == ["0.1 % by partition", "10 % by partition"]


def test_manifests_of_a_large_table_are_copies_of_each_other() -> None:
    shape = Shape(30, 10_000)

    assert shape.distinct == 10
    assert shape.entries_below(1) == 30_000
    assert shape.entries_below(101) == 60_000


@pytest.mark.parametrize(("text", "shape"), [("10x100", Shape(10, 100)), ("10x5+3", Shape(10, 5, 3))])
def test_a_shape_is_read(text: str, shape: Shape) -> None:
    assert Shape.parse(text) == shape
