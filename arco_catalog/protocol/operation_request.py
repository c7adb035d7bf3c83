"""A request as operations get it: principal, method and path, deadline and idempotency key."""

import re
from dataclasses import field

from arco_catalog.iceberg.errors import BadRequest, CommitStateUnknown
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.planning.answer_limit import AnswerLimit
from arco_catalog.state.key_settings import Dialect, KeyPolicy, KeySettings
from arco_catalog.state.marker import RequestIdentity, key_hash, payload_hash
from arco_catalog.state.memory import Hold
from storage_backends.lazy_dataclass import dataclass

_UUID_V7 = r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
_POLARIS_KEY = r"[a-zA-Z0-9][a-zA-Z0-9_.-]{0,254}"

DAY_MS = 24 * 60 * 60 * 1000
KEY_AHEAD_MS = 5 * 60 * 1000
"""How far in the future a key's time may lie."""


ANONYMOUS = "anonymous"
"""The principal of every request, where nothing in front of the catalog authenticates."""


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """A well-formed idempotency key. `made_ms` is the time that a UUIDv7 contains; None in dialects whose keys contain
    no time. `enabled_ms` is the time since which the catalog has read keys without a break; 0 if there was no break,
    and for a key that is read by a previous policy."""

    text: str
    dialect: Dialect
    made_ms: int | None
    enabled_ms: int = 0

    @classmethod
    def parse(cls, text: str, dialect: Dialect, enabled_ms: int = 0) -> "IdempotencyKey":
        """Returns the key in the text of an `Idempotency-Key` header, by the rules of a dialect: a UUIDv7, which is
        changed to lower case, or, in the Polaris dialect, a text of 1 to 255 ASCII letters, digits, dots, dashes and
        underscores that begins with a letter or digit. Raises `BadRequest` if the text breaks the rules. Does not judge
        the key's time: `refusal` does."""
        if dialect is Dialect.POLARIS:
            if not re.fullmatch(_POLARIS_KEY, text):
                raise BadRequest(
                    "Idempotency-Key must be 1 to 255 letters, digits, dots, dashes or underscores, and begin with a "
                    "letter or a digit"
                )
            return cls(text, dialect, None, enabled_ms)
        if not re.fullmatch(_UUID_V7, text, re.IGNORECASE):
            raise BadRequest(f"Idempotency-Key must be a UUIDv7 (RFC 9562), not {text[:64]!r}")
        return cls(text.lower(), dialect, int(text.replace("-", "")[:12], 16), enabled_ms)

    def refusal(self, now_ms: int) -> BadRequest | CommitStateUnknown | None:
        """Returns the error for a key that has no marker and that must not be executed at `now_ms`, the store's time;
        None if it may be (docs/design/idempotency.md#rule-7). `CommitStateUnknown`: the key is older than a day, so the
        request may have been applied and the marker deleted since, or of a time when the catalog read no keys, so it
        may have been applied without a marker. `BadRequest`: the key is more than five minutes in the future. A key
        without a time is always good."""
        if self.made_ms is not None and self.made_ms < self.enabled_ms <= now_ms:
            return CommitStateUnknown(
                "Idempotency-Key was made while this catalog read no keys, so its request may have been applied "
                "without a record of the key. Look whether the change is there before you make it with a new key",
                "key-settings",
            )
        if self.made_ms is None or -KEY_AHEAD_MS <= now_ms - self.made_ms <= DAY_MS:
            return None
        if self.made_ms > now_ms:
            return BadRequest(
                "Idempotency-Key is more than five minutes in the future, by the time in the UUIDv7: correct the "
                "client's clock, and send the request with a new key"
            )
        message = (
            "Idempotency-Key is older than a day: whether its request was applied is no longer known. Look whether "
            "the change is there before you make it with a new key"
        )
        return CommitStateUnknown(message, "key-expired")


@dataclass(slots=True)  # not frozen: made for every request, and that would cost three times as much
class OperationRequest:
    """A request as operations get it. `path` and `query` are canonical (decoded); `body` is what was parsed; `source`
    is what receipts record about the origin of the request; `deadline_ms` is a wall-clock time; `answer_limit` is the
    largest answer that the host can return, None for no limit; `body_bytes` is how long the body was: work on a long
    one is done in a worker thread; `role_session` distinguishes callers with one principal, by the session of an
    assumed role or the id of the principal that acts for this one; `name` is the principal's in the realm, if it has
    one; `id` is the request's in telemetry; `hold` is what the request takes of the process's memory; `attempts` are
    its own whose slots were sent to its key's marker. `key_text` is the header as it came, from which `key` is resolved
    by `key_settings`, those of the catalog; `key_policy` is the server's, which is recorded where the catalog has no
    record."""

    method: str
    path: str
    query: str
    body: JsonValue
    principal: str
    source: JsonObject
    deadline_ms: int
    key: IdempotencyKey | None = None
    answer_limit: AnswerLimit | None = None
    body_bytes: int = 0
    role_session: str | None = None
    name: str | None = None
    id: str | None = None
    hold: Hold = field(default_factory=Hold, compare=False)
    attempts: set[str] = field(default_factory=set, compare=False)
    key_text: str | None = None
    key_policy: KeyPolicy | None = None
    key_settings: KeySettings | None = None

    @property
    def by(self) -> JsonObject:
        """The caller, as receipts and other stored records name it: the principal, by name and id if it has a name in
        the realm, `role_session` as the session if there is one, and the source of the change."""
        session: JsonObject = {} if self.role_session is None else {"session": self.role_session}
        if self.name is not None:
            return {"principal": self.name, "principal_id": self.principal, **session, "source": self.source}
        return {"principal": self.principal, **session, "source": self.source}

    @property
    def description(self) -> JsonObject:
        """The request, as receipts and other stored records describe it: method, path, the id if it has one, and with a
        key the hash of the idempotency key, instead of the key, which may be a secret."""
        known: JsonObject = {} if self.id is None else {"id": self.id}
        keyed: JsonObject = {} if self.key is None else {"idempotency_key_hash": self.key_hash()}
        return {"method": self.method, "path": self.path, **known, **keyed}

    def identity(self) -> RequestIdentity:
        """Returns the identity of the request, which its marker records. Raises `BadRequest` if the body has no
        canonical form."""
        try:
            payload = payload_hash(self.body)
        except ValueError as error:
            raise BadRequest(
                f"The request body cannot be written as canonical JSON (RFC 8785), as an Idempotency-Key needs: {error}"
            ) from error
        return RequestIdentity(self.method, self.path, self.query, payload, self.principal)

    def key_hash(self) -> str:
        """Returns the hash that names the marker of the request's key, which it must have."""
        assert self.key is not None
        return self.marker_hash(self.key)

    def marker_hash(self, key: IdempotencyKey) -> str:
        """Returns the hash that names a key's marker for this request. In the Polaris dialect, whose keys anybody may
        guess, it covers method and path too, and the principal unless it is anonymous."""
        if key.dialect is not Dialect.POLARIS:
            return key_hash("", key.text)
        principal = "" if self.principal == ANONYMOUS else f"\n{self.principal}"
        return key_hash(f"{self.method} {self.path}{principal}", key.text)

    def earlier_key_hash(self) -> str | None:
        """Returns the name of the marker of the request's key by the rule of older versions, which left the principal
        out; None if it is the same, as it is for anonymous requests and for keys that are not of the Polaris
        dialect."""
        assert self.key is not None
        if self.key.dialect is not Dialect.POLARIS or self.principal == ANONYMOUS:
            return None
        return key_hash(f"{self.method} {self.path}", self.key.text)
