"""Secrets are kept so that whoever reads them learns nothing, and checked so that whoever guesses learns nothing."""

import asyncio
import hashlib
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arco_catalog.authentication import secrets as module
from arco_catalog.authentication.secrets import (
    MAX_LENGTH,
    SCRYPT,
    SHA256,
    Secrets,
    fingerprint,
    is_generated,
    new_client_id,
    new_secret,
)
from arco_catalog.iceberg.errors import IllegalArgument, TooManyRequests
from arco_catalog.state.realm import Secret
from arco_catalog.state.runtime import SystemRuntime
from tests.authentication.realm import with_secret

entropy = SystemRuntime().entropy
CHOSEN = "correct horse battery staple"


class Dice:
    """Random bytes that a test can foresee."""

    def __init__(self) -> None:
        self.thrown = 0

    def __call__(self, size: int) -> bytes:
        self.thrown += 1
        return hashlib.sha512(self.thrown.to_bytes(4, "big")).digest()[:size]


@pytest.fixture
def cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """scrypt at a cost that a test can pay a hundred times."""
    monkeypatch.setattr(module, "_COST", 2)
    monkeypatch.setattr(module, "_PARALLEL", 1)


def test_a_generated_secret_has_256_bits_and_an_id_128() -> None:
    assert len(bytes.fromhex(new_secret(entropy))) == 32
    assert len(bytes.fromhex(new_client_id(entropy))) == 16
    assert new_secret(entropy) != new_secret(entropy)
    assert is_generated(new_secret(entropy))
    assert not is_generated(new_client_id(entropy))


async def test_a_kept_secret_is_found_and_no_other_is() -> None:
    secrets = Secrets(Dice())
    one, two = new_secret(entropy), new_secret(entropy)
    kept = await secrets.keep(one)

    assert kept.scheme == SHA256
    assert await secrets.check(one, [kept]) == kept
    assert await secrets.check(two, [kept]) is None
    assert one not in str(kept.json)


async def test_a_chosen_secret_is_kept_as_scrypt_at_its_full_cost() -> None:
    secrets = Secrets(Dice())
    kept = await secrets.keep(CHOSEN)

    expected = hashlib.scrypt(
        CHOSEN.encode(), salt=bytes.fromhex(kept.salt), n=16384, r=8, p=5, maxmem=32 << 20, dklen=32
    )
    assert (kept.scheme, kept.digest) == (SCRYPT, expected.hex())


@pytest.mark.usefixtures("cheap")
async def test_two_are_valid_at_once_and_the_third_ends_the_first() -> None:
    secrets, presented = Secrets(Dice()), [new_secret(entropy), CHOSEN, new_secret(entropy), "another of my own"]
    valid: tuple[Secret, ...] = ()
    for number, secret in enumerate(presented):
        valid = with_secret(valid, await secrets.keep(secret, valid))
        found = [await secrets.check(each, valid) is not None for each in presented[: number + 1]]
        assert found == [number - each < 2 for each in range(number + 1)]


@pytest.mark.usefixtures("cheap")
async def test_two_chosen_secrets_are_checked_by_one_derivation(monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = Secrets(Dice())
    first = await secrets.keep("one")
    both = with_secret([first], await secrets.keep("two", [first]))
    derived = count_derivations(monkeypatch)

    assert await secrets.check("one", both) == first
    assert len(derived) == 1


def count_derivations(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    derived: list[str] = []
    real = module._scrypt

    def counted(salt: bytes, secret: str) -> bytes:
        derived.append(threading.current_thread().name)
        return real(salt, secret)

    monkeypatch.setattr(module, "_scrypt", counted)
    return derived


@pytest.mark.usefixtures("cheap")
@pytest.mark.parametrize("known", ["nobody", "generated", "chosen", "both"])
@pytest.mark.parametrize(("presented", "derivations"), [("a" * 64, 0), ("guess", 1), ("A" * 64, 1)])
async def test_a_check_costs_the_same_whoever_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, known: str, presented: str, derivations: int
) -> None:
    secrets = Secrets(Dice())
    generated, chosen = await secrets.keep(new_secret(entropy)), await secrets.keep(CHOSEN)
    kept = {"nobody": (), "generated": (generated,), "chosen": (chosen,), "both": (generated, chosen)}[known]
    derived, hashed = count_derivations(monkeypatch), list[str]()
    real = module._sha256

    def counted(salt: bytes, secret: str) -> bytes:
        hashed.append(secret)
        return real(salt, secret)

    monkeypatch.setattr(module, "_sha256", counted)

    assert await secrets.check(presented, kept) is None
    assert (len(derived), len(hashed)) == (derivations, 1 - derivations)


@pytest.mark.usefixtures("cheap")
async def test_a_secret_is_derived_in_a_thread_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    derived = count_derivations(monkeypatch)
    await asyncio.gather(*(Secrets(Dice()).check(f"guess {number}", ()) for number in range(4)))
    assert [name.rpartition("_")[0] for name in derived] == ["arco-secrets"] * 4
    assert len(set(derived)) == 1


async def test_more_checks_than_may_wait_are_turned_away_and_the_others_are_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    let_go = threading.Event()
    monkeypatch.setattr(module, "_scrypt", lambda salt, secret: let_go.wait(60) and bytes(32))
    secrets = Secrets(Dice(), waiting=2)
    checks = [asyncio.create_task(secrets.check(f"guess {number}", ())) for number in range(6)]
    await asyncio.sleep(0)  # each has begun

    with pytest.raises(TooManyRequests) as refused:
        await secrets.check("one more", ())
    let_go.set()
    results = await asyncio.gather(*checks, return_exceptions=True)

    assert refused.value.retry_after == 2
    assert [result is None for result in results] == [True] * 3 + [False] * 3
    assert all(result is None or isinstance(result, TooManyRequests) for result in results)
    assert await secrets.check("and again", ()) is None


async def test_a_check_whose_caller_left_holds_its_place_until_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    let_go = threading.Event()
    monkeypatch.setattr(module, "_scrypt", lambda salt, secret: let_go.wait(60) and bytes(32))
    secrets = Secrets(Dice(), waiting=0)
    left = asyncio.create_task(secrets.check("guess", ()))
    await asyncio.sleep(0)
    left.cancel()
    await asyncio.gather(left, return_exceptions=True)

    with pytest.raises(TooManyRequests):
        await secrets.check("guess", ())
    let_go.set()
    for _ in range(1000):
        if not secrets._under_way:
            break
        await asyncio.sleep(0.01)
    assert await secrets.check("guess", ()) is None


@pytest.mark.parametrize("secret", ["", "x" * (MAX_LENGTH + 1), "line\nbreak", "nul\0"])
async def test_a_secret_that_nobody_could_present_is_not_kept(secret: str) -> None:
    with pytest.raises(IllegalArgument):
        await Secrets(Dice()).keep(secret)


async def test_an_endless_secret_is_not_even_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    derived = count_derivations(monkeypatch)
    assert await Secrets(Dice()).check("x" * (1 << 20), ()) is None
    assert derived == []


@pytest.mark.usefixtures("cheap")
@settings(max_examples=60)
@given(st.lists(st.text(max_size=8) | st.from_regex(r"\A[0-9a-f]{64}\Z"), min_size=1, max_size=4), st.data())
def test_what_is_presented_is_found_if_and_only_if_it_is_kept(texts: list[str], data: st.DataObject) -> None:
    async def law() -> None:
        secrets = Secrets(Dice())
        valid: tuple[Secret, ...] = ()
        keepable = [text for text in texts if text and text.isprintable()]
        for text in keepable:
            valid = with_secret(valid, await secrets.keep(text, valid))
        presented = data.draw(st.sampled_from(texts) | st.text(max_size=8))
        found = await secrets.check(presented, valid)
        assert (found is not None) == (presented in keepable[-2:])
        assert found is None or found in valid

    asyncio.run(law())


async def test_fingerprints_tell_secrets_apart_and_nothing_of_them() -> None:
    secrets, secret = Secrets(Dice()), new_secret(entropy)
    one, two = await secrets.keep(secret), await secrets.keep(secret)
    assert fingerprint(one) != fingerprint(two)
    assert fingerprint(one) not in one.digest
