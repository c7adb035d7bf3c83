"""Which policy of snapshot expiry applies to a table (docs/design/expiry.md#rule-2)."""

from collections.abc import Sequence

from arco_catalog.operations.policies.applicable import nearest_of_each_type
from arco_catalog.operations.policies.policies import described
from arco_catalog.planning.access import Securable
from arco_catalog.planning.securables import chain_of
from arco_catalog.planning.upkeep_policy import SNAPSHOT_EXPIRY, Policy
from arco_catalog.protocol.lookup import carry_out, load
from arco_catalog.state.index import Index, Namespace
from arco_catalog.state.needs import Needs, Scan, Steps
from arco_catalog.state.policies import AttachedPolicy, attached_to, attachments, find_policy, policy_key
from arco_catalog.tasks.execution import Sessions


def nearest_policy(index: Index, namespace: Namespace, name: str) -> Steps[AttachedPolicy | None]:
    """Returns the attachment of the policy of snapshot expiry that applies to a table: to the table itself, else to the
    nearest namespace, else to the catalog; None if there is none, or no such table."""
    chain = yield from chain_of(index, Securable(namespace, name))
    if chain is None:
        return None
    yield Needs(scans=[Scan(attached_to(each)) for each in chain])
    levels: Sequence[Sequence[AttachedPolicy]] = [[each for _, each in attachments(index, target)] for target in chain]
    return nearest_of_each_type(levels).get(SNAPSHOT_EXPIRY)


class PolicyReader:
    """Reads policies of snapshot expiry by one HEAD, each once."""

    def __init__(self, sessions: Sessions, index: Index) -> None:
        self._sessions = sessions
        self._index = index
        self._read: dict[str, Policy | None] = {}

    async def of(self, namespace: Namespace, name: str) -> Policy | None:
        """Returns the policy of snapshot expiry that applies to a table, if it is enabled; None if there is none or it
        is disabled. Raises `InvalidPolicy` if the policy's content is no JSON object, and `StoreError`."""
        attached = await carry_out(
            self._sessions.session().state, self._index, nearest_policy(self._index, namespace, name)
        )
        if attached is None:
            return None
        key = policy_key(attached.namespace, attached.name)
        if key not in self._read:
            self._read[key] = await self._policy(attached, key)
        policy = self._read[key]
        return policy if policy is not None and policy.enabled else None

    async def _policy(self, attached: AttachedPolicy, key: str) -> Policy | None:
        """Reads an attached policy: its entry, which has the key `key` in the index, and its content. None if it no
        longer exists. Raises `StoreError`, and `InvalidPolicy` for content that is no JSON object."""
        await load(self._sessions.session().state, self._index, Needs(keys=[key]))
        entry = find_policy(self._index, attached.namespace, attached.name)
        if entry is None:
            return None
        return Policy.of({**await described(self._sessions.session(), entry), "namespace": [*attached.namespace]})
