"""Runs a program over fresh names, until all that was sent has ended, and then reads of what there is."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import aiohttp

from arco_catalog.prove.client import Client, Recorder
from arco_catalog.prove.history import History, Kind, Operation, Status
from arco_catalog.prove.network import Network
from arco_catalog.prove.program import Program, Step
from arco_catalog.prove.requests import Paths, Request

MAX_FINAL_TRIES = 60
FINAL_PAUSE_S = 0.5
REPEATED_KEYS = 20
"""How many of the requests that were completed are sent again under their keys at the end of a run."""


class ProgramFailed(Exception):
    """A program could not be run to its end: the catalog did not confirm that it made the namespace, or the results
    of the last reads stayed unknown."""


@dataclass(frozen=True, slots=True)
class Site:
    """What runs need: the session with the headers of each request, the servers' URIs, the catalog's prefix with the
    leading slash, the program that kills and starts servers, the time in milliseconds, and idempotency keys."""

    session: aiohttp.ClientSession
    servers: Sequence[str]
    prefix: str
    kill: Callable[[], Awaitable[None]]
    clock: Callable[[], int]
    new_key: Callable[[], str | None]


@dataclass(frozen=True, slots=True)
class ProgramResult:
    """The history of a run, and the operations with an answer that is none of the specification."""

    history: History
    foreign: Sequence[str]


async def run_program(site: Site, namespace: str, program: Program) -> ProgramResult:
    """Runs a program in a new namespace until all that was sent has ended; sends some requests again under their keys,
    reads all tables a last time, and drops the tables and the namespace, ignoring the answers; they stay after a
    failure. Raises an `ExceptionGroup` with `ProgramFailed`, or, within a second group, with what `site.kill` raises.
    """
    recorder = Recorder(site.clock, site.new_key)
    paths = Paths(site.prefix, namespace)
    async with asyncio.TaskGroup() as tasks:
        network = Network(site.session, site.servers, tasks)
        clients = [Client(network, paths, recorder) for _ in program.clients]
        await _make_namespace(network, paths)
        await _run_clients(site, clients, program)
        await network.settle()
        last = Client(network, paths, recorder)
        await _send_again(last, recorder)
        await last.compare_unseen()
        names = await _final_reads(last, recorder, program)
        await _remove(network, paths, names)
    return ProgramResult(History(recorder.observations, recorder.repeated), recorder.foreign)


async def _make_namespace(network: Network, paths: Paths) -> None:
    """Makes the namespace of a program, or accepts one that is there; repeats the request while the result is unknown.
    Raises `ProgramFailed` if the catalog rejects it, or after `MAX_FINAL_TRIES` tries."""
    body = {"namespace": [paths.namespace]}
    for _ in range(MAX_FINAL_TRIES):
        answer = (await network.send(Request("POST", paths.namespaces, body), 0)).answer
        if answer is not None and (answer.code in (200, 409)):
            return
        if answer is not None and answer.status is Status.REFUSED:
            raise ProgramFailed(f"The catalog refuses to make a namespace, with status {answer.code} {answer.error}")
        await asyncio.sleep(FINAL_PAUSE_S)
    raise ProgramFailed(f"The catalog did not confirm in {MAX_FINAL_TRIES} tries that it made a namespace")


async def _run_clients(site: Site, clients: Sequence[Client], program: Program) -> None:
    """Runs all clients at once. When as many steps have begun as are to precede a kill, the client with the next step
    kills the servers before that step, and waits for the end of the kill; the others go on. Raises an `ExceptionGroup`
    with what the kill raises."""
    begun = 0
    kills = [*program.kills]

    async def run(client: Client, steps: Sequence[Step]) -> None:
        nonlocal begun
        for step in steps:
            begun += 1
            if kills and begun > kills[0]:
                kills.pop(0)
                await site.kill()
            await client.run(step)

    async with asyncio.TaskGroup() as running:
        for client, steps in zip(clients, program.clients, strict=True):
            running.create_task(run(client, steps))


async def _send_again(client: Client, recorder: Recorder) -> None:
    """Sends requests again under their keys, to one server after the other: all that are unknown, and some of the
    others (every nth, at least `REPEATED_KEYS`, if there are as many)."""
    unknown = [keyed for keyed in recorder.keyed if recorder.observations[keyed.observation].status is Status.UNKNOWN]
    known = [keyed for keyed in recorder.keyed if keyed not in unknown]
    for number, keyed in enumerate((*unknown, *known[:: max(1, len(known) // REPEATED_KEYS)])):
        await client.send_again(keyed, number)


async def _final_reads(client: Client, recorder: Recorder, program: Program) -> list[str]:
    """Loads every table that the program names, and lists the namespace, again until the result is known. Returns the
    names. Raises `ProgramFailed` if that of one stays unknown in all its tries."""
    names = sorted({name for steps in program.clients for step in steps for name in step.operation.names})
    for name in names:
        await _read(client, f"final.{name}", Kind.LOAD, (name,))
    await _read(client, "final.list", Kind.LIST, ())
    return names


async def _read(client: Client, name: str, kind: Kind, names: tuple[str, ...]) -> None:
    """Repeats one of the last reads of a run until the result is known, at most `MAX_FINAL_TRIES` times; the client
    records it. Raises `ProgramFailed` after that."""
    for number in range(MAX_FINAL_TRIES):
        observation = await client.run(Step(Operation(f"{name}.{number}", kind, names), server=number), final=True)
        if observation is not None and observation.status is not Status.UNKNOWN:
            return
        await asyncio.sleep(FINAL_PAUSE_S)
    raise ProgramFailed(
        "The catalog did not answer a read at the end of a run, or only with 5xx or in a form that the specification "
        f"does not have, in {MAX_FINAL_TRIES} tries: {name}"
    )


async def _remove(network: Network, paths: Paths, names: Sequence[str]) -> None:
    """Drops the tables of a run, without purge, and the namespace, and ignores the answers. What can't be dropped
    stays, in a namespace of its own."""
    for name in names:
        await network.send(Request("DELETE", f"{paths.table(name)}?purgeRequested=false"), 0)
    await network.send(Request("DELETE", paths.of_namespace), 0)
