"""Computes which policies apply to a catalog, a namespace or what is in one (docs/design/polaris.md#inheritance)."""

from collections.abc import Mapping, Sequence
from functools import partial

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.listing import ListingPage, Paging, computed_page
from arco_catalog.operations.policies.policies import described
from arco_catalog.planning.access import Securable
from arco_catalog.planning.securables import absent, chain_of
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.concurrency import batches, gather
from arco_catalog.state.index import Index, Namespace
from arco_catalog.state.needs import Needs, Scan, Steps
from arco_catalog.state.policies import AttachedPolicy, PolicyEntry, attached_to, attachments, find_policy, policy_key
from storage_backends.lazy_dataclass import dataclass

AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class Applicable:
    """A policy that applies to an object (the target), and the policy's namespace. It is `inherited` if it is attached
    only to something that contains the target."""

    policy: PolicyEntry
    namespace: Namespace
    inherited: bool


async def applicable_policies(
    session: Session, target: Securable, policy_type: str | None, paging: Paging
) -> ListingPage:
    """Returns a page of the policies that apply to a target, as answers show them; all pages show one state.
    `policy_type` restricts them to one type. Raises the errors of `absent` if the target does not exist, and
    `BadRequest` for a page token that is invalid, expired, or of another listing."""
    steps = partial(_applicable, target=target, policy_type=policy_type)
    page, token = await computed_page(session, steps, paging, partial(chain_of, securable=target))
    shown: list[JsonObject] = []
    for batch in batches(page, AT_ONCE):
        shown += await gather(*(_shown(session, each) for each in batch))
    return ListingPage([*shown], token)


async def _shown(session: Session, applicable: Applicable) -> JsonObject:
    """Reads the document of a policy that applies, and returns the JSON of it with the policy's namespace, and with
    whether it is inherited."""
    policy = await described(session, applicable.policy)
    return {**policy, "inherited": applicable.inherited, "namespace": [*applicable.namespace]}


def _applicable(index: Index, *, target: Securable, policy_type: str | None) -> Steps[Sequence[Applicable]]:
    """Computes the policies that apply to the target, only those of `policy_type` if that is given: first those of
    types that are not inherited, which are attached to it, then for each inheritable type the one that is attached
    nearest. Raises the errors of `absent` if the target does not exist."""
    chain = yield from chain_of(index, target)
    if chain is None:
        raise absent(target)
    yield Needs(scans=[Scan(attached_to(each)) for each in chain])
    levels = [
        [attached for _, attached in attachments(index, each) if policy_type in (None, attached.policy_type)]
        for each in chain
    ]
    nearest = nearest_of_each_type(levels)
    own = [attached for attached in levels[-1] if not attached.inheritable]
    found = [(attached, False) for attached in own]
    found += [(attached, attached not in levels[-1]) for attached in nearest.values()]
    yield Needs(keys=[policy_key(attached.namespace, attached.name) for attached, _ in found])
    there = [(find_policy(index, each.namespace, each.name), each, inherited) for each, inherited in found]
    return [Applicable(policy, each.namespace, inherited) for policy, each, inherited in there if policy is not None]


def nearest_of_each_type(levels: Sequence[Sequence[AttachedPolicy]]) -> Mapping[str, AttachedPolicy]:
    """Returns for each type the inheritable policy of that type that is attached nearest to the target. `levels` has
    the policies attached along the chain of what contains the target, the outermost level first."""
    return {attached.policy_type: attached for level in levels for attached in level if attached.inheritable}
