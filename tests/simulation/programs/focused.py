"""Short programs written by hand, each about one danger; orders, latencies and faults are drawn from the seed as for
any other."""

from dataclasses import replace

from tests.simulation.programs.bodies import EMPTY_LEVEL
from tests.simulation.programs.grammar import DB, OTHER
from tests.simulation.programs.requests import Conditions, Kind, Name, Program, Request, Sending, Step

T: Name = (DB, "t")
U: Name = (DB, "u")
V: Name = (DB, "v")
QUICK = 0.05
"""Seconds between requests of one client: about as long as one takes."""


def sent(request: Request, process: str, *others: str, after: float = QUICK, key: bool = True) -> Sending:
    """A request under a fresh key, or without one, sent again to the other processes."""
    return Sending(request, after, process, others, None, None, 0 if key else None)


def twice(request: Request, process: str, twin: str, after: float = QUICK) -> Sending:
    """The same request under the same key, at two processes at once."""
    return Sending(request, after, process, (), twin, None, 0)


def ahead(sending: Sending) -> Sending:
    """A request by a client whose clock is four seconds ahead."""
    return replace(sending, key_age_ms=-4_000)


def keyless_commit_while_its_name_changes_hands(*, key: bool = False) -> Program:
    """The compare-and-swap on the first table is lost to its drop; that on the second lands, and is not heard of."""
    unheard = Conditions(warm=True, rate=0.12, faults=("lost-answer", "echo"))
    schema = Request("schema", (T,), choice=1, needs=0)
    return Program(
        unheard,
        (T,),
        (),
        (
            (sent(schema, "p1", after=0.0, key=key),),
            (sent(Request("drop", (T,)), "p2", after=0.0), sent(Request("create", (T,)), "p2", after=0.0)),
        ),
    )


def commit_while_its_name_changes_hands() -> Program:
    """Under a key, which is bound to another table then, and so to another attempt."""
    return keyless_commit_while_its_name_changes_hands(key=True)


def keyless_drop_while_its_name_changes_hands() -> Program:
    """The mark of the drop belongs on the table that was dropped."""
    unheard = Conditions(warm=True, rate=0.12, faults=("lost-answer", "echo"))
    return Program(
        unheard,
        (T,),
        (),
        (
            (sent(Request("drop", (T,)), "p1", after=0.0, key=False),),
            (sent(Request("drop", (T,)), "p2", after=0.0), sent(Request("create", (T,)), "p2", after=0.0)),
            (sent(Request("commit", (T,)), "p3", key=False),),
        ),
    )


def listings_beside_transactions() -> Program:
    """Every page of a listing shows transactions whole."""
    lists = tuple(
        sent(Request("list", namespace=DB, choice=size), "p2", "p3", after=0.03) for size in (0, 1, 0, 2, 1, 0)
    )
    return Program(
        Conditions(warm=True, deployed=True),
        (),
        (),
        ((sent(Request("transaction", creates=(T, U)), "p1", after=0.1),), lists, lists),
    )


def listings_beside_transactions_and_creates() -> Program:
    """A listing shows what there was at one instant: no transaction that committed after something that it misses."""
    lists = tuple(sent(Request("list", namespace=DB), "p2", "p3", after=0.0) for _ in range(8))
    return Program(
        Conditions(warm=True, deployed=True),
        (),
        (),
        (
            (sent(Request("transaction", creates=(T, U)), "p1", after=0.0),),
            (sent(Request("create", (V,)), "p3", after=0.1), sent(Request("drop", (V,)), "p3", after=0.0)),
            lists,
        ),
    )


def loads_beside_cleaning() -> Program:
    """A file that is gone has a successor: whoever misses it reads the pointer again."""
    loads = tuple(sent(Request("load", (T,)), "p2", after=0.0) for _ in range(6))
    commits = tuple(sent(Request("commit", (T,)), "p1", after=0.0) for _ in range(4))
    return Program(Conditions(warm=True, cleaning=True), (T,), (), (commits, loads))


def loads_of_a_name_that_goes_and_comes_back() -> Program:
    """A load shows a state that the name had."""
    loads = tuple(sent(Request("load", (T,)), "p2", after=0.02) for _ in range(6))
    return Program(
        Conditions(warm=True),
        (T,),
        (),
        (
            (
                sent(Request("rename", (T,), to=U), "p1"),
                sent(Request("commit", (U,)), "p1", after=0.0),
                sent(Request("rename", (U,), to=T), "p1", after=0.0),
            ),
            loads,
        ),
    )


def names_that_dead_coordinators_hold() -> Program:
    """Whoever comes later gets past them, and is told nothing that is not so."""
    return Program(
        Conditions(deployed=True, doomed="p1"),
        (),
        (),
        (
            (sent(Request("transaction", creates=(T, U)), "p1", after=0.0, key=False),),
            (sent(Request("create", (T,)), "p2", "p3"), sent(Request("drop", (T,)), "p2", "p3")),
            (sent(Request("create", (U,)), "p3", "p2"), sent(Request("rename", (U,), to=V), "p3", "p2")),
        ),
    )


def tables_that_dead_coordinators_hold() -> Program:
    """A single commit waits for a transaction that is under way, until its lease is over, and is not refused for it."""
    return Program(
        Conditions(deployed=True, doomed="p1"),
        (T, U),
        (),
        (
            (sent(Request("transaction", (T, U)), "p1", after=0.0, key=False),),
            (sent(Request("commit", (T,)), "p2", "p3", after=2.0), sent(Request("commit", (T,)), "p2", after=30.0)),
            (sent(Request("commit", (U,)), "p3", after=40.0), sent(Request("commit", (U,)), "p3", after=60.0)),
        ),
    )


def claims_that_failures_beside_them_cancel() -> Program:
    """A request that is alone with its key is never told that somebody is at it."""
    return Program(
        Conditions(deployed=True, warm=True, rate=0.06, faults=("lost-answer", "echo", "lost-request")),
        (T, U),
        (),
        ((sent(Request("transaction", (T, U)), "p1", after=0.0),), (sent(Request("commit", (U,)), "p2", after=0.0),)),
    )


def takeovers_and_names_that_move_on() -> Program:
    """What a takeover fences is what could still land: nothing may be sent anew between its fence and its slot, and
    land when the takeover has told that the name is gone."""
    return Program(
        Conditions(rate=0.12, faults=("delay",)),
        (T,),
        (),
        (
            (twice(Request("commit", (T,)), "p1", "p2", after=0.0),),
            (sent(Request("rename", (T,), to=U), "p3", after=75.0),),
        ),
    )


def drops_and_undrops_of_one_table() -> Program:
    """Each drop leaves a mark of its own, and each undrop takes everything back."""
    return Program(
        Conditions(warm=True, rate=0.04),
        (T,),
        (),
        (
            (
                twice(Request("drop", (T,)), "p1", "p2", after=0.0),
                sent(Request("undrop", (T,)), "p1", "p2"),
                twice(Request("drop", (T,)), "p2", "p3"),
                sent(Request("undrop", (T,)), "p3", "p1"),
            ),
            (sent(Request("commit", (T,)), "p3"), sent(Request("commit", (T,)), "p1", key=False)),
        ),
    )


def a_namespace_made_again_over_what_was_dropped() -> Program:
    """A tombstone belongs to the namespace that it was dropped from, whichever has the name when it is restored."""
    there: Name = (OTHER, "t")
    made = tuple(sent(Request(kind, namespace=OTHER), "p1", "p2") for kind in ("drop-namespace", "create-namespace"))
    return Program(
        Conditions(warm=True, rate=0.03),
        (there,),
        (),
        (
            (sent(Request("drop", (there,)), "p1", "p3", after=0.0), *made, sent(Request("undrop", (there,)), "p2")),
            (sent(Request("undrop", (there,)), "p3", after=0.3), sent(Request("create", (there,)), "p3")),
            (sent(Request("drop", (there,)), "p2", after=0.4), *made),
        ),
    )


def answers_to_drops_of_dead_processes() -> Program:
    """Whoever finds that a drop was made leaves its mark before answering."""
    return Program(
        Conditions(warm=True, doomed="p1"),
        (T,),
        (),
        (
            (sent(Request("drop", (T,)), "p1", "p2", "p3", after=0.0),),
            (sent(Request("commit", (T,)), "p3", key=False), sent(Request("commit", (T,)), "p2", key=False)),
        ),
    )


def creates_that_are_late_to_see_a_newer_registry() -> Program:
    """A request that reads a newer HEAD when its duplicate has been told no must not be carried out on it."""
    return Program(
        Conditions(warm=True, steps=(Step("p1", "get", "core/manifest", "delay"),)),
        (),
        (),
        (
            (twice(Request("create", (T,)), "p1", "p2", after=0.02),),
            (sent(Request("create", (T,)), "p3", after=0.0), sent(Request("drop", (T,)), "p3", after=10.0)),
        ),
    )


def tombstones_of_one_name() -> Program:
    """What was dropped last comes back first, also of drops that shared a registry commit."""
    return Program(
        Conditions(warm=True),
        (T,),
        (),
        (
            (
                sent(Request("drop", (T,)), "p1", after=0.0),
                sent(Request("create", (T,)), "p1", after=0.0),
                sent(Request("drop", (T,)), "p1", after=0.0),
                sent(Request("undrop", (T,)), "p1", after=0.0),
            ),
            (sent(Request("rename", (T,), to=U), "p1", after=0.0), sent(Request("create", (T,)), "p1", after=0.0)),
        ),
    )


def creates_that_die_beside_a_reconciler() -> Program:
    """A reconciler that saw a pointer before its name must come back when it has one."""
    walks = tuple(sent(Request("reconcile"), "p2", after=0.01) for _ in range(6))
    return Program(
        Conditions(doomed="p1"),
        (),
        (),
        (
            (sent(Request("create", (T,)), "p1", after=0.1), sent(Request("create", (U,)), "p1", after=0.1)),
            walks,
        ),
    )


def creates_that_die_beside_queued_work() -> Program:
    """A message asks for a table's receipts: a table that has no name yet gets none."""
    walks = tuple(sent(Request("errand"), "p2", after=0.05) for _ in range(6))
    return Program(
        Conditions(doomed="p1"),
        (),
        (),
        ((sent(Request("create", (T,)), "p1", after=0.1),), (sent(Request("create", (T,)), "p3", after=0.1),), walks),
    )


def denials_of_what_another_sending_does() -> Program:
    """Who was denied a write tells nothing for certain that another sending may yet make untrue."""
    return Program(
        Conditions(warm=True, rate=0.15, faults=("denied", "freeze")),
        (T,),
        (),
        ((twice(Request("commit", (T,)), "p1", "p2", after=0.0),),),
    )


def commits_that_are_forgotten() -> Program:
    """What a pointer does not remember may have landed: nobody carries it out again."""
    others = tuple(sent(Request("commit", (T,)), "p3", after=0.0, key=False) for _ in range(6))
    return Program(
        Conditions(warm=True, memory=4, doomed="p1"),
        (T,),
        (),
        ((sent(Request("schema", (T,), choice=1, needs=0), "p1", "p2", "p3", after=0.0),), others),
    )


def one_name_for_four_things() -> Program:
    """A name means one thing, whoever is first: a table, a view, a generic table or a semantic model."""
    things = (
        (Request("create", (T,)), Request("drop", (T,)), Request("undrop", (T,))),
        (Request("create-view", (T,)), Request("drop-view", (T,)), Request("create-view", (T,))),
        (Request("create-generic", (T,), choice=0), Request("drop-generic", (T,)), Request("undrop", (T,))),
        (Request("create-model", (T,)), Request("load-model", (T,)), Request("drop-model", (T,))),
        (
            Request("transaction", creates=(T, U)),
            Request("create-generic", (U,), choice=2),
            Request("load-generic", (T,)),
        ),
    )
    clients = enumerate(things, 1)
    return Program(
        Conditions(warm=True, rate=0.05),
        (),
        (),
        tuple(tuple(sent(each, f"p{place % 3 + 1}", "p1", after=0.02) for each in client) for place, client in clients),
    )


def one_name_that_is_followed_and_made() -> Program:
    """A name in a catalog that follows another is a table there, a generic table or a semantic model, and one of
    them."""
    things = (
        (
            Request("follow", (T,), choice=1),
            Request("drop-followed", (T,), choice=3),
            Request("follow", (T,), choice=5),
        ),
        (Request("create-model", (T,)), Request("replace-model", (T,)), Request("drop-model", (T,))),
        (Request("create-generic", (T,), choice=0), Request("drop-generic", (T,)), Request("undrop", (T,))),
        (Request("follow", (T,), choice=2), Request("create-model", (T,)), Request("follow", (T,), choice=4)),
    )
    clients = enumerate(things, 1)
    return Program(
        Conditions(warm=True, rate=0.05, external=True),
        (),
        (),
        tuple(tuple(sent(each, f"p{place % 3 + 1}", "p1", after=0.02) for each in client) for place, client in clients),
    )


def governance_of_a_table_that_changes_hands() -> Program:
    """What is said of a table stays with it, whatever becomes of its name, and nobody's word is lost."""
    words = (Request("govern", (T,)), Request("govern", (T,), choice=1), Request("load-governance", (T,)))
    hands = (Request("rename", (T,), to=U), Request("rename", (U,), to=T), Request("load", (T,)))
    ends = (Request("drop", (T,)), Request("create", (T,)), Request("drop", (T,)), Request("undrop", (T,)))
    space = tuple(Request(kind, namespace=DB) for kind in ("govern-namespace", "set-properties", "govern-namespace"))
    clients = enumerate((words, words, hands, ends, space), 1)
    return Program(
        Conditions(warm=True, rate=0.05),
        (T,),
        (),
        tuple(tuple(sent(each, f"p{place % 3 + 1}", "p2", after=0.03) for each in client) for place, client in clients),
    )


def drops_and_renames_beside_protection() -> Program:
    """A drop, a rename or a registration takes effect on a table that is not protected at that instant."""
    guards = (Request("protect", (T,)), Request("protect", (T,), choice=1), Request("protect", (T,)))
    ends = (Request("drop", (T,)), Request("undrop", (T,)), Request("drop", (T,)), Request("create", (T,)))
    others = (Request("rename", (T,), to=U), Request("rename", (U,), to=T), Request("register", (T,), flag=True))
    space = (Request("create-namespace", namespace=OTHER), Request("protect-namespace", namespace=OTHER))
    gone = (Request("drop-namespace", namespace=OTHER), Request("protect-namespace", namespace=OTHER, choice=1))
    clients = enumerate((guards, guards, ends, others, space, (*gone, *gone)), 1)
    return Program(
        Conditions(warm=True, rate=0.05),
        (T,),
        (),
        tuple(tuple(sent(each, f"p{place % 3 + 1}", "p2", after=0.03) for each in client) for place, client in clients),
    )


def one_name_that_is_followed_and_protected() -> Program:
    """A notification of the other catalog drops a table that is not protected at that instant."""
    followed = (Request("follow", (T,), choice=1), Request("drop-followed", (T,), choice=3))
    again = (Request("follow", (T,), choice=2), Request("drop-followed", (T,), choice=5))
    guards = (Request("protect", (T,)), Request("protect", (T,), choice=1), Request("protect", (T,)))
    clients = enumerate((followed, again, guards, guards), 1)
    return Program(
        Conditions(warm=True, rate=0.05, external=True),
        (),
        (),
        tuple(tuple(sent(each, f"p{place % 3 + 1}", "p1", after=0.03) for each in client) for place, client in clients),
    )


def names_with_an_old_decision() -> Program:
    """A decision is not deleted while a name waits for it."""
    collections = tuple(sent(Request("collect"), "p2", after=16.0) for _ in range(8))
    return Program(
        Conditions(ages=True, deployed=True, doomed="p1", rate=0.05, faults=("unavailable", "stuck")),
        (),
        (),
        (
            (sent(Request("transaction", creates=(T, U)), "p1", after=0.0, key=False),),
            collections,
            (sent(Request("load", (T,)), "p3", after=90.0), sent(Request("create", (U,)), "p3", after=40.0)),
        ),
    )


def names_that_collections_cannot_settle() -> Program:
    """A decision is not deleted while a name waits for it that collections can't settle, since their writes fail."""
    fails = tuple(Step("p2", "put", "core/manifest", "unavailable", number) for number in range(1, 20))
    dies = Step("p1", "put", "/transactions/", "crash-after", 2)
    program = names_with_an_old_decision()
    return replace(program, conditions=replace(program.conditions, doomed=None, steps=(dies, *fails)))


def names_that_are_settled_while_they_are_read() -> Program:
    """A reader has read HEAD, a collection settles a name and deletes the decision, then the reader reads that."""
    readers = ("p3", "p4", "p5")
    slow = tuple(Step(reader, "get", "/transactions/", "slow", number) for reader in readers for number in range(1, 12))
    looks = (Request("load", (T,)), Request("list", namespace=DB), Request("exists", (U,)), Request("load", (U,)))
    return Program(
        Conditions(ages=True, steps=(Step("p1", "put", "/transactions/", "crash-after", 2), *slow)),
        (),
        (),
        (
            (sent(Request("transaction", creates=(T, U)), "p1", after=0.0, key=False),),
            (sent(Request("collect"), "p2", after=70.0),),
            *(
                (sent(looks[0], reader, after=68.5), *(sent(look, reader, after=0.0) for look in looks * 3))
                for reader in readers
            ),
        ),
    )


def pointers_that_are_settled_while_they_are_read() -> Program:
    """A reader has read a pointer with an intent, one collection settles it and deletes the decision, another creates
    the decision as aborted, then the reader reads that."""
    readers = ("p3", "p4", "p5")
    slow = tuple(Step(reader, "get", "/transactions/", "slow", number) for reader in readers for number in range(1, 12))
    late = tuple(Step("p6", "get", "/transactions/", "slow", number) for number in range(1, 4))
    commit = replace(sent(Request("transaction", (T, U)), "p1", after=0.0), tries=1)
    return Program(
        Conditions(ages=True, steps=(Step("p1", "put", "/transactions/", "crash-after", 2), *slow, *late)),
        (T, U),
        (),
        (
            (commit,),
            (sent(Request("collect"), "p2", after=70.0),),
            (sent(Request("collect"), "p6", after=70.0),),
            *(
                tuple(sent(Request("load", (T,)), reader, after=0.0 if number else 69.0) for number in range(12))
                for reader in readers
            ),
        ),
    )


def retries_at_servers_that_disagree_on_keys() -> Program:
    """A commit that was applied, and is sent again where variables set another dialect."""
    unheard = Conditions(warm=True, disagreeing=True, rate=0.08, faults=("lost-answer", "echo", "delay"))
    schema = Request("schema", (T,), choice=1, needs=0)
    return Program(
        unheard,
        (T,),
        (),
        (
            (sent(Request("set-properties", namespace=DB), "p1", after=0.0), sent(schema, "p1", "p2", after=0.0)),
            (sent(Request("create", (U,)), "p2", "p1", after=0.0), sent(Request("drop", (U,)), "p2", "p1")),
        ),
    )


def changes_of_how_keys_are_read() -> Program:
    """A change of the dialect between two sendings of a request, or between two steps of one."""
    unheard = Conditions(warm=True, disagreeing=True, rate=0.05, faults=("lost-answer", "delay", "stuck"))
    schema = Request("schema", (T,), choice=1, needs=0)
    back = Request("schema", (T,), choice=0, needs=1)
    return Program(
        unheard,
        (T,),
        (),
        (
            (sent(Request("set-properties", namespace=DB), "p1", after=0.0),),
            (twice(schema, "p1", "p2", after=0.1), twice(back, "p2", "p1", after=0.0)),
            (
                sent(Request("set-keys", choice=1), "p3", after=0.1, key=False),
                sent(Request("set-keys", choice=0), "p3", after=0.1, key=False),
            ),
        ),
    )


def catalogs_that_stop_reading_keys() -> Program:
    """Keys are no longer read, and then read again, while requests are sent a second time, whose first server died
    once it had carried them out. Clocks of clients are ahead, so that their keys look younger than the change."""
    died = (("p4", "_pointers/"), ("p5", "core/manifest"), ("p6", "_pointers/"), ("p7", "core/manifest"))
    schema = Request("schema", (T,), choice=1, needs=0)
    back = Request("schema", (T,), choice=0, needs=1)
    return Program(
        Conditions(
            warm=True,
            disagreeing=True,
            rate=0.02,
            faults=("lost-answer", "delay"),
            steps=tuple(Step(process, "put", key, "crash-after") for process, key in died),
        ),
        (T,),
        (),
        (
            (sent(Request("set-properties", namespace=DB), "p1", after=0.0),),
            (ahead(sent(schema, "p4", "p3", "p1", after=0.35)), sent(back, "p6", "p1", "p3", after=0.15)),
            (ahead(sent(Request("create", (U,)), "p5", "p3", "p1", after=0.3)), sent(Request("drop", (U,)), "p1")),
            (ahead(sent(Request("create", (V,)), "p7", "p1", "p3", after=0.4)), sent(Request("drop", (V,)), "p3")),
            (
                sent(Request("set-keys", choice=2), "p8", after=0.2, key=False),
                sent(Request("set-keys", choice=0), "p8", after=0.3, key=False),
            ),
        ),
    )


def commits_whose_name_changes_hands_twice() -> Program:
    """Three sendings of a commit meet three tables of the name: each pointer that the first two may move is fenced."""
    hands = (
        sent(Request("rename", (T,), to=U), "p4", after=0.3),
        sent(Request("create", (T,)), "p4", after=0.0),
        sent(Request("rename", (T,), to=V), "p4", after=4.0),
    )
    return Program(
        Conditions(
            warm=True,
            steps=(Step("p1", "put", "_pointers/", "crash-late"), Step("p2", "put", "_pointers/", "crash-late", 2)),
        ),
        (T,),
        (),
        ((sent(Request("commit", (T,)), "p1", "p2", "p3", after=0.0),), hands),
    )


def commits_whose_second_sending_dies_once_it_has_its_slot() -> Program:
    """The third sending fences the pointers that the first two may move."""
    hands = (sent(Request("rename", (T,), to=U), "p4", after=0.3), sent(Request("create", (T,)), "p4", after=0.0))
    return Program(
        Conditions(
            warm=True,
            steps=(Step("p1", "put", "_pointers/", "crash-late"), Step("p2", "put", "/1.json", "crash-after")),
        ),
        (T,),
        (),
        ((sent(Request("commit", (T,)), "p1", "p2", "p3", after=0.0),), hands),
    )


def namespaces_that_are_made_late_beside_one_collection() -> Program:
    """A request whose outcome is unknown takes no effect later: the collection is cut short once it has deleted the
    marker, so nothing else fences the registry."""
    return Program(
        Conditions(
            ages=True,
            steps=(
                Step("p1", "put", "core/manifest", "crash-late"),
                Step("p2", "delete", "_idempotency/", "crash-after"),
            ),
        ),
        (),
        (),
        (
            (replace(sent(Request("create-namespace", namespace=OTHER), "p1", after=0.0), tries=1),),
            (sent(Request("collect"), "p2", after=60.0),),
        ),
    )


def transactions_that_die_once_they_are_decided() -> Program:
    """A request that tries to abort one, and is refused, reads the decision."""
    both = Request("transaction", (T, U))
    steps = (
        Step("p1", "put", "/transactions/", "slow", 2),
        Step("p1", "put", "_pointers/", "crash-before", 3),
        Step("p2", "put", "/transactions/", "slow", 3),
    )
    clients = (sent(both, "p2", after=0.0),), (sent(both, "p1", after=0.2, key=False),)
    return Program(Conditions(steps=steps), (T, U), (), clients)


def creates_that_wait_in_a_process_that_stands_still() -> Program:
    """A create that waited beyond its deadline is not sent."""
    return Program(
        Conditions(warm=True, steps=(Step("p1", "put", "core/commits/", "freeze", 2),)),
        (),
        (),
        (
            (sent(Request("create", (T,)), "p1", after=0.0),),
            (sent(Request("create", (U,)), "p1", after=0.01),),
            (replace(sent(Request("create", (V,)), "p1", after=0.02), seconds=20.0),),
        ),
    )


def commits_of_a_server_that_was_idle() -> Program:
    """A server whose cached HEAD names a pointer that was collected since commits to the table of today."""
    collections = tuple(sent(Request("collect"), "p2", after=70.0) for _ in range(4))
    hands = (sent(Request("drop", (T,)), "p2", after=2.0), sent(Request("create", (T,)), "p2"), *collections)
    seen = tuple(sent(Request("list", namespace=DB), process, after=0.0) for process in ("p1", "p3"))
    late = (sent(Request("commit", (T,)), "p1", after=400.0), sent(Request("transaction", (T, U)), "p3"))
    return Program(Conditions(ages=True), (T, U), (), (hands, (*seen, *late)))


def tables_that_move_to_an_empty_level() -> Program:
    """A place with an empty level is refused, and is never taken for the place without it."""
    moves = (Request("move", (T,), choice=EMPTY_LEVEL), Request("commit", (T,)), Request("load", (T,)))
    makes = (
        Request("create-generic", (V,), choice=EMPTY_LEVEL),
        Request("move", (U,), choice=2),
        Request("commit", (U,)),
    )
    clients = (tuple(sent(each, "p1") for each in moves), tuple(sent(each, "p2") for each in makes))
    return Program(Conditions(warm=True, rate=0.02), (T, U), (), clients)


def tables_that_move_to_one_place() -> Program:
    """One of two tables gets a place, or one inside of it, and holds it before its metadata names it."""
    moves = [tuple(Request("move", (table,), choice=choice) for choice in (0, 2, 1, 0)) for table in (T, U)]
    clients = tuple(
        tuple(sent(each, process, "p3", after=0.02) for each in client)
        for client, process in zip(moves, ("p1", "p2"), strict=True)
    )
    return Program(Conditions(warm=True, rate=0.02), (T, U), (), clients)


def commits_of_a_process_that_stands_still() -> Program:
    """A commit whose deadline has passed between its plan and its compare-and-swap is not sent."""
    steps = (Step("p1", "put", "/pending/", "freeze"), Step("p2", "put", "core/commits/", "freeze"))
    commit = replace(sent(Request("commit", (T,)), "p1", after=0.0, key=False), seconds=20.0)
    create = replace(sent(Request("create", (U,)), "p2", after=0.0, key=False), seconds=20.0)
    return Program(Conditions(warm=True, steps=steps), (T,), (), ((commit,), (create,)))


def copies_of_a_catalog_whose_purge_has_begun() -> Program:
    """A purge that had deleted a file when the backup was made waits in the copy, until that is adopted."""
    dies = Step("p2", "delete", "wh/warehouse/", "crash-after")
    works = tuple(sent(Request("purge"), "p1", after=30.0) for _ in range(3))
    commits = tuple(sent(Request("commit", (T,)), "p1", after=0.0) for _ in range(2))
    dropped = (sent(Request("drop", (T,), flag=True), "p1"), sent(Request("purge"), "p2", after=2.0))
    return Program(
        Conditions(restores="elsewhere", window_ms=0, steps=(dies,)),
        (T, U),
        (),
        ((*commits, *dropped),),
        beside=((sent(Request("commit", (U,)), "p1", after=5.0),),),
        restored=(works,),
        adopted=(works,),
    )


def copies_in_which_tables_are_dropped_and_cleaned() -> Program:
    """A drop with purge, commits that clean and collections in a copy delete no file; a commit of the original has left
    one of a lost try."""
    lost = Step("p3", "put", "_pointers/", "crash-before")
    kept = replace(sent(Request("commit", (T,)), "p3", key=False), tries=1)
    commits = tuple(sent(Request("commit", (T,)), "p1", after=0.1) for _ in range(3))
    purge = (sent(Request("drop", (U,), flag=True), "p2", after=0.1), sent(Request("purge"), "p2", after=2.0))
    collections = tuple(sent(Request("collect"), "p3", after=45.0) for _ in range(3))
    return Program(
        Conditions(restores="elsewhere", ages=True, cleaning=True, window_ms=0, steps=(lost,)),
        (T, U),
        (),
        ((kept, *commits[:1]),),
        beside=((sent(Request("load", (T,)), "p1"),),),
        restored=(commits, purge, collections),
        adopted=(collections[:1],),
    )


def purges_that_are_restored_before_their_first_delete() -> Program:
    """The restored catalog takes back a purge that had deleted nothing: its drop was undone before all was lost."""
    dies = Step("p2", "put", "core/manifest", "crash-after")
    return Program(
        Conditions(restores="in place", window_ms=0, steps=(dies,)),
        (T, U),
        (),
        ((sent(Request("drop", (T,), flag=True), "p1", after=0.0), sent(Request("purge"), "p2", after=2.0)),),
        beside=((sent(Request("commit", (U,)), "p1", after=5.0),),),
        restored=(tuple(sent(Request("purge"), "p1", after=30.0) for _ in range(3)),),
    )


def commits_that_a_backup_has_before_they_are_made() -> Program:
    """The backup has the pending receipt of a commit, and not the commit: its file is not taken for that of a lost
    try."""
    commits = tuple(sent(Request("commit", (T,)), "p1", "p2", after=0.02) for _ in range(8))
    collections = tuple(sent(Request("collect"), "p2", after=40.0) for _ in range(4))
    return Program(
        Conditions(restores="in place", ages=True, rate=0.04, faults=("slow", "delay-answer")),
        (T, U),
        (),
        ((sent(Request("commit", (U,)), "p1", after=0.0),),),
        beside=(commits,),
        restored=((sent(Request("commit", (T,)), "p3"), sent(Request("reconcile"), "p1"), *collections),),
    )


def transactions_beside_a_backup() -> Program:
    """A backup has each transaction whole, or not at all."""
    both = tuple(sent(Request("transaction", (T, U)), f"p{place}", after=0.0) for place in (1, 2, 1, 2))
    creates = tuple(sent(Request("transaction", (name,), creates=(V,)), "p3", after=0.0) for name in (T, U))
    return Program(
        Conditions(restores="in place", warm=True),
        (T, U),
        (),
        ((sent(Request("commit", (U,)), "p1", after=0.0),),),
        beside=(both, creates),
        restored=((sent(Request("transaction", (T, U)), "p3"), sent(Request("list", namespace=DB), "p1")),),
    )


def servers_that_survive_a_restore() -> Program:
    """A process that has seen moves that the restored catalog lacks believes what there is."""
    moves = tuple(
        sent(Request("set-properties", namespace=DB, choice=number % 2), f"p{number % 3 + 1}") for number in range(8)
    )
    creates = tuple(sent(Request("create", (name,)), f"p{place}", after=0.0) for place, name in enumerate((U, V), 1))
    return Program(
        Conditions(restores="in place", survives=True),
        (T,),
        (),
        ((sent(Request("commit", (T,)), "p1", after=0.0),),),
        beside=((sent(Request("commit", (T,)), "p1", after=15.0), *moves),),
        restored=(creates, tuple(sent(Request("commit", (T,)), f"p{place}") for place in (1, 2, 3))),
    )


def appends_sent_again_after_a_compaction_and_an_expiry() -> Program:
    """The first sending is applied by a process that dies, and its client has no key. Then a compaction puts the rows
    into another manifest, and an expiry removes the snapshot."""
    died = Step("p1", "put", "_pointers/", "crash-after")
    later: tuple[Kind, ...] = ("add-rows", "compact", "expire")
    return Program(
        Conditions(warm=True, appends=2, steps=(died,)),
        (T,),
        (),
        (
            (sent(Request("add-rows", (T,)), "p1", "p2", after=0.0, key=False),),
            tuple(sent(Request(kind, (T,)), "p3", after=2 * QUICK) for kind in later),
        ),
    )


def appends_beside_a_compaction() -> Program:
    """Rows that are appended meanwhile stay; the compaction is refused once it has lost."""
    appends = tuple(sent(Request("add-rows", (T,)), "p1", "p2", after=QUICK) for _ in range(3))
    others = tuple(sent(Request("add-rows", (T,), choice=choice), "p2", after=QUICK) for choice in (0, 2, 3))
    compactions = tuple(sent(Request("compact", (T,)), "p3", after=0.2) for _ in range(2))
    return Program(Conditions(warm=True, appends=2, rate=0.02), (T,), (), (appends, others, compactions))


FOCUSED = (
    names_that_are_settled_while_they_are_read,
    appends_sent_again_after_a_compaction_and_an_expiry,
    appends_beside_a_compaction,
    pointers_that_are_settled_while_they_are_read,
    copies_of_a_catalog_whose_purge_has_begun,
    copies_in_which_tables_are_dropped_and_cleaned,
    purges_that_are_restored_before_their_first_delete,
    commits_that_a_backup_has_before_they_are_made,
    transactions_beside_a_backup,
    servers_that_survive_a_restore,
    retries_at_servers_that_disagree_on_keys,
    changes_of_how_keys_are_read,
    catalogs_that_stop_reading_keys,
    commits_of_a_process_that_stands_still,
    commits_of_a_server_that_was_idle,
    tables_that_move_to_an_empty_level,
    tables_that_move_to_one_place,
    commits_whose_name_changes_hands_twice,
    commits_whose_second_sending_dies_once_it_has_its_slot,
    namespaces_that_are_made_late_beside_one_collection,
    transactions_that_die_once_they_are_decided,
    creates_that_wait_in_a_process_that_stands_still,
    names_with_an_old_decision,
    names_that_collections_cannot_settle,
    governance_of_a_table_that_changes_hands,
    drops_and_renames_beside_protection,
    one_name_that_is_followed_and_protected,
    one_name_for_four_things,
    one_name_that_is_followed_and_made,
    commits_that_are_forgotten,
    keyless_commit_while_its_name_changes_hands,
    commit_while_its_name_changes_hands,
    keyless_drop_while_its_name_changes_hands,
    listings_beside_transactions,
    listings_beside_transactions_and_creates,
    loads_beside_cleaning,
    loads_of_a_name_that_goes_and_comes_back,
    names_that_dead_coordinators_hold,
    tables_that_dead_coordinators_hold,
    claims_that_failures_beside_them_cancel,
    takeovers_and_names_that_move_on,
    drops_and_undrops_of_one_table,
    a_namespace_made_again_over_what_was_dropped,
    answers_to_drops_of_dead_processes,
    creates_that_are_late_to_see_a_newer_registry,
    tombstones_of_one_name,
    creates_that_die_beside_a_reconciler,
    creates_that_die_beside_queued_work,
    denials_of_what_another_sending_does,
)
