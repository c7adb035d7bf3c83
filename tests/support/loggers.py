"""The process's loggers, which what is tested sets up anew."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from arco_catalog.telemetry.logs import OURS


@contextmanager
def restored() -> Iterator[None]:
    """Afterwards, levels and handlers are what they were."""
    root = logging.getLogger()
    before = {logger: logger.level for logger in (root, *map(logging.getLogger, OURS))}
    handlers = [*root.handlers]
    try:
        yield
    finally:
        root.handlers[:] = handlers
        for logger, level in before.items():
            logger.setLevel(level)
