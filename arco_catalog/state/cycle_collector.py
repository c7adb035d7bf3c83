"""Keeps Python's collector of cyclic garbage away from large JSON documents. They have no cycles, and a full collection
would traverse all of their values in one step of the event loop: a tenth of a second for a million."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

MAX_YOUNG = 50_000
"""The number of young objects that a collection traverses in a few milliseconds."""
SERVER_YOUNG = 30_000
"""The number of young objects with which a server's collections start: by Python's own number, 700, they run sixty
times a second beside plans of scans, which make tens of thousands of objects for an answer, and no cycles."""
SERVER_OLDER = 20
"""After how many collections of a generation a server's collections go on to the next older one: Python's number is
10."""
MAX_FREEZES = 1_000
"""How many large documents may follow each other before a full collection may run beside one. Cycles that became
garbage meanwhile would else be kept for as long as there is a large document at all times."""


class CycleCollector:
    """Python's collector of cyclic garbage, for all threads of the process: it can be disabled while large documents
    are parsed, and all objects that exist then can be excluded from later collections."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._running = 0
        self.frozen = 0
        """How often `pause` froze objects since all were last included again; `tune_for_server` does not count."""

    def tune_for_server(self) -> None:
        """Excludes all present objects, which are those of imports, from collections until `unfreeze` or `_freeze`
        includes all objects again, and lets collections run less often. For processes that serve requests
        (docs/decisions/0114-servers-collect-cycles-less-often.md)."""
        gc.freeze()
        gc.set_threshold(SERVER_YOUNG, SERVER_OLDER, SERVER_OLDER)

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Returns a context that disables Python's collections of cyclic garbage while any thread is in it. If more
        than `MAX_YOUNG` objects are younger than the last collection when the last thread leaves it, all present
        objects are frozen, as by `_freeze`, so that no collection traverses them until `unfreeze` is called."""
        with self._lock:
            self._running += 1
            if self._running == 1:
                gc.disable()
        try:
            yield
        finally:
            with self._lock:
                self._running -= 1
                if self._running == 0:
                    if gc.get_count()[0] > MAX_YOUNG:
                        self._freeze()
                    gc.enable()

    def unfreeze(self) -> None:
        """Lets Python's collections of cyclic garbage traverse all objects again. To be called when the large documents
        are gone."""
        with self._lock:
            self.frozen = 0
            gc.unfreeze()  # to the oldest generation, without a traversal

    def _freeze(self) -> None:
        """Excludes all present objects from collections of cycles, and counts that; when it has done so more than
        `MAX_FREEZES` times, it includes all objects again and counts from 0."""
        gc.freeze()  # moves all objects to a generation that is not traversed
        self.frozen += 1
        if self.frozen > MAX_FREEZES:
            self.frozen = 0
            gc.unfreeze()


CYCLE_COLLECTOR = CycleCollector()
