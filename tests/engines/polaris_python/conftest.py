"""The integration tests of Polaris's Python client, whose sources `make test-polaris-python` is told of; `pytest` alone
leaves this folder out."""

from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Only who names this folder gets it."""
    named = [Path(argument.partition("::")[0]).resolve() for argument in config.args]
    return None if any(path.is_relative_to(HERE) for path in named) else True
