"""Stores that follow the rules of a test: they fail, wait, run steps in between, or lose requests or responses.

    store.rules = [Rule(put("/transactions/", b'"committed"'), fails=DOWN)]

All rules that match a call apply to it, in order. `store.rules = []` ends all faults.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from storage_backends import (
    ABSENT,
    ANY,
    Cursor,
    Deleted,
    Found,
    Missing,
    Outcome,
    Page,
    StoreUnavailable,
    Unchanged,
    Unknown,
    Version,
    When,
)
from storage_backends.bulk import delete_each
from storage_backends.clock import system_now_ms
from storage_backends.local.store import LocalStore
from storage_backends.memory import MemoryStore

DOWN = StoreUnavailable("down")

Step = Callable[[], Awaitable[object]]
_Answer = TypeVar("_Answer")
_acting: ContextVar[bool] = ContextVar("_acting", default=False)


@dataclass(frozen=True)
class Call:
    """A call of a store. `body` and `when` are those of a put."""

    method: str
    key: str
    body: bytes = b""
    when: When | None = None


Match = Callable[[Call], bool]


def put(key: str = "", body: bytes = b"") -> Match:
    """A put whose key and body hold these."""
    return lambda call: call.method == "put" and key in call.key and body in call.body


def swap(key: str = "") -> Match:
    """A put that replaces a version of an object whose key holds this."""
    return lambda call: call.method == "put" and key in call.key and call.when not in (None, ABSENT, ANY)


def get(key: str = "") -> Match:
    """A get whose key holds this."""
    return lambda call: call.method == "get" and key in call.key


def delete(key: str = "") -> Match:
    """A delete whose key holds this."""
    return lambda call: call.method == "delete" and key in call.key


def anything(key: str = "") -> Match:
    """Any call whose key or prefix holds this."""
    return lambda call: key in call.key


class Nth:
    """The n-th of the calls that match, counted from when this is made."""

    def __init__(self, number: int, match: Match) -> None:
        self._number = number
        self._match = match
        self.seen = 0

    def __call__(self, call: Call) -> bool:
        self.seen += self._match(call)
        return self.seen == self._number and self._match(call)


def lost(outcome: Outcome) -> Outcome:
    """No answer, whatever came of the write."""
    return Unknown("the answer was lost")


@dataclass
class Rule:
    """The fault of calls that match, for the first `times` of them, or always.

    `first` runs before the call, and `then` between the call and its return; rules do not apply to their own calls.
    With `fails`, the exception is raised, and with `made` false nothing is done: in both cases nothing reaches the
    store. `answers` converts the true outcome of a write to the one that is returned."""

    match: Match
    first: Step | None = None
    fails: Exception | None = None
    made: bool = True
    then: Step | None = None
    answers: Callable[[Outcome], Outcome] | None = None
    times: int | None = None


class Script:
    """The rules of a store, and the calls that came to it."""

    def __init__(self) -> None:
        self.rules: list[Rule] = []
        self.calls: list[Call] = []

    async def read(self, call: Call, make: Callable[[], Awaitable[_Answer]]) -> _Answer:
        """Makes a call that changes nothing."""
        rules = await self._begin(call)
        answer = await make()
        await self._end(rules)
        return answer

    async def write(self, call: Call, make: Callable[[], Awaitable[Outcome]]) -> Outcome:
        """Makes a call whose outcome the rules may hide."""
        rules = await self._begin(call)
        outcome = await make() if all(rule.made for rule in rules) else Unknown("the request was lost")
        await self._end(rules)
        for rule in rules:
            outcome = rule.answers(outcome) if rule.answers is not None else outcome
        return outcome

    async def _begin(self, call: Call) -> list[Rule]:
        self.calls.append(call)
        if _acting.get():
            return []
        rules = [rule for rule in self.rules if rule.times != 0 and rule.match(call)]
        for rule in rules:
            if rule.times is not None:
                rule.times -= 1
            await _act(rule.first)
            if rule.fails is not None:
                raise type(rule.fails)(*rule.fails.args)  # one that was raised before holds its frames
        return rules

    async def _end(self, rules: list[Rule]) -> None:
        for rule in rules:
            await _act(rule.then)


async def _act(step: Step | None) -> None:
    if step is None:
        return
    _acting.set(True)
    try:
        await step()
    finally:
        _acting.set(False)


class ScriptedStore(MemoryStore):
    """A store in memory that follows its `rules`, and remembers the `calls` that came."""

    def __init__(self, now_ms: Callable[[], int] = system_now_ms, *rules: Rule) -> None:
        super().__init__(now_ms)
        self._script = Script()
        self.rules = [*rules]

    @property
    def calls(self) -> list[Call]:
        """All calls, oldest first."""
        return self._script.calls

    @property
    def rules(self) -> list[Rule]:
        """What becomes of calls."""
        return self._script.rules

    @rules.setter
    def rules(self, rules: list[Rule]) -> None:
        self._script.rules = rules

    async def get(self, key: str, if_changed_from: Version | None = None) -> Found | Unchanged | Missing:
        return await self._script.read(Call("get", key), partial(super().get, key, if_changed_from))

    async def put(self, key: str, body: bytes, when: When) -> Outcome:
        return await self._script.write(Call("put", key, body, when), partial(super().put, key, body, when))

    async def delete(self, key: str, when: When = ANY) -> Outcome:
        return await self._script.write(Call("delete", key), partial(super().delete, key, when))

    async def delete_many(self, keys: Sequence[str]) -> Deleted:
        """Each key by itself, so that rules befall some of them."""
        return await delete_each(keys, self.delete)

    async def list(self, prefix: str, after: Cursor | None = None) -> Page:
        return await self._script.read(Call("list", prefix), partial(super().list, prefix, after))


class ScriptedFolder(LocalStore):
    """A store in a folder whose writes follow its `rules`."""

    def __init__(self, root: str | Path, now_ms: Callable[[], int] = system_now_ms) -> None:
        super().__init__(root, now_ms)
        self._script = Script()

    @property
    def rules(self) -> list[Rule]:
        """What becomes of writes."""
        return self._script.rules

    @rules.setter
    def rules(self, rules: list[Rule]) -> None:
        self._script.rules = rules

    async def put(self, key: str, body: bytes, when: When) -> Outcome:
        return await self._script.write(Call("put", key, body, when), partial(super().put, key, body, when))
