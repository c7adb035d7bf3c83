"""Grants are never ignored unless somebody said so, and nobody is let in whose grants can't be judged."""

import pytest

from arco_catalog.authentication.authorization import Authorization, authorization, is_off

EVERYTHING, GRANTED, NOTHING = Authorization.EVERYTHING, Authorization.GRANTED, Authorization.NOTHING
NONE, OTHERS, NOT_SAID = False, True, None


@pytest.mark.parametrize(
    ("asks", "has_realm", "expected"),
    [
        (NONE, False, EVERYTHING),
        (NONE, True, EVERYTHING),
        (OTHERS, True, GRANTED),
        (OTHERS, False, NOTHING),
        (NOT_SAID, False, EVERYTHING),
        (NOT_SAID, True, NOTHING),
    ],
)
def test_what_whoever_is_let_in_may_do(asks: bool | None, has_realm: bool, expected: Authorization) -> None:
    assert authorization(asks, has_realm=has_realm, off=False) is expected
    assert authorization(asks, has_realm=has_realm, off=True) is EVERYTHING


def test_grants_are_asked_for_unless_it_says_off() -> None:
    assert not is_off({})
    assert not is_off({"ARCO_AUTHORIZATION": "on"})
    assert is_off({"ARCO_AUTHORIZATION": "off"})
    with pytest.raises(ValueError, match="ARCO_AUTHORIZATION: expected on or off, got 'no'"):
        is_off({"ARCO_AUTHORIZATION": "no"})
