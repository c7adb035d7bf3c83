"""The path of the checkout in which tools and tests run, and a context that sets variables of this process."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]


@contextmanager
def exported(values: Mapping[str, str]) -> Iterator[None]:
    """What this process, and whatever it starts, finds in the environment as long as the context lasts."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
