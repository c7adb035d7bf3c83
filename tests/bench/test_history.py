"""What `make bench-history` measures, of short histories."""

from tools.bench.history import FORMS, measure


async def test_each_form_is_measured() -> None:
    found = await measure(20)

    assert [*found] == [*FORMS]
    assert found["refs"].size < found["all"].size
    assert min(times.next_ms for times in found.values()) > 0
