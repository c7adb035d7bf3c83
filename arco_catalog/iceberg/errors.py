"""The errors that the catalog answers requests with.

    CatalogError
    +-- Refusal                     definite: nothing was or will be changed; may be stored and replayed
    |   +-- BadRequest              the request is malformed or not allowed
    |   |   +-- IllegalArgument     the same, under the name that Java clients turn into IllegalArgumentException
    |   |   +-- MetadataTooLarge    a metadata file is larger than this catalog accepts
    |   +-- PayloadTooLarge         of the request
    |   +-- UnsupportedMediaType    of the request's body
    |   +-- AnswerTooLarge          the answer is larger than the host can carry
    |   +-- Forbidden
    |   |   +-- ForbiddenObjects    some of the objects that the request names
    |   +-- UnknownPrincipal        there is no principal with the caller's valid credentials
    |   +-- NoSuchWarehouse, NoSuchNamespace, NoSuchTable, NoSuchView, NoSuchFunction, NoSuchRoute
    |   +-- NoSuchPolicy, NoSuchMapping, NoSuchSemanticModel, NoSuchPlanId, NoSuchPlanTask
    |   +-- PolicyInUse, PolicyVersionMismatch, ConflictPolicyAttachment, SemanticModelVersionMismatch
    |   +-- NotFound                a file that the catalog names, or another object, is missing
    |   +-- MethodNotAllowed
    |   +-- Unsupported             this catalog does not support the request
    |   +-- AlreadyExists
    |   +-- NamespaceNotEmpty
    |   +-- CommitFailed            a requirement does not hold, or the object is protected
    |   +-- Unprocessable
    +-- NotAuthorized               the caller's credentials are not accepted; never stored
    +-- TooManyRequests             of a kind with a limit; nothing was done
    +-- KeyReused, KeyInProgress    refusals of an idempotency key itself; never stored
    +-- Unavailable                 nothing was done; try again
    |   +-- CatalogChanged          since this process read its settings
    +-- CommitStateUnknown          the change may have been made, or may yet be made
    +-- PurgeFailed                 the table was dropped, and not all of its files are deleted
    +-- InternalError               the catalog's own fault

The HTTP layer maps each class to a status and to the type name of the Iceberg REST specification, in one table.
"""

from collections.abc import Sequence
from typing import Literal

MESSAGE_LENGTH = 8 << 10
"""Maximum characters of a message: enough for the longest name of a namespace. Markers store the messages of
answers."""


class CatalogError(Exception):
    """Root of the errors that the catalog answers requests with. `message` is for people and has no secret; of a longer
    one `MESSAGE_LENGTH` characters are left."""

    def __init__(self, message: str) -> None:
        if len(message) > MESSAGE_LENGTH:
            message = f"{message[:MESSAGE_LENGTH]}..."
        super().__init__(message)
        self.message = message


class Refusal(CatalogError):
    """A definite refusal: the request changed nothing, and will not. It may be stored as the answer to the request's
    idempotency key, and then a repetition gets it again. If the caller needs a privilege, `denied` has that privilege,
    and the type and id of the securable: for logs, which contain no names."""

    denied: tuple[str, str] | None = None


class BadRequest(Refusal):
    """The request is malformed, or the catalog does not allow what it names."""


class IllegalArgument(BadRequest):
    """A request that is malformed or not allowed, under the type name that Java clients turn into
    `IllegalArgumentException`."""


class MetadataTooLarge(BadRequest):
    """A metadata file has, or after the change would have, more bytes, decompressed, or more JSON values than this
    catalog accepts."""


class PayloadTooLarge(Refusal):
    """The body of a request, or a lineage event as it would be stored, has more bytes or JSON values than it may
    have."""


class UnsupportedMediaType(Refusal):
    """The body of a request has another content type than the route accepts, or none."""


class AnswerTooLarge(Refusal):
    """The answer to a request, or to a load after a change, is larger than the host of this catalog can carry."""


class Forbidden(Refusal):
    """The caller may not do this: it lacks a privilege, or the server refuses such requests."""


class ForbiddenObjects(Forbidden):
    """The caller may not read some of the objects that a request names; `identifiers` are their levels, of which the
    caller may know."""

    def __init__(self, message: str, identifiers: Sequence[Sequence[str]] = ()) -> None:
        super().__init__(message)
        self.identifiers = identifiers


class UnknownPrincipal(Refusal):
    """The caller's credentials are valid, but there is no principal with them: it was dropped or never made, the secret
    of the token was replaced, or the client may no longer act for the principal."""


class NoSuchWarehouse(Refusal):
    """No catalog has the name by which the request names a warehouse, it is being dropped, or the caller may not know
    of it."""


class NoSuchNamespace(Refusal):
    """The namespace that the request names does not exist, or the caller may not know of it."""


class NoSuchTable(Refusal):
    """The table or generic table that the request names does not exist, or the caller may not know of it; also for a
    name that may be of a table or a view."""


class NoSuchView(Refusal):
    """The view that the request names does not exist, or the caller may not know of it."""


class NoSuchFunction(Refusal):
    """The function that the request names does not exist."""


class NoSuchPlanId(Refusal):
    """The plan of a scan that the request names does not exist, or not any more."""


class NoSuchPlanTask(Refusal):
    """The plan task that the request names does not exist, or not any more."""


class NoSuchPolicy(Refusal):
    """The policy that the request names does not exist, or the caller may not know of it."""


class NoSuchSemanticModel(Refusal):
    """The semantic model that the request names does not exist, or the caller may not know of it."""


class SemanticModelVersionMismatch(Refusal):
    """The semantic model is not at the version on which a change is based."""


class NoSuchMapping(Refusal):
    """The policy to detach is not attached to the target."""


class PolicyInUse(Refusal):
    """The policy to drop is attached to something."""


class PolicyVersionMismatch(Refusal):
    """The policy is not at the version on which a change is based."""


class ConflictPolicyAttachment(Refusal):
    """Another policy of the same type is attached to the target, and only one of an inheritable type can be."""


class NoSuchRoute(Refusal):
    """No endpoint has the path of the request."""


class NotFound(Refusal):
    """A file that the catalog names is missing, or an object without an error class of its own, such as a principal or
    a task, does not exist."""


class MethodNotAllowed(Refusal):
    """The endpoint exists, but not with the method of the request; `allowed` are the methods that it has."""

    def __init__(self, message: str, allowed: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.allowed = allowed


class Unsupported(Refusal):
    """The request is valid, but this catalog does not support it."""


class AlreadyExists(Refusal):
    """The name, or another unique value of a new object, is taken; or a later notification was applied already."""


class NamespaceNotEmpty(Refusal):
    """The namespace or catalog to drop still has something in it."""


class CommitFailed(Refusal):
    """A requirement of the change does not hold, for example because of another commit; or the object does not allow
    the change, for example because it is protected."""


class Unprocessable(Refusal):
    """The request is well-formed, but contradicts itself."""


class NotAuthorized(CatalogError):
    """The request has no valid credentials, or names a realm that this server does not serve."""


class TooManyRequests(CatalogError):
    """More requests of one kind are under way, or came within a second, than are allowed. Nothing was done; the client
    may try again after `retry_after` seconds."""

    def __init__(self, message: str, retry_after: int = 1) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class KeyReused(CatalogError):
    """The idempotency key of the request belongs to another request."""


class KeyInProgress(CatalogError):
    """Another request with this idempotency key is under way, or may have been or yet be carried out. The client
    may try again after `retry_after` seconds."""

    def __init__(self, message: str, retry_after: int = 1) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Unavailable(CatalogError):
    """Something that the request needs, such as the store, memory or a service of the cloud, was not available, or
    other changes were under way for too long. Nothing was changed: the client may send the request again."""


class CatalogChanged(Unavailable):
    """The catalog was changed, removed or replaced since this process read its settings. Nothing was done."""


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
"""The reasons why an outcome is unknown (docs/observability.md#unknown-outcomes)."""


class CommitStateUnknown(CatalogError):
    """The change may have been made, or may yet be made, so that the client must not take it for failed. `reason` is
    for logs and metrics."""

    def __init__(self, message: str, reason: UnknownReason = "store-timeout") -> None:
        super().__init__(message)
        self.reason: UnknownReason = reason


class PurgeFailed(CatalogError):
    """The table was dropped, and the purge for which the drop waited has failed: not all files are deleted."""


class InternalError(CatalogError):
    """The catalog's own state, configuration or code is at fault."""
