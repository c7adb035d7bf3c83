"""The settings by which a catalog reads idempotency keys, as HEAD records them (docs/design/idempotency.md#settings).

They decide which marker belongs to a key, so all servers of a catalog must use the same settings. After a change,
markers by the previous settings are also searched for as long as they are saved.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Self

from arco_catalog.iceberg.errors import InternalError
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state.fields import integer, objects, text
from storage_backends.lazy_dataclass import dataclass

SEARCH_MS = 48 * 60 * 60 * 1000
"""How long after a change markers of the previous policy are searched: as long as markers are saved."""


class Dialect(StrEnum):
    """The rules of idempotency keys that a catalog may follow: UUIDv7 as the Iceberg REST specification has them, or
    Polaris's (docs/design/idempotency.md#duplicates)."""

    ICEBERG = "iceberg"
    POLARIS = "polaris"


@dataclass(frozen=True, slots=True)
class KeyPolicy:
    """How a catalog reads idempotency keys: the dialect of keys, and whether it reads the header."""

    dialect: Dialect = Dialect.ICEBERG
    enabled: bool = True

    @classmethod
    def parse(cls, stored: JsonObject) -> Self:
        """Reads a policy of idempotency keys from its JSON; it is enabled unless the JSON has False. Raises
        `InternalError` for an unknown or missing dialect."""
        name = text(stored, "dialect")
        if name not in Dialect.__members__.values():
            raise InternalError(
                f"This version of the program does not know the dialect {name!r} of the catalog's idempotency "
                "keys: run the version that set it"
            )
        return cls(Dialect(name), stored.get("enabled") is not False)

    def to_json(self) -> JsonObject:
        """Returns the JSON of the policy of idempotency keys."""
        return {"dialect": self.dialect.value, "enabled": self.enabled}

    def __str__(self) -> str:
        return f"the {self.dialect.value} dialect" if self.enabled else "no idempotency keys"


@dataclass(frozen=True, slots=True)
class ReplacedPolicy:
    """A policy of idempotency keys that the catalog had, or may have had, until a time in milliseconds since 1970 of
    the store's clock."""

    policy: KeyPolicy
    until_ms: int

    @classmethod
    def parse(cls, stored: JsonObject) -> Self:
        """Reads a replaced policy of idempotency keys, with the end of its time, from its JSON. Raises
        `InternalError`."""
        return cls(KeyPolicy.parse(stored), integer(stored, "until_ms"))

    def to_json(self) -> JsonObject:
        """Returns the JSON of the replaced policy of idempotency keys, with the end of its time."""
        return {**self.policy.to_json(), "until_ms": self.until_ms}


@dataclass(frozen=True, slots=True)
class KeySettings:
    """The policy of idempotency keys that a catalog has, and other ones before it, without repetition, the last first;
    some of these it may never have used. `number` is 1 for a catalog's first settings, and one more after each
    change."""

    policy: KeyPolicy
    replaced: tuple[ReplacedPolicy, ...] = ()
    number: int = 1

    @classmethod
    def first(cls, policy: KeyPolicy, at_ms: int, *, is_new: bool) -> Self:
        """Returns the first settings of a catalog's idempotency keys. Unless the catalog `is_new`, servers of an
        earlier version may have read keys in any dialect until `at_ms`, so markers of all dialects are searched: the
        policies that read keys count as replaced then, except `policy`."""
        others = () if is_new else tuple(each for dialect in Dialect if (each := KeyPolicy(dialect)) != policy)
        return cls(policy, tuple(ReplacedPolicy(each, at_ms) for each in others))

    @classmethod
    def parse(cls, stored: JsonObject) -> Self:
        """Reads a catalog's settings of idempotency keys from their JSON. Raises `InternalError` for a wrong dialect,
        number or replaced policy. Without an array of replaced policies there are none, and items that are no objects
        are left out."""
        replaced = objects(stored, "replaced")
        return cls(KeyPolicy.parse(stored), tuple(map(ReplacedPolicy.parse, replaced)), integer(stored, "number"))

    def to_json(self) -> JsonObject:
        """Returns the JSON of the catalog's settings of idempotency keys."""
        return {**self.policy.to_json(), "number": self.number, "replaced": [each.to_json() for each in self.replaced]}

    def changed(self, policy: KeyPolicy, at_ms: int) -> "KeySettings":
        """Returns the settings of idempotency keys after a change to another policy at a time of the store's clock,
        with the next number. The policy until then becomes the first of the replaced ones, which have no policy twice,
        nor the new one."""
        others = (each for each in self.replaced if each.policy not in (policy, self.policy))
        return KeySettings(policy, (ReplacedPolicy(self.policy, at_ms), *others), self.number + 1)

    def previous_policies(self, now_ms: int) -> Sequence[KeyPolicy]:
        """Returns the previous policies, the last first, by which a request at `now_ms` must search for its marker:
        those that read keys, and were replaced less than `SEARCH_MS` before."""
        return [each.policy for each in self.replaced if each.policy.enabled and now_ms - each.until_ms < SEARCH_MS]

    @property
    def enabled_ms(self) -> int:
        """The store's time, in milliseconds since 1970, at which the last policy that read no idempotency keys was
        replaced; 0 if none was. If the present policy reads keys, they were read without a break since then."""
        return max((each.until_ms for each in self.replaced if not each.policy.enabled), default=0)

    def reads_keys(self, now_ms: int) -> bool:
        """Whether the idempotency key of a request at `now_ms` may have a marker: the present policy reads keys, or a
        previous one by which markers are still searched."""
        return self.policy.enabled or bool(self.previous_policies(now_ms))
