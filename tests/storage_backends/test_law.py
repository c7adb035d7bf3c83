"""Call by call, every store that keeps its own versions does what a dict with versions does."""

import asyncio
import tempfile
from dataclasses import dataclass, field
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage_backends import (
    ABSENT,
    ANY,
    Applied,
    Found,
    Matches,
    Missing,
    ObjectStore,
    PreconditionFailed,
    Unchanged,
    Version,
    When,
)
from storage_backends.local.store import LocalStore
from storage_backends.memory import MemoryStore
from tests.storage_backends.contract import listed

Which = Literal["absent", "any", "current", "older"]


@dataclass
class Model:
    """What should be there, and every version that ever was, by key."""

    bodies: dict[str, bytes] = field(default_factory=dict)
    versions: dict[str, list[Version]] = field(default_factory=dict)

    def condition(self, key: str, which: Which) -> tuple[When, bool]:
        """A condition, and whether it holds."""
        past = self.versions.get(key, [])
        match which:
            case "absent":
                return ABSENT, key not in self.bodies
            case "any":
                return ANY, True
            case "current":
                return Matches(past[-1] if past else Version("1-1")), key in self.bodies
            case "older":
                return Matches(past[0] if past else Version("1-1")), key in self.bodies and len(past) == 1


KEYS = st.sampled_from(["a", "b/c", "b/d"])
WHICH: st.SearchStrategy[Which] = st.sampled_from(["absent", "any", "current", "older"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), KEYS, WHICH, st.sampled_from([b"", b"x", b"y"])),
        st.tuples(st.just("delete"), KEYS, WHICH.filter(lambda which: which != "absent"), st.just(b"")),
        st.tuples(st.just("get"), KEYS, WHICH.filter(lambda which: which != "any"), st.just(b"")),
    ),
    max_size=20,
)


async def step(store: ObjectStore, model: Model, call: str, key: str, which: Which, body: bytes) -> None:
    when, holds = model.condition(key, which)
    match call:
        case "put":
            outcome = await store.put(key, body, when)
            assert isinstance(outcome, Applied if holds else PreconditionFailed)
            if isinstance(outcome, Applied):
                assert outcome.version not in model.versions.setdefault(key, [])
                model.versions[key].append(outcome.version)
                model.bodies[key] = body
        case "delete":
            assert isinstance(await store.delete(key, when), Applied if holds else PreconditionFailed)
            if holds:
                model.bodies.pop(key, None)
        case _:
            held = when.version if isinstance(when, Matches) else None
            answer = await store.get(key, held)
            if key not in model.bodies:
                assert isinstance(answer, Missing)
            elif held is not None and holds:
                assert isinstance(answer, Unchanged)
            else:
                assert isinstance(answer, Found)
                assert (answer.body, answer.version) == (model.bodies[key], model.versions[key][-1])


@pytest.mark.parametrize("kind", [MemoryStore, LocalStore])
@settings(max_examples=30, deadline=None)
@given(steps=STEPS, ticks=st.integers(-2, 2))
def test_a_store_is_a_dict_with_versions(
    kind: type[MemoryStore] | type[LocalStore],
    steps: list[tuple[str, str, Which, bytes]],
    ticks: int,
) -> None:
    async def run(store: ObjectStore) -> None:
        model = Model()
        for call, key, which, body in steps:
            await step(store, model, call, key, which, body)
        entries = {entry.key: (entry.version, entry.size) for entry in await listed(store)}
        assert entries == {key: (model.versions[key][-1], len(body)) for key, body in model.bodies.items()}
        await store.close()

    time_ms = 1_000_000

    def clock() -> int:
        nonlocal time_ms
        time_ms += ticks
        return time_ms

    with tempfile.TemporaryDirectory() as root:
        asyncio.run(run(MemoryStore(clock) if kind is MemoryStore else LocalStore(root, clock)))
