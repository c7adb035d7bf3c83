"""The steps of a trial: each is timed, its calls of the store are counted, and a failure is a result."""

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from arco_catalog.iceberg.errors import CatalogError
from storage_backends import ObjectStore, StoreError
from storage_backends.open import opener_in
from storage_backends.wrappers.measuring import Measurement
from tools.bench.prices import AZURE, GCS, S3, StorePrices
from tools.support.wrapped_stores import CountingStore

OK, FAILED, SKIPPED = "ok", "failed", "skipped"
KINDS = ("get", "put", "list", "delete")
PRICES: Mapping[str, StorePrices] = {"s3": S3, "gs": GCS, "abfss": AZURE, "abfs": AZURE, "az": AZURE}


class StepFailed(Exception):
    """A step found a fault, which is the text."""


class StepSkipped(Exception):
    """A step can't be made here; the text is the reason."""


@dataclass
class Step:
    """A step: its name, its result, what was found, the seconds that it took, and the calls of the store by kind."""

    name: str
    status: str = OK
    found: str = ""
    seconds: float = 0.0
    calls: Counter[str] = field(default_factory=Counter)


@dataclass
class Steps:
    """The steps so far, and a store for each URL of which the calls are counted."""

    environment: Mapping[str, str]
    done: list[Step] = field(default_factory=list)
    _counted: list[CountingStore] = field(default_factory=list)

    def open(self, url: str) -> ObjectStore:
        """Opens the store at a URL. Raises `ValueError` for a URL of none."""
        store = CountingStore(opener_in(self.environment)(url))
        self._counted.append(store)
        return store

    @contextmanager
    def step(self, name: str) -> Iterator[Step]:
        """Makes a step of what is done inside. It fails by an error of the store or the catalog, or by `StepFailed`;
        no such error is raised."""
        made, measured, began = Step(name), Measurement(), time.perf_counter()
        self.done.append(made)
        with ExitStack() as stack:
            for store in self._counted:
                stack.enter_context(store.measure(measured))
            try:
                yield made
            except StepSkipped as reason:
                made.status, made.found = SKIPPED, str(reason)
            except (StepFailed, StoreError, CatalogError, ValueError, TimeoutError) as error:
                made.status, made.found = FAILED, str(error) or type(error).__name__
        made.seconds = time.perf_counter() - began
        made.calls.update(call.kind for call in measured.trace)

    @property
    def failed(self) -> bool:
        """Whether a step failed."""
        return any(step.status == FAILED for step in self.done)

    def cost(self, scheme: str) -> float | None:
        """Returns an estimate of what the counted calls cost in dollars, by `tools.bench.prices`; None for a store
        without prices. Listings cost as much as writes, deletions nothing."""
        prices = PRICES.get(scheme)
        if prices is None:
            return None
        calls = sum((step.calls for step in self.done), Counter[str]())
        return ((calls["put"] + calls["list"]) * prices.put + calls["get"] * prices.get) / 1_000


def require(held: bool, otherwise: str) -> None:
    """Raises `StepFailed` with this text unless the condition holds."""
    if not held:
        raise StepFailed(otherwise)
