"""Rules about policies, semantic models and notifications left out (docs/design/polaris.md): the simulation must find
each."""

from dataclasses import replace
from typing import Any

import pytest

from arco_catalog.operations import named_change, namespaces, notifications, rename, semantic_models
from arco_catalog.operations.policies import attachments, policies
from arco_catalog.planning import collection, registry_change
from arco_catalog.planning.attempt import Attempt
from arco_catalog.planning.registry_change import Change
from arco_catalog.protocol.mutation import NoOp
from arco_catalog.protocol.registry_mutation import RegistryReadSet
from arco_catalog.state.entries import RelationEntry, find_kind, find_relation
from arco_catalog.state.index import Edits, Index
from arco_catalog.state.needs import Steps, immediately
from arco_catalog.state.policies import Target, attached_to, edits_without_attachments, find_policy
from arco_catalog.state.registry import RegistryState


def a_rename_that_policies_do_not_hear_of(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(rename, "renamed_attachments", lambda *_: {})


def a_detachment_from_one_side(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(attachments, "detachment_edits", lambda policy, target: {attached_to(target) + policy: None})


def a_policy_dropped_whatever_uses_it(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Target, "is_live", lambda *_: False)


def several_policies_of_one_type(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(attachments._Attach, "_check_room", lambda *_: None)


def a_drop_that_detaches(patch: pytest.MonkeyPatch) -> None:
    rightly = registry_change.tombstone_edits

    def tombstone_edits(head: RegistryState, entry: RelationEntry, *named: Any, **said: Any) -> Steps[Edits]:
        edits = yield from rightly(head, entry, *named, **said)
        return {**edits, **edits_without_attachments(head.index, entry.entity)}

    patch.setattr(named_change, "tombstone_edits", tombstone_edits)


def a_version_looked_at_once(patch: pytest.MonkeyPatch) -> None:
    """And not again in the registry that a lost compare-and-swap gave."""
    rightly = semantic_models._Replace.change
    looked: set[int] = set()

    def change(self: semantic_models._Replace, read_set: RegistryReadSet, attempt: Attempt) -> Steps[Change]:
        entry = find_kind(read_set.head.index, self.namespace, self.name, semantic_models.KIND)
        if id(self) in looked and entry is not None:
            self.expected = entry.value
        looked.add(id(self))
        return (yield from rightly(self, read_set, attempt))

    patch.setattr(semantic_models._Replace, "change", change)


def a_drop_of_whichever_table_has_the_name(patch: pytest.MonkeyPatch) -> None:
    rightly = notifications._Drop.admitted

    def admitted(self: notifications._Drop, index: Index, attempt: Attempt) -> Steps[RelationEntry | None]:
        entry = find_relation(index, self.namespace, self.name)
        if entry is not None:
            self.notification = replace(self.notification, uuid=entry.uuid or "")
        return (yield from rightly(self, index, attempt))

    patch.setattr(notifications._Drop, "admitted", admitted)


def notifications_in_the_order_in_which_they_come(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(notifications, "check_order", lambda *_: None)


def an_order_that_goes_with_the_tombstone(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(collection, "notified_edits", lambda *_: immediately({}))


def a_policy_s_version_looked_at_once(patch: pytest.MonkeyPatch) -> None:
    """And not again in the registry that a lost compare-and-swap gave."""
    rightly = policies._Update.change
    looked: set[int] = set()

    def change(self: policies._Update, read_set: RegistryReadSet, attempt: Attempt) -> Steps[Change | NoOp]:
        entry = find_policy(read_set.head.index, self.namespace, self.name)
        if id(self) in looked and entry is not None:
            self.expected = entry.version
        looked.add(id(self))
        return (yield from rightly(self, read_set, attempt))

    patch.setattr(policies._Update, "change", change)


def a_policy_made_again_that_begins_anew(patch: pytest.MonkeyPatch) -> None:
    """So that what was meant for the policy that was dropped fits the new one."""
    patch.setattr(policies, "first_version", lambda index, key, lowest: immediately(lowest))


def attachments_that_outlive_their_namespace(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(namespaces, "edits_without_attachments", lambda *_: {})


def a_version_not_looked_at(patch: pytest.MonkeyPatch) -> None:
    rightly = semantic_models._Replace.change

    def change(self: semantic_models._Replace, read_set: RegistryReadSet, attempt: Attempt) -> Steps[Change]:
        entry = find_kind(read_set.head.index, self.namespace, self.name, semantic_models.KIND)
        self.expected = self.expected if entry is None else entry.value
        return (yield from rightly(self, read_set, attempt))

    patch.setattr(semantic_models._Replace, "change", change)
