"""What whoever is let in may do, where the store has a realm and where it has none
(docs/design/access.md#without-a-realm).

| authenticators | realm | `ARCO_AUTHORIZATION=on` | `off` |
| --- | --- | --- | --- |
| `none` | no, yes | everything | everything |
| others | yes | what was granted | everything |
| others | no | nothing | everything |
| not said | no | everything | everything |
| not said | yes | nothing | everything |
"""

from collections.abc import Mapping
from enum import Enum, auto

from arco_catalog.config.variables import AUTHORIZATION


class Authorization(Enum):
    """What whoever is let in may do."""

    EVERYTHING = auto()
    """Nobody asks for grants."""
    GRANTED = auto()
    """What was granted in the realm."""
    NOTHING = auto()
    """Neither can grants be judged, nor was it said that there are to be none."""


def is_off(environment: Mapping[str, str]) -> bool:
    """Whether it was written out that nobody asks for grants. Raises `ValueError`."""
    return AUTHORIZATION.read(environment) == "off"


def authorization(asks: bool | None, *, has_realm: bool, off: bool) -> Authorization:
    """What the table above says. `asks` is whether callers are authenticated, None if that was not said: then whoever
    reaches the server, or passes its gateway, is let in."""
    if off or asks is False:
        return Authorization.EVERYTHING
    if has_realm:
        return Authorization.GRANTED if asks else Authorization.NOTHING
    return Authorization.NOTHING if asks else Authorization.EVERYTHING
