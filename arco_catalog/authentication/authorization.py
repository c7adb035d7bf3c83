"""The rights of a server's callers, by its authenticators (`ARCO_AUTH`), by `ARCO_AUTHORIZATION`, and by whether the
store has a realm (docs/design/access.md#without-a-realm).

| authenticators | realm | `ARCO_AUTHORIZATION=on` | `off` |
| --- | --- | --- | --- |
| `none` | no, yes | everything | everything |
| others | yes | what was granted | everything |
| others | no | nothing | everything |
| unset | no | everything | everything |
| unset | yes | nothing | everything |
"""

from collections.abc import Mapping
from enum import Enum, auto
from typing import TYPE_CHECKING

from arco_catalog.config.variables import AUTHORIZATION, OPA_BATCH_URL, OPA_URL
from arco_catalog.state.runtime import Runtime

if TYPE_CHECKING:  # a server without a policy has no use for it
    from arco_catalog.authentication.opa import PolicyAgent, WireSend


class Authorization(Enum):
    """The rights of a server's callers: to do everything, what the realm grants, or nothing."""

    EVERYTHING = auto()
    """Grants are not checked."""
    GRANTED = auto()
    """The privileges that the realm grants."""
    NOTHING = auto()
    """No caller can have grants, without a realm or without authentication, and the check of grants is not off."""


def is_off(environment: Mapping[str, str]) -> bool:
    """Whether the configuration turns the check of grants off. Raises `ValueError` for an unknown value of the
    variable."""
    return AUTHORIZATION.read(environment) == "off"


def load_policy(environment: Mapping[str, str], runtime: Runtime) -> "tuple[PolicyAgent, WireSend] | tuple[None, None]":
    """Makes the policy that the environment's variables name, and the sender of its questions; None for both if they
    name no policy. Raises as `load_policy_agent` does."""
    if not any(environment.get(variable.name) for variable in (OPA_URL, OPA_BATCH_URL)):
        return None, None
    from arco_catalog.authentication.opa import load_policy_agent

    return load_policy_agent(environment, runtime)


def authorization(authenticates: bool | None, *, has_realm: bool, off: bool) -> Authorization:
    """Returns the rights of callers on a server, by whether it `authenticates` them, None if `ARCO_AUTH` is unset.
    `EVERYTHING` if grants are `off` or callers are not authenticated. Otherwise authenticated callers have `GRANTED`
    with a realm, and `NOTHING` without one; if `ARCO_AUTH` is unset, callers have `EVERYTHING` without a realm, and
    `NOTHING` with one."""
    if off or authenticates is False:
        return Authorization.EVERYTHING
    if has_realm:
        return Authorization.GRANTED if authenticates else Authorization.NOTHING
    return Authorization.NOTHING if authenticates else Authorization.EVERYTHING
