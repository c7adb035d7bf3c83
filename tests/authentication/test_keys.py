"""The keys that sign tokens: several at once, read where an operator keeps them, and never told to anybody."""

import logging
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arco_catalog.authentication.keys import (
    EMPTY_RETRY_MS,
    MAX_AGE_MS,
    MAX_KEYS,
    RETRY_MS,
    KeySource,
    from_file,
    from_secret_store,
    from_text,
    parse_keys,
)
from arco_catalog.iceberg.errors import Unavailable
from storage_backends import StoreUnavailable
from tests.support.fake_runtime import FakeRuntime

OLD = "old-key-old-key-old-key-0123456789abcdef"
NEW = "new-key-new-key-new-key-0123456789abcdef"


def test_the_first_key_signs_and_each_is_found_by_its_id() -> None:
    keys = parse_keys(f"{NEW}\n{OLD}\n")
    assert keys.newest.secret == NEW.encode()
    assert [keys.find(key.id) for key in keys.keys] == [*keys.keys]
    assert keys.find("0" * 16) is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "expected 1 to 8"),
        (" \n,", "expected 1 to 8"),
        ("x" * 31, "31 bytes"),
        (f"{NEW},short", "key 2 for tokens has 5 bytes"),
        ("0" * 64, "not random"),
        ("ab" * 32, "not random"),
        (",".join(f"{number}{NEW}" for number in range(MAX_KEYS + 1)), "expected 1 to 8"),
    ],
)
def test_weak_keys_are_refused_and_not_quoted(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why) as refused:
        parse_keys(text)
    assert not any(part and part in str(refused.value) for part in text.split(",") if len(part) > 5)


@given(st.lists(st.text("abcdefghijklmnopqrstuvwxyz0123456789+/="), min_size=1, max_size=MAX_KEYS))
def test_a_key_is_never_shown_and_ids_tell_keys_apart(endings: list[str]) -> None:
    texts = [OLD + ending for ending in endings]
    keys = parse_keys(",".join(texts))
    assert not any(text in repr(keys) or text in str(keys.keys) for text in texts)
    assert len({key.id for key in keys.keys}) == len(set(texts)) == len(keys.keys)


class Asked:
    """Where keys are read, with the number of times that they were."""

    def __init__(self, text: str) -> None:
        self.text: str | Exception = text
        self.times = 0

    async def __call__(self) -> bytes:
        self.times += 1
        if isinstance(self.text, Exception):
            raise self.text
        return self.text.encode()


async def test_keys_are_read_once_and_again_when_they_are_old() -> None:
    runtime, asked = FakeRuntime(), Asked(OLD)
    source = KeySource(asked, runtime.now_ms)
    assert asked.times == 0
    for age in (0, MAX_AGE_MS - 1):
        runtime.ms += age
        assert (await source.current()).newest.secret == OLD.encode()
    assert asked.times == 1
    asked.text = f"{NEW},{OLD}"
    runtime.ms += 1
    assert (await source.current()).newest.secret == NEW.encode()
    assert asked.times == 2


async def test_a_key_that_is_not_known_is_looked_for_now_and_then() -> None:
    runtime, asked = FakeRuntime(), Asked(OLD)
    source, wanted = KeySource(asked, runtime.now_ms), parse_keys(NEW).newest
    await source.current()
    asked.text = f"{OLD},{NEW}"
    for _ in range(100):
        assert await source.find(wanted.id) is None
    assert asked.times == 1
    runtime.ms += RETRY_MS
    assert await source.find(wanted.id) == wanted
    assert asked.times == 2


@pytest.mark.parametrize("failure", [OSError("gone"), StoreUnavailable("down"), ValueError("weak")])
async def test_old_keys_serve_on_while_new_ones_cannot_be_read(
    failure: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    runtime, asked = FakeRuntime(), Asked(OLD)
    source = KeySource(asked, runtime.now_ms)
    await source.current()
    asked.text = failure
    runtime.ms += MAX_AGE_MS
    with caplog.at_level(logging.ERROR):
        for _ in range(50):
            assert (await source.current()).newest.secret == OLD.encode()
    assert asked.times == 2
    assert [str(failure) in record.getMessage() for record in caplog.records] == [True]


async def test_without_any_keys_the_server_is_unavailable_and_says_no_more() -> None:
    source = KeySource(Asked("short-and-secret"), FakeRuntime().now_ms)
    with pytest.raises(Unavailable) as refused:
        await source.current()
    assert "short-and-secret" not in str(refused.value)


async def test_without_any_keys_they_are_not_asked_for_with_each_token() -> None:
    runtime, asked = FakeRuntime(), Asked(OLD)
    asked.text = StoreUnavailable("down")
    source = KeySource(asked, runtime.now_ms)
    for _ in range(100):
        with pytest.raises(Unavailable):
            await source.find("forged")
    assert asked.times == 1
    asked.text = OLD
    runtime.ms += EMPTY_RETRY_MS
    assert (await source.current()).newest.secret == OLD.encode()
    assert asked.times == 2


@pytest.mark.parametrize("body", [b"\xff" * 64, b"short-and-secret"])
async def test_a_file_that_holds_no_keys_is_not_quoted_in_the_log(
    tmp_path: Path, body: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "keys"
    file.write_bytes(body)
    with pytest.raises(Unavailable):
        await KeySource(from_file(str(file)), FakeRuntime().now_ms).current()
    assert "short-and-secret" not in caplog.text
    assert "0xff" not in caplog.text


async def test_a_file_and_a_variable_give_the_same_keys(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text(f"{NEW}\n{OLD}\n")
    now: Callable[[], int] = FakeRuntime().now_ms
    assert (
        await KeySource(from_file(str(file)), now).current()
        == await KeySource(from_text(f"{NEW},{OLD}"), now).current()
    )


async def test_a_secret_store_is_asked_for_its_reference() -> None:
    with pytest.raises(Unavailable):
        await KeySource(from_secret_store("nowhere", {}, FakeRuntime().now_ms), FakeRuntime().now_ms).current()
