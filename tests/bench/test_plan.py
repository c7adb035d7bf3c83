"""What `make bench-plan` measures, of small tables."""

import pytest

from tools.bench.plan import cases_of, main, measure, measure_crowd, site
from tools.bench.plan_tables import Shape
from tools.bench.planners import JavaLibrary, served


@pytest.fixture(scope="module")
def java(tmp_path_factory: pytest.TempPathFactory) -> JavaLibrary:
    return JavaLibrary.compiled(tmp_path_factory.mktemp("classes"))


def test_both_planners_find_the_share_of_files_that_a_filter_keeps(java: JavaLibrary) -> None:
    shape = Shape(5, 200, 3)
    with site(shape) as place:
        case = cases_of(shape)[2]
        found = [*measure(place, case, java, 0)]

        assert case.name == "10 % by partition"
        assert case.entries == 200
        assert {(each.times.files, each.times.deletes) for each in found} == {(100, 10)}
        assert [each.mode for each in found] == ["ours, cold", "ours, warm", "Java, cold", "Java, warm"]
        assert all(0 < each.times.first_s <= each.times.wall_s for each in found)
        assert all(each.cpu_s > 0 for each in found)
        assert found[0].times.sent > 0


def test_eight_plans_at_once_are_measured() -> None:
    shape = Shape(2, 50)
    with site(shape) as place:
        found = measure_crowd(place, cases_of(shape)[-1])

    assert found.health_s > 0
    assert found.loop.step > 0


def test_each_filter_keeps_its_share_of_the_files() -> None:
    shape = Shape(4, 500)
    with site(shape) as place, served(place.folder) as planner:
        assert [planner.plan(case.filter).files for case in cases_of(shape)] == [2, 2, 200, 200, 2_000, 2_000]


def test_filters_that_leave_too_many_entries_are_left_out() -> None:
    assert [case.name for case in cases_of(Shape(4, 500), 500)] == ["0.1 % by partition", "10 % by partition"]


def test_a_table_of_which_no_filter_is_left_is_refused_before_any_is_measured(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        main(["--shapes", "4x500", "--max-entries", "10", "--without-java"])
    assert "each filter leaves more than 10 entries of 4 x 500: raise --max-entries" in capsys.readouterr().err


def test_manifests_of_a_large_table_are_copies_of_each_other() -> None:
    shape = Shape(30, 10_000)

    assert shape.distinct == 10
    assert shape.entries_below(1) == 30_000
    assert shape.entries_below(101) == 60_000


@pytest.mark.parametrize(("text", "shape"), [("10x100", Shape(10, 100)), ("10x5+3", Shape(10, 5, 3))])
def test_a_shape_is_read(text: str, shape: Shape) -> None:
    assert Shape.parse(text) == shape
