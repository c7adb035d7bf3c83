"""A proposal is stored with all that another process needs to commit it."""

from dataclasses import replace

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state.index import tombstone_key
from arco_catalog.state.needs import Needs
from arco_catalog.state.proposal import Proposal
from arco_catalog.state.reads import Reads
from arco_catalog.state.registry import Operation, RegistryState
from tests.support.steps import result

KEY = tombstone_key(("db",), "t", "01T")
OTHER = tombstone_key(("db",), "t", "01U")
DROP = Operation("01DROP", "drop-table", {"principal": "p", "name": "t"}, {"status": 204, "body": None}, ("01X",))


def tombstone(operation: str, sequence: int) -> JsonObject:
    return {"operation": operation, "sequence": sequence, "place": 0, "entity": "01T"}


def head_at(sequence: int) -> RegistryState:
    head = RegistryState.empty()
    for number in range(sequence):
        head = head.successor(commit=f"c{number}", at_ms=1, edits={}, operations=[])
    return head


def proposal_on(head: RegistryState) -> Proposal:
    edits = {KEY: tombstone("01DROP", 3), OTHER: tombstone("01OLDER", 3), "relation\ndb\nt": None}
    reads = Reads.of(head, [Needs(keys=["relation\ndb\nt"])])
    return Proposal.of(head, DROP, edits, reads, base=2, written_ms=5)


def test_a_proposal_is_read_back_as_it_was_stored() -> None:
    proposal = proposal_on(head_at(3))
    assert Proposal.parse(proposal.body, "proposal") == proposal


def test_a_new_tombstone_gets_its_order_from_the_commit_that_takes_it_in() -> None:
    """The other tombstone is an older one that the change edits: its drop has its place already."""
    edits = proposal_on(head_at(3)).changes_on(replace(head_at(9), place=4))
    assert edits[KEY] == {**tombstone("01DROP", 9), "place": 4}
    assert edits[OTHER] == tombstone("01OLDER", 3)
    assert edits["relation\ndb\nt"] is None


def test_a_proposal_holds_until_what_it_has_read_changes() -> None:
    head = head_at(3)
    proposal = proposal_on(head)
    changed = replace(head, index=head.index.edited({"relation\ndb\nt": {"entity": "01V"}}))
    assert result(proposal.still_holds(head_at(9)))
    assert not result(proposal.still_holds(changed))
