"""The error for credentials that a cloud denies or that the catalog does not have, and the function that waits for the
catalog's own credentials."""

from collections.abc import Awaitable
from typing import TypeVar

from arco_catalog.iceberg.errors import InternalError, Unavailable
from storage_backends.base import StoreDenied, StoreUnavailable

T = TypeVar("T")


class CredentialsRefused(InternalError):
    """The cloud refused credentials or sent a malformed response, or the deployment's own credentials are missing or
    wrong, so that an operator must act. `code` is the cloud's code for the reason, or one of ours."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


async def own_credentials(pending: Awaitable[T], cloud: str, purpose: str = "vend") -> T:
    """Returns the catalog's own credentials of a cloud, once they are there. Raises `Unavailable` if they cannot be had
    now, and `CredentialsRefused` if there are none, which quotes `purpose`, a verb."""
    try:
        return await pending
    except StoreUnavailable as error:
        raise Unavailable(
            f"The catalog can't get its own {cloud} credentials now, with which it gives access to files: {error}"
        ) from error
    except StoreDenied as error:
        why = f"the catalog has no {cloud} credentials to {purpose} with: {error}"
        raise CredentialsRefused(why, "NoCredentials") from error
