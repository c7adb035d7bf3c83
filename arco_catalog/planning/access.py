"""Values of access control: the privileges that a request needs on securables, and the rights of its caller. A server
without a realm imports no more; `judgement.py` has the checks."""

from dataclasses import field
from typing import Literal

from arco_catalog.iceberg.errors import Refusal
from arco_catalog.planning.names import called, dotted
from arco_catalog.planning.privileges import Privilege
from arco_catalog.planning.reserved_namespace import is_reserved
from arco_catalog.state.entries import Kind
from arco_catalog.state.index import Namespace
from storage_backends.lazy_dataclass import dataclass

SecurableKind = Kind | Literal["table-like", "policy"]
"""The kinds of securable that have a name in a namespace; `table-like` means a table, a view or a generic table."""


@dataclass(frozen=True, slots=True)
class Securable:
    """The object on which a privilege is needed: the catalog, a namespace, or an object in a namespace. An object is
    given by its `name`, by its id (`entity`) and the name that it has now, or by the id alone if it was dropped and has
    no name any more."""

    namespace: Namespace = ()
    name: str | None = None
    kind: SecurableKind = "table"
    entity: str | None = None

    @property
    def is_dropped(self) -> bool:
        """Whether this is a dropped relation: a table, a view, a generic table or a semantic model."""
        return self.name is None and self.entity is not None

    def __str__(self) -> str:
        if self.is_dropped:
            return f"a dropped {called(self.kind)} of namespace {dotted(self.namespace)}"
        if self.name is not None:
            return f"{called(self.kind)} {dotted(self.namespace, self.name)}"
        return f"namespace {dotted(self.namespace)}" if self.namespace else "the catalog"


@dataclass(frozen=True, slots=True)
class Requirement:
    """A privilege that a request needs on a securable; with `if_there` only if that exists. If a `table-like` securable
    is a view, `on_view` is needed instead. `writes_to` is the namespace that the request creates or writes to, if that
    is not the one of `on`."""

    privilege: Privilege
    on: Securable = Securable()
    if_there: bool = False
    on_view: Privilege | None = None
    writes_to: Namespace = ()

    @property
    def reserved(self) -> bool:
        """Whether the request would write to the namespace that only the pipeline may write to."""
        return is_reserved(self.privilege, self.writes_to or self.on.namespace)


@dataclass(frozen=True, slots=True)
class Identity:
    """The authenticated identity of a request's caller. `principal` is the id in the realm or, if `issued`, its subject
    at an external issuer (`PrincipalEntry.subject`). `activated` are the names of the principal roles that it
    activates, None for all that it has. If the catalog issued its token, `secret` is the fingerprint of the secret for
    which it did, and `actor` the id of the principal that requested the token on its behalf."""

    principal: str
    activated: frozenset[str] | None = None
    issued: bool = False
    secret: str | None = None
    actor: str | None = None


@dataclass(frozen=True, slots=True)
class Standing:
    """The rights of an identity on one HEAD of the realm: the id and name of the principal, the ids of its active
    principal roles, and their privileges on the realm itself (`service`). `must_rotate`: it may only rotate its
    credentials. `names_sources`: it may name the source of its changes. `runs_pipeline`: it may use the privileges in
    the pipeline's own namespace."""

    id: str
    name: str
    roles: tuple[str, ...]
    service: frozenset[Privilege]
    must_rotate: bool = False
    names_sources: bool = False
    runs_pipeline: bool = False
    role_names: tuple[str, ...] = field(default=(), compare=False)
    """The names of the roles, in order, for policies, which have no ids of roles."""


def denied(refusal: Refusal, privilege: str, securable: str) -> Refusal:
    """Returns the error itself, after it has got the missing privilege and the securable, for logs; the client's
    message does not change."""
    refusal.denied = (privilege, securable)
    return refusal
