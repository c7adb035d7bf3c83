from collections.abc import Mapping
from typing import Any

import pytest

from tests.infra.google.values import ACCEPTED, evaluate

Values = Mapping[str, Mapping[str, Any]]


@pytest.fixture(scope="session")
def values(tmp_path_factory: pytest.TempPathFactory) -> Values:
    """What the module decides for each accepted deployment."""
    return evaluate(ACCEPTED, tmp_path_factory.mktemp("google"))
