"""What a client records of listings in pages."""

import asyncio
from itertools import count

from arco_catalog.prove.answers import Answer
from arco_catalog.prove.client import Client, Recorder
from arco_catalog.prove.history import Kind, Operation, Status
from arco_catalog.prove.network import Delivery, Network
from arco_catalog.prove.program import Fault, Step
from arco_catalog.prove.requests import CREATOR, Paths, Request

LISTING = Step(Operation("l", Kind.LIST))


class AnsweringNetwork(Network):
    """Gives answers one after the other, and keeps the paths of the requests."""

    def __init__(self, *answers: Answer | None) -> None:
        self.answers, self.paths = [*answers], list[str]()

    async def send(self, request: Request, server: int, fault: Fault = Fault.NONE, delay_ms: int = 0) -> Delivery:
        self.paths.append(request.path)
        return Delivery(self.answers.pop(0))


def page(name: str, token: str | None) -> Answer:
    return Answer(200, {"identifiers": [{"namespace": ["n"], "name": name}], "next-page-token": token})


def listed(*answers: Answer | None) -> tuple[Status, frozenset[str], list[str], list[str]]:
    """The status and names of a listing, the paths, and the operations with answers that are not understood."""
    network = AnsweringNetwork(*answers)
    recorder = Recorder(lambda: 0, lambda: None, count())
    observation = asyncio.run(Client(network, Paths("", "n"), recorder).run(LISTING))
    assert observation is not None
    return observation.status, observation.listed, network.paths, recorder.foreign


def test_a_listing_has_the_names_of_all_pages() -> None:
    status, names, paths, _ = listed(page("a", "x&y z"), page("b", None))
    assert (status, names) == (Status.DONE, frozenset("ab"))
    assert paths == ["/v1/namespaces/n/tables", "/v1/namespaces/n/tables?pageToken=x%26y%20z"]


def test_a_listing_without_one_of_its_pages_is_unknown() -> None:
    assert listed(page("a", "x"), None)[:2] == (Status.UNKNOWN, frozenset())
    assert listed(page("a", "x"), Answer(503))[:2] == (Status.UNKNOWN, frozenset())


def test_an_answer_that_is_no_listing_is_unknown_and_counted() -> None:
    status, _, _, foreign = listed(Answer(200, {"identifiers": 1}))
    assert (status, foreign) == (Status.UNKNOWN, ["l"])


TABLE = Answer(200, {"metadata": {"properties": {CREATOR: "c"}, "table-uuid": "u", "location": "l"}})
FOREIGN = Answer(200, {"metadata": 1})


def created_twice(*answers: Answer | None) -> Recorder:
    """What is recorded of a create whose request is sent again with its key."""
    recorder = Recorder(lambda: 0, lambda: "key", count())
    client = Client(AnsweringNetwork(*answers), Paths("", "n"), recorder)

    async def create_twice() -> None:
        await client.run(Step(Operation("c", Kind.CREATE, ("t",))))
        await client.send_again(recorder.keyed[0], 0)

    asyncio.run(create_twice())
    return recorder


def test_a_second_answer_of_a_wrong_form_is_foreign_and_is_not_compared_with_the_first() -> None:
    recorder = created_twice(TABLE, FOREIGN)
    assert (recorder.repeated, recorder.foreign) == ([], ["c"])
    assert len(created_twice(TABLE, TABLE).repeated) == 1


def test_a_second_answer_of_a_wrong_form_does_not_replace_an_unknown_outcome() -> None:
    recorder = created_twice(None, FOREIGN)
    assert [each.code for each in recorder.observations] == [None]
    assert recorder.foreign == ["c"]
