"""Makes a realm, or a dropped one again, by one commit of its registry: the root principal, and the principal role that
manages the realm. An operator makes it at the store, never over HTTP."""

from contextlib import suppress

from arco_catalog.iceberg.errors import AlreadyExists, CommitFailed
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.management.entities import EntityChange
from arco_catalog.operations.management.principals import ROOT_PRINCIPAL, NewCredentials
from arco_catalog.planning.attempt import Attempt
from arco_catalog.planning.privileges import Privilege
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.driver import run
from arco_catalog.state.index import Edits, Index
from arco_catalog.state.needs import Needs, Steps
from arco_catalog.state.realm import (
    REALM_STATE,
    SERVICE_ADMIN,
    PrincipalEntry,
    is_dropped,
    membership_edits,
    principal_edits,
    principal_key,
    principal_role_key,
)
from arco_catalog.state.roles import ROOT, GrantEntry, RoleEntry, grant_edits
from storage_backends import StoreError


async def bootstrap(session: Session, credentials: NewCredentials, *, reopen: bool = False) -> None:
    """Makes the realm, with a root principal that has these credentials, and the principal role that manages the realm,
    which the root principal gets; with `reopen` also a realm that was dropped. Then makes the key of page tokens, if it
    can. Raises `AlreadyExists` if the realm exists already, and `CommitFailed` if it was dropped and `reopen` is false.
    Neither changes the realm."""
    await run(session, _Bootstrap(session, credentials, reopen))
    with suppress(StoreError):  # the realm is made, and the caller has its credentials: the first page makes the key
        await session.state.page_key()  # listings need it, and may not be allowed to write


class _Bootstrap(EntityChange):
    kind = "bootstrap"
    revives_realm = True

    def __init__(self, session: Session, credentials: NewCredentials, reopen: bool) -> None:
        super().__init__(session, {"name": ROOT_PRINCIPAL})
        self.credentials, self.reopen = credentials, reopen

    def edits(self, index: Index, attempt: Attempt) -> Steps[tuple[Edits, JsonObject | None]]:
        """Plans the index changes that make the root principal and the principal role that manages the realm, which
        root gets, and that end a drop of the realm. The body is None. Raises `CommitFailed` for a dropped realm without
        `reopen`, and `AlreadyExists` if there is a root principal."""
        yield Needs(keys=[principal_key(ROOT_PRINCIPAL), REALM_STATE])
        if is_dropped(index) and not self.reopen:
            raise CommitFailed(
                "Nothing was bootstrapped, because this realm was dropped: `arco bootstrap --reopen` makes it anew, "
                "with a new root principal"
            )
        if index.get(principal_key(ROOT_PRINCIPAL)) is not None:
            raise AlreadyExists(
                "This realm was bootstrapped already: `arco bootstrap --reset-root` replaces the credentials of its "
                "root principal"
            )
        root = PrincipalEntry.new(
            entity=attempt.entity,
            name=ROOT_PRINCIPAL,
            properties={},
            at_ms=attempt.now_ms,
            client_id=self.credentials.client_id,
            secrets=[self.credentials.secret.json],
            must_rotate=False,
            subject=None,
        )
        role_id = attempt.member(1).entity
        admin = RoleEntry.new(entity=role_id, name=SERVICE_ADMIN, properties={}, at_ms=attempt.now_ms, federated=False)
        privileges = [Privilege.SERVICE_MANAGE_ACCESS.value]
        grant = GrantEntry.new(securable=ROOT, kind="root", namespace=(), name=None, privileges=privileges)
        edits: Edits = {
            **principal_edits(root),
            principal_role_key(SERVICE_ADMIN): admin.json,
            **grant_edits(admin.entity, grant),
            **membership_edits(root, admin),
            **({REALM_STATE: None} if is_dropped(index) else {}),
        }
        return edits, None
