"""The errors of requests.

    CatalogError
    +-- Refusal                     definite: nothing was or will be changed; may be stored and replayed
    |   +-- BadRequest              the request is malformed or not allowed
    |   |   +-- IllegalArgument     the same, under the name that Java clients turn into IllegalArgumentException
    |   |   +-- MetadataTooLarge    a metadata file is larger than this catalog takes
    |   +-- PayloadTooLarge         of the request
    |   +-- AnswerTooLarge          the answer is larger than the host can carry
    |   +-- Forbidden
    |   +-- UnknownPrincipal        the caller's principal was dropped
    |   +-- NoSuchWarehouse, NoSuchNamespace, NoSuchTable, NoSuchView, NoSuchFunction, NoSuchRoute
    |   +-- NoSuchPolicy, NoSuchMapping
    |   +-- PolicyInUse, PolicyVersionMismatch, ConflictPolicyAttachment
    |   +-- NotFound                a file that the catalog names is gone
    |   +-- MethodNotAllowed
    |   +-- Unsupported             understood, and not done here
    |   +-- AlreadyExists
    |   +-- NamespaceNotEmpty
    |   +-- CommitFailed            a requirement does not hold
    |   +-- Unprocessable
    +-- NotAuthorized               the caller's credentials are not accepted; never stored
    +-- TooManyRequests             of a kind that is bounded; nothing was done
    +-- KeyReused, KeyInProgress    refusals of an idempotency key itself; never stored
    +-- Unavailable                 nothing was done; try again
    +-- CommitStateUnknown          it may have been done, or may yet be
    +-- InternalError               our own fault

The HTTP layer maps each class to a status and to the type name of the Iceberg REST specification, in one table.
"""

from collections.abc import Sequence
from typing import Literal

MESSAGE_LENGTH = 8 << 10
"""Characters of a message: enough for the longest name of a namespace and more. Markers store the messages of
answers."""


class CatalogError(Exception):
    """Root of all errors in answers to clients. `message` is for people, holds no secret, and is cut if it quotes a
    client at length."""

    def __init__(self, message: str) -> None:
        if len(message) > MESSAGE_LENGTH:
            message = f"{message[:MESSAGE_LENGTH]}..."
        super().__init__(message)
        self.message = message


class Refusal(CatalogError):
    """A definite no, the same whenever it is read again under its idempotency key. `denied` is the privilege that the
    caller lacks, and on what, by its type and id, where that is why: for logs, which name nothing."""

    denied: tuple[str, str] | None = None


class BadRequest(Refusal):
    """The request is malformed or not allowed."""


class IllegalArgument(BadRequest):
    """A bad request under the type name that Java clients turn into `IllegalArgumentException`."""


class MetadataTooLarge(BadRequest):
    """A metadata file, unpacked, has more bytes than this catalog takes."""


class PayloadTooLarge(Refusal):
    """The body has more bytes than a request may have."""


class UnsupportedMediaType(Refusal):
    """The body has another content type than the route accepts, or none."""


class AnswerTooLarge(Refusal):
    """The answer, or that to a change, is more than the host of this catalog can carry."""


class Forbidden(Refusal):
    """The principal may not do this."""


class UnknownPrincipal(Refusal):
    """The principal of a valid token, or the secret that the token was given for, does not exist (any more)."""


class NoSuchWarehouse(Refusal):
    """No warehouse has this name."""


class NoSuchNamespace(Refusal):
    """No namespace has this name."""


class NoSuchTable(Refusal):
    """No table has this name."""


class NoSuchView(Refusal):
    """No view has this name."""


class NoSuchFunction(Refusal):
    """No function has this name."""


class NoSuchPolicy(Refusal):
    """No policy has this name."""


class NoSuchSemanticModel(Refusal):
    """No semantic model has this name."""


class SemanticModelVersionMismatch(Refusal):
    """The semantic model is not at the version that a change was made for."""


class NoSuchMapping(Refusal):
    """The policy is not attached to this."""


class PolicyInUse(Refusal):
    """The policy is attached to something."""


class PolicyVersionMismatch(Refusal):
    """The policy is not at the version that a change was made for."""


class ConflictPolicyAttachment(Refusal):
    """Another policy of the type is attached to the same, and only one can be inherited."""


class NoSuchRoute(Refusal):
    """No endpoint has this path."""


class NotFound(Refusal):
    """A file that the catalog names is gone."""


class MethodNotAllowed(Refusal):
    """The endpoint exists, but not for this method; it is there for those that are `allowed`."""

    def __init__(self, message: str, allowed: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.allowed = allowed


class Unsupported(Refusal):
    """Understood, and not done here."""


class AlreadyExists(Refusal):
    """The name is taken."""


class NamespaceNotEmpty(Refusal):
    """The namespace still holds something."""


class CommitFailed(Refusal):
    """A requirement does not hold, or a location is taken."""


class Unprocessable(Refusal):
    """Well-formed, and contradictory."""


class NotAuthorized(CatalogError):
    """Nothing valid shows who the caller is."""


class TooManyRequests(CatalogError):
    """More requests of one kind are under way than are let in; nothing was done: come back in `retry_after` seconds."""

    def __init__(self, message: str, retry_after: int = 1) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class KeyReused(CatalogError):
    """The idempotency key belongs to another request."""


class KeyInProgress(CatalogError):
    """Another request with this key is under way: come back in `retry_after` seconds."""

    def __init__(self, message: str, retry_after: int = 1) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Unavailable(CatalogError):
    """Nothing was changed, and the store did not answer: the same request may be sent again."""


class CatalogChanged(Unavailable):
    """The catalog's own settings are not what this process took them for: nothing was done."""


UnknownReason = Literal[
    "store-timeout",
    "evidence-lost",
    "undecided",
    "result-lost",
    "request-lost",
    "forbidden",
    "key-expired",
    "key-settings",
    "read-only",
    "internal",
]
"""Why an outcome is unknown (docs/observability.md#unknown-outcomes)."""


class CommitStateUnknown(CatalogError):
    """The change may have been made, or may yet be made. Never answered as anything else. `reason` is for logs and
    metrics."""

    def __init__(self, message: str, reason: UnknownReason = "store-timeout") -> None:
        super().__init__(message)
        self.reason: UnknownReason = reason


class PurgeFailed(CatalogError):
    """The table was dropped, and the purge for whose end the drop waited has failed: files are left."""


class InternalError(CatalogError):
    """The catalog's own state or code is at fault."""
