"""The planner in Java that lives while the tests of this folder run."""

from collections.abc import Iterator

import pytest

from tests.engines.scans.java_planner import java_planner
from tests.engines.scans.oracle import Oracle


@pytest.fixture(scope="package")
def oracle() -> Iterator[Oracle]:
    """Iceberg's own planner."""
    with java_planner() as java:
        yield Oracle(java)
