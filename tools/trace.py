"""Traces a load and a commit through the code, of a catalog alone and of one in a realm: `python -m tools.trace`.

It prints the project's functions that a request enters, each indented below its caller, from the ASGI app down to the
calls of the store. Steps marked `||` run concurrently. Without `--all` only coroutines are printed: the plain functions
between them compute, and do no I/O.
"""

import argparse
import asyncio
import dis
import inspect
import sys
from collections.abc import Awaitable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType

from arco_catalog.http.app import App, create_app
from arco_catalog.operations.open import build_catalog
from arco_catalog.protocol.catalog import Settings
from arco_catalog.protocol.eager_tasks import start
from arco_catalog.state.runtime import SystemRuntime
from storage_backends.memory import MemoryStore
from tools.support.asgi_client import Answer, Client
from tools.support.request_bodies import schema, set_property, uuid7
from tools.support.served_realm import ServedRealm

ROOT = Path(__file__).resolve().parents[1]
OURS = tuple(f"{ROOT / package}/" for package in ("arco_catalog", "storage_backends"))

NAMESPACES = "/v1/main/namespaces"
TABLE = f"{NAMESPACES}/db/tables/t"

_FIRST_ENTRY = bytes((dis.opmap["RESUME"], 0))
_STORE_CALLS = {
    getattr(MemoryStore, name).__code__: name.upper() for name in ("get", "get_range", "put", "delete", "list")
}
_APP = App.__call__.__code__
_START = start.__code__


@dataclass(slots=True)
class Frame:
    """A function that was entered during a traced request, and the functions that it entered. `concurrent` marks a step
    that runs concurrently with others; `call` is the method and key of a call of the store, otherwise None."""

    code: CodeType | None = None
    concurrent: bool = False
    call: str | None = None
    entered: list["Frame"] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Module and function, the module without the package that most are in."""
        assert self.code is not None
        parts = Path(self.code.co_filename).relative_to(ROOT).with_suffix("").parts
        return ".".join((*parts, self.code.co_qualname)).removeprefix("arco_catalog.")

    @property
    def is_coroutine(self) -> bool:
        """Whether it may wait."""
        return self.code is not None and bool(self.code.co_flags & inspect.CO_COROUTINE)

    def below(self) -> Iterator["Frame"]:
        """All that was entered from here, in the order of the tree."""
        for inner in self.entered:
            yield inner
            yield from inner.below()

    def lines(self, *, plain_functions: bool, indent: str = "") -> Iterator[str]:
        """The tree, a line each."""
        for inner in self.entered:
            shown = inner.call is not None or inner.is_coroutine or plain_functions
            if shown:
                mark = "|| " if inner.concurrent else ""
                yield f"{indent}{mark}{inner.call or inner.name}"
            yield from inner.lines(plain_functions=plain_functions, indent=indent + "  " if shown else indent)


class Trace:
    """A context that records which functions of ours are entered. A coroutine is recorded once, however often it goes
    on."""

    def __init__(self) -> None:
        self.root = Frame()
        self._known: dict[FrameType, Frame] = {}

    @property
    def frames(self) -> int:
        """How many functions were entered, down to the calls of the store."""
        return sum(1 for _ in self.root.below())

    @property
    def coroutines(self) -> int:
        """How many of them may wait."""
        return sum(entered.is_coroutine for entered in self.root.below())

    @property
    def calls(self) -> Sequence[str]:
        """The calls of the store, each with method and key."""
        return [entered.call for entered in self.root.below() if entered.call is not None]

    def __enter__(self) -> "Trace":
        sys.setprofile(self._note)
        return self

    def __exit__(self, *raised: object) -> None:
        sys.setprofile(None)
        self._known.clear()

    def _note(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(OURS):
            return
        if code.co_code[frame.f_lasti : frame.f_lasti + 2] != _FIRST_ENTRY:
            return
        outer = frame.f_back
        while outer is not None and outer not in self._known:
            outer = outer.f_back
        if outer is None and code is not _APP:  # a task, of a step that was noted when it began
            return
        caller = self.root if outer is None else self._known[outer]
        if caller.call is not None:  # what a store does for its answer is not the way there
            return
        entered = Frame(code, caller.code is _START and code.co_filename != _START.co_filename)
        if code in _STORE_CALLS:
            key = frame.f_locals.get("key", frame.f_locals.get("prefix"))
            entered.call = f"{_STORE_CALLS[code]} {key}"
        caller.entered.append(entered)
        self._known[frame] = entered


async def traced(step: Awaitable[Answer]) -> Trace:
    """Await a request, and return the trace of the functions that it enters. Raises `RuntimeError` unless the response
    has status 200."""
    with Trace() as trace:
        answer = await step
    if answer.status != 200:
        raise RuntimeError(f"{answer.status}: {answer.body!r}")
    return trace


def catalog_client(runtime: SystemRuntime) -> Client:
    """A client of a catalog in memory, `main`."""
    return Client(create_app({"main": build_catalog(Settings("main"), MemoryStore(), "memory:///", (), runtime)}))


async def realm_client(runtime: SystemRuntime) -> Client:
    """A client of the root principal of a realm in memory, which has the catalog `main`."""
    return (await ServedRealm.made(MemoryStore(), runtime)).client()


async def load_and_commit(client: Client, runtime: SystemRuntime) -> dict[str, Trace]:
    """The traces of a load and of a commit under a key, by name. The process has answered the same requests before."""

    def commit(value: str) -> Awaitable[Answer]:
        return client.post(TABLE, set_property("a", value), idempotency_key=uuid7(runtime.now_ms(), runtime))

    await client.post(NAMESPACES, {"namespace": ["db"]})
    await client.post(f"{NAMESPACES}/db/tables", {"name": "t", "schema": schema("a")})
    await commit("1")
    await client.get(TABLE)
    return {"load": await traced(client.get(TABLE)), "commit": await traced(commit("2"))}


async def traces() -> dict[str, Trace]:
    """The traces of a load and a commit in a catalog alone, and in one of a realm."""
    runtime = SystemRuntime()
    alone = await load_and_commit(catalog_client(runtime), runtime)
    in_realm = await load_and_commit(await realm_client(runtime), runtime)
    return alone | {f"{name} in a realm": trace for name, trace in in_realm.items()}


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the traces."""
    parser = argparse.ArgumentParser(prog="python -m tools.trace", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--all", action="store_true", help="show plain functions too")
    show_all = parser.parse_args(arguments).all
    for name, trace in asyncio.run(traces()).items():
        head = f"{name}: {trace.frames} frames, {trace.coroutines} coroutines, {len(trace.calls)} store calls"
        lines = (head, *trace.root.lines(plain_functions=show_all, indent="  "), "")
        sys.stdout.writelines(f"{line}\n" for line in lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
