"""The checks of `arco doctor URL`: each finds a store that breaks what it is about, and all of them end and tidy up."""

import asyncio
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from storage_backends import (
    ABSENT,
    ANY,
    Applied,
    Cursor,
    Found,
    Matches,
    Missing,
    Outcome,
    Page,
    PreconditionFailed,
    StoreDenied,
    Unchanged,
    Unknown,
    Version,
    When,
)
from storage_backends.clock import system_now_ms
from storage_backends.conformance import examine as running
from storage_backends.conformance.check import Check, Finding, Grade
from storage_backends.conformance.checks import CHECKS
from storage_backends.conformance.examine import examine
from storage_backends.memory import MemoryStore
from storage_backends.wire.http1 import Response
from tests.storage_backends.test_negative_control import Answers, Ignores
from tests.support.scripted_store import DOWN, Rule, ScriptedStore, delete, put

FOLDER = "_probe/test"
DATED = Response(200, {"date": "Sun, 22 Nov 2026 12:00:00 GMT", "x-amz-request-id": "1"}, b"")


class Invents(MemoryStore):
    """Has every object that is read."""

    async def get(self, key: str, if_changed_from: Version | None = None) -> Found | Unchanged | Missing:
        return Found(b"", Version("1"), 0, 0)


class Mistells(MemoryStore):
    """Answers with other versions, bodies or parts than it has."""

    def __init__(self, *, version: str = "", cut: int | None = None, longer: int = 0) -> None:
        super().__init__()
        self._version, self._cut, self._longer = version, cut, longer

    async def get(self, key: str, if_changed_from: Version | None = None) -> Found | Unchanged | Missing:
        found = await super().get(key, if_changed_from)
        if not isinstance(found, Found):
            return found
        return replace(found, version=Version(found.version + self._version), body=found.body[: self._cut])

    async def get_range(self, key: str, start: int, length: int) -> Found | Missing:
        return await super().get_range(key, start, length + self._longer)


class NeverReplaces(MemoryStore):
    """Refuses every write on a version."""

    async def put(self, key: str, body: bytes, when: When) -> Outcome:
        return PreconditionFailed(None, 0) if isinstance(when, Matches) else await super().put(key, body, when)


class Reads(MemoryStore):
    """Answers never, or always, that nothing has changed."""

    def __init__(self, *, unchanged: bool) -> None:
        super().__init__()
        self._unchanged = unchanged

    async def get(self, key: str, if_changed_from: Version | None = None) -> Found | Unchanged | Missing:
        if self._unchanged and if_changed_from is not None:
            return Unchanged(system_now_ms())
        return await super().get(key)


class Normalises(MemoryStore):
    """Takes a plus for a space, as a form does."""

    async def put(self, key: str, body: bytes, when: When) -> Outcome:
        return await super().put(unicodedata.normalize("NFKC", key.replace("+", " ")), body, when)

    async def get(self, key: str, if_changed_from: Version | None = None) -> Found | Unchanged | Missing:
        return await super().get(unicodedata.normalize("NFKC", key.replace("+", " ")), if_changed_from)


class Lists(MemoryStore):
    """Lists what was deleted, in another order, or one page only."""

    def __init__(self, *, stale: bool = False, backwards: bool = False, pages: int | None = None) -> None:
        super().__init__()
        self._stale, self._backwards, self._pages = stale, backwards, pages

    async def delete(self, key: str, when: When = ANY) -> Outcome:
        return Applied(Version(""), 0) if self._stale else await super().delete(key, when)

    async def list(self, prefix: str, after: Cursor | None = None) -> Page:
        page = await super().list(prefix, after)
        entries = [*reversed(page.entries)] if self._backwards else page.entries
        return replace(page, entries=entries, after=None if self._pages == 1 else page.after)


class Recounts(MemoryStore):
    """Numbers the versions of each object from 1, again after a deletion."""

    def __init__(self) -> None:
        super().__init__()
        self._bodies: dict[str, tuple[bytes, int]] = {}

    async def get(self, key: str, if_changed_from: Version | None = None) -> Found | Unchanged | Missing:
        body, number = self._bodies.get(key, (b"", 0))
        return Found(body, Version(str(number)), 0, 0) if number else Missing(0)

    async def put(self, key: str, body: bytes, when: When) -> Outcome:
        number = self._bodies.get(key, (b"", 0))[1]
        if (when == ABSENT and number) or (isinstance(when, Matches) and when.version != str(number)):
            return PreconditionFailed(None, 0)
        self._bodies[key] = (body, number + 1)
        return Applied(Version(str(number + 1)), 0)

    async def delete(self, key: str, when: When = ANY) -> Outcome:
        self._bodies.pop(key, None)
        return Applied(Version(""), 0)


class ChecksThenActs(MemoryStore):
    """Looks whether the condition holds, lets others look too, and writes."""

    async def put(self, key: str, body: bytes, when: When) -> Outcome:
        current = await super().get(key)
        version = current.version if isinstance(current, Found) else None
        if (when == ABSENT and version is not None) or (isinstance(when, Matches) and when.version != version):
            return PreconditionFailed(version, system_now_ms())
        for _ in range(20):
            await asyncio.sleep(0)
        return await super().put(key, body, ANY)


def late() -> int:
    return system_now_ms() - 60_000


Maker = Callable[[], MemoryStore]
FAILING: Sequence[tuple[str, Maker, Grade, str]] = (
    ("read what is missing", Invents, Grade.FAILED, "never written was found"),
    ("the store's time", lambda: MemoryStore(late), Grade.FAILED, "clock is 60.0 s behind"),
    (
        "create",
        lambda: Answers(PreconditionFailed(None, 0)),
        Grade.FAILED,
        "was not reported as applied: it was refused",
    ),
    ("create", lambda: Answers(Unknown("lost")), Grade.FAILED, "unknown whether it was applied (lost)"),
    ("create", lambda: Mistells(version="x"), Grade.FAILED, "another version"),
    ("create again", lambda: Ignores("create"), Grade.FAILED, "was not reported as refused: it was applied"),
    ("replace the current version", NeverReplaces, Grade.FAILED, "was not reported as applied"),
    ("replace a stale version", lambda: Ignores("stale"), Grade.FAILED, "was not reported as refused"),
    ("replace what is missing", lambda: Ignores("missing"), Grade.FAILED, "was not reported as refused"),
    ("read what one holds", lambda: Reads(unchanged=True), Grade.FAILED, "does not return what was written since"),
    ("read what one holds", lambda: Reads(unchanged=False), Grade.LACKING, "sent again"),
    ("read a range", lambda: Mistells(longer=1), Grade.FAILED, "4 bytes from byte 3 of 10"),
    ("a body of 1 MB", lambda: Mistells(cut=65_536), Grade.FAILED, "another body"),
    ("names to be encoded", Normalises, Grade.FAILED, "was not reported as applied"),
    ("list", lambda: Lists(stale=True), Grade.FAILED, "a listing after a deletion"),
    ("order of a listing", lambda: Lists(backwards=True), Grade.LACKING, "in no order"),
    ("pages of a listing", lambda: Lists(pages=1), Grade.FAILED, "returns 1,000 objects, expected the 1,001"),
    ("delete", lambda: Lists(stale=True), Grade.FAILED, "deleted was found"),
    ("versions after a deletion", Recounts, Grade.FAILED, "was not reported as refused"),
    ("conditional delete", lambda: Ignores("delete"), Grade.LACKING, "ignored"),
    ("race to create", ChecksThenActs, Grade.FAILED, "of 8 concurrent creates"),
    ("racing updates", ChecksThenActs, Grade.FAILED, "are lost"),
)


def check(name: str) -> Check:
    return next(each for each in CHECKS if each.name == name)


async def finding(store: MemoryStore, name: str, answers: Sequence[Response] | None = None) -> Finding:
    examined = await examine(store, FOLDER, answers, costly=True, checks=[check(name)])
    return examined.findings[name]


@pytest.mark.parametrize(("name", "store", "grade", "found"), FAILING)
async def test_a_check_finds_what_breaks_it(name: str, store: Maker, grade: Grade, found: str) -> None:
    report = await finding(store(), name)

    assert report.grade is grade
    assert found in report.found


def test_every_check_has_a_store_that_it_fails_on() -> None:
    judging = {each.name for each in CHECKS if not each.measures and not each.needs_answers}
    assert judging == {name for name, *_ in FAILING}


async def test_answers_without_a_date_or_an_id_are_reported() -> None:
    bare = Response(200, {}, b"")

    assert (await finding(MemoryStore(), "the store's time", [DATED])).grade is Grade.OK
    assert "no header Date" in (await finding(MemoryStore(), "the store's time", [DATED, bare])).found
    assert (await finding(MemoryStore(), "request ids", [DATED])).found == "x-amz-request-id"
    assert (await finding(MemoryStore(), "request ids", [DATED, bare])).grade is Grade.LACKING


async def test_answers_that_ask_to_slow_down_are_counted() -> None:
    answers = [DATED, Response(503, {}, b""), Response(429, {}, b"")]
    assert (await finding(MemoryStore(), "throttling", answers)).measured == "2 of 3 answers"
    assert (await finding(MemoryStore(), "throttling")).grade is Grade.SKIPPED


async def test_a_store_that_is_well_passes_every_check() -> None:
    store = MemoryStore()
    await store.put("theirs", b"", ANY)

    examined = await examine(store, FOLDER, [DATED], costly=True)

    assert [*examined.findings] == [each.name for each in CHECKS]
    assert {each.grade for each in examined.findings.values()} == {Grade.OK}
    assert store.keys() == ["theirs"]


async def test_nothing_is_written_where_the_first_write_is_denied() -> None:
    store = ScriptedStore(system_now_ms, Rule(put(), fails=StoreDenied("403 AccessDenied")))

    examined = await examine(store, FOLDER)

    assert examined.findings["create"] == Finding(Grade.FAILED, "StoreDenied", "403 AccessDenied")
    assert examined.findings["read what is missing"].grade is Grade.OK
    assert {examined.findings[each.name].grade for each in CHECKS if each.writes} == {Grade.FAILED, Grade.SKIPPED}
    assert sum(call.method == "put" for call in store.calls) == 1
    assert examined.left_behind == []


async def test_a_store_that_fails_half_way_is_examined_to_the_end_and_cleaned() -> None:
    store = ScriptedStore(system_now_ms, Rule(put("/race/"), fails=DOWN), Rule(put("/put/"), fails=DOWN))

    examined = await examine(store, FOLDER)

    failed = {name for name, each in examined.findings.items() if each.grade is Grade.FAILED}
    assert failed == {"race to create", "time of a PUT"}
    assert store.keys() == []


async def test_throttled_updates_are_tried_again() -> None:
    store = ScriptedStore()
    store.rules = [Rule(lambda call: put("/counter")(call) and call.when != ABSENT, fails=DOWN, times=6)]
    assert (await finding(store, "racing updates")).grade is Grade.OK


async def test_what_cannot_be_removed_is_named() -> None:
    store = ScriptedStore(system_now_ms, Rule(delete("/range"), fails=DOWN))

    examined = await examine(store, FOLDER)

    assert examined.left_behind == [f"{FOLDER}/range"] == store.keys()


class Hangs(MemoryStore):
    """Does not answer some writes."""

    async def put(self, key: str, body: bytes, when: When) -> Outcome:
        if key.endswith("/large"):
            await asyncio.Event().wait()
        return await super().put(key, body, when)


async def test_a_call_that_is_never_answered_ends_its_check_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "CHECK_S", 0.1)
    only = [check(name) for name in ("create", "a body of 1 MB", "delete")]

    examined = await examine(Hangs(), FOLDER, checks=only)

    assert [each.grade for each in examined.findings.values()] == [Grade.OK, Grade.FAILED, Grade.OK]


async def test_no_check_begins_when_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "ALL_S", 0.0)
    examined = await examine(MemoryStore(), FOLDER)
    assert {each.found for each in examined.findings.values()} >= {"skipped: all checks together may take 5 minutes"}
    assert Grade.OK not in {each.grade for each in examined.findings.values()}


async def test_an_examination_that_is_cancelled_removes_what_it_wrote() -> None:
    store = Hangs()
    examining = asyncio.create_task(examine(store, FOLDER))
    for _ in range(10_000):
        await asyncio.sleep(0)
        if len(store.keys()) > 5 and not examining.done():
            break
    assert store.keys()
    examining.cancel()

    with pytest.raises(asyncio.CancelledError):
        await examining
    assert store.keys() == []
