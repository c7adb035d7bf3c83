"""Examines the registry for a check: HEAD, the commits of its history, and commits on HEAD that may have become
HEAD."""

from collections.abc import Container, Mapping, Sequence

from arco_catalog.iceberg.errors import InternalError
from arco_catalog.iceberg.json import JsonObject, dumps
from arco_catalog.planning.name_intents import pending_transactions
from arco_catalog.protocol.concurrency import batches, gather
from arco_catalog.protocol.past_heads import next_list
from arco_catalog.state.commit_edits import chain_of, head_of, is_whole
from arco_catalog.state.commit_record import CommitRecord, commit_id
from arco_catalog.state.fields import integer, objects, optional_text, text
from arco_catalog.state.index import Index
from arco_catalog.state.listing import list_objects
from arco_catalog.state.registry import RegistryState
from arco_catalog.state.registry_floor import read_registry_floor
from arco_catalog.state.runtime import ulid_of
from arco_catalog.state.transaction import Decision
from arco_catalog.upkeep.fsck.codes import Code
from arco_catalog.upkeep.fsck.entries import examine_entries
from arco_catalog.upkeep.fsck.examination import AT_ONCE, Examination, Findings
from arco_catalog.upkeep.fsck.findings import Finding
from arco_catalog.upkeep.fsck.repairs import CopyHead, SettleNames, WriteWholeCommit

NEWEST = 100
"""The number of newest commits in which the last known HEAD is searched, if HEAD can't be read."""
_LOST = "this registry commit does not exist, and without it manifest.json could not be computed if it were lost"


async def examine_registry(examination: Examination) -> Findings:
    """Examines HEAD, the commits, the index and the intents of a registry, yields all findings, and adds the facts that
    later parts need. If HEAD can't be read, or is missing although there are commits, that is the only finding. There
    is none if HEAD and all commits are missing.

    Commits are listed before HEAD is read. A listed commit with a listed child was HEAD by then, so HEAD, which is read
    later, must be one of its descendants.
    """
    paths = examination.paths
    commits = [
        each.key.rpartition("/")[2].removesuffix(".json")
        async for each in list_objects(examination.session.state, paths.registry_commits)
    ]
    found = await examination.read(paths.manifest)
    if found is None:
        if commits:
            yield Finding(Code.MANIFEST_MISSING, paths.manifest, await _last_known_head(examination, commits))
        return
    try:
        head = RegistryState.parse(found.body, found.version, paths.manifest)
        since_ms = head.at_ms - examination.settling_ms
        own, examination.head_sequence = text(head.document, "id"), head.sequence
    except InternalError as error:
        last_known = await _last_known_head(examination, commits)
        yield Finding(Code.MANIFEST_UNREADABLE, paths.manifest, f"{error.message}; {last_known}")
        return
    if head.copy_of is not None:
        yield Finding(
            Code.CATALOG_COPY, paths.manifest, f"the catalog is a copy, and the original is at {head.copy_of}"
        )
    needed = await _needed_by(examination, own)
    async for finding in _examine_history(examination, head, needed):
        yield finding
    async for finding in _examine_own_commit(examination, head, found.body, needed):
        yield finding
    for attempt in [each for attempts in head.cancelled().values() for each in attempts]:
        if (commit := head.commit_of(attempt)) is not None:
            yield Finding(
                Code.COMMIT_CANCELLED, paths.manifest, f"commit {commit} has operation {attempt}, which is cancelled"
            )
    late = [commit for commit in commits if commit != own and commit >= ulid_of(max(0, since_ms), bytes(10))]
    async for finding in _examine_successors(examination, own, late):
        yield finding
    async for finding in examine_entries(examination, head.index):
        yield finding
    async for finding in _examine_intents(examination, head.index):
        yield finding
    # A drop or an undrop under way closes the catalog for a moment.
    if examination.is_closed and head.at_ms < examination.session.now_ms() - examination.settling_ms:
        name = examination.session.settings.warehouse
        found_there = f"catalog {name} is closed, and still has its name: a drop or an undrop did not finish"
        yield Finding(Code.CATALOG_CLOSED, paths.root, found_there)


async def _needed_by(examination: Examination, head: str) -> Mapping[str, CommitRecord | None]:
    """Reads the commits from which HEAD can be computed, given the id of HEAD's commit: that one, and those before it
    up to the last with a whole object. Returns them by their ids, the last first, with None for those that are missing
    or can't be read; only HEAD's commit if that can't be read."""
    last = await _commit(examination, head)
    needed = {head: last}
    if last is None or is_whole(last.document) or last.before is None:
        return needed
    before = [*reversed(chain_of(last.document)[:-1])]
    for commit, each in zip(before, await gather(*(_commit(examination, each) for each in before)), strict=True):
        needed[commit] = each
        if each is not None and is_whole(each.document):
            break
    return needed


async def _examine_own_commit(
    examination: Examination, head: RegistryState, body: bytes, needed: Mapping[str, CommitRecord | None]
) -> Findings:
    """Examines whether HEAD, which has the bytes `body`, can be computed from the commits `needed`, unless the object
    of HEAD's commit has the same bytes, can't be read or is another commit. Yields a finding for every one that is
    missing or can't be read, but for findings of the history, and one if the commits give another HEAD or none."""
    own = head.id or ""
    key, differs = examination.paths.registry_commit(own), "it differs from manifest.json, whose copy it is"
    found = await examination.read(key)
    last = needed[own]
    if found is None or found.body == body or last is None or last.id != own:
        return
    chain = [each.document for each in needed.values() if each is not None]
    if len(needed) > max(1, len(chain)):
        floor = await _floor(examination, head)
        for place, (commit, each) in enumerate(needed.items()):
            if each is None and head.sequence - place < floor:
                for finding in await _look_at(examination, commit, own, needed):
                    yield finding
        return
    try:
        if len(chain) > 1 and dumps(head_of([*reversed(chain)]), sort_keys=True) == body:
            return
    except InternalError as error:
        differs = error.message
    yield Finding(Code.COMMIT_FOREIGN, key, differs, WriteWholeCommit())


async def _floor(examination: Examination, head: RegistryState) -> int:
    """Returns the sequence number below which registry commits may have been collected; that of HEAD if it can't be
    read."""
    try:
        return await read_registry_floor(examination.session.state)
    except InternalError:
        return head.sequence  # the floor is unknown; the corrupt object is a finding of the records


async def _examine_history(examination: Examination, head: RegistryState, needed: Container[str]) -> Findings:
    """Examines the stored objects of `head` and of the commits that were HEAD before it, back to the first commit, or
    to the oldest that the collection has left. Yields a finding for each that is missing, can't be read, or is another
    commit, with a repair if HEAD is computed from it (`needed`)."""
    floor = await _floor(examination, head)

    async def look(commit: str) -> Sequence[Finding]:
        return await _look_at(examination, commit, head.id or "", needed)

    listing: CommitRecord | None = head
    end = head.sequence
    while listing is not None:
        commits = listing.listed_from(end)
        async for finding in examination.each(commits[: max(0, end - floor + 1)], look):
            yield finding
        end -= len(commits)
        if listing.before is None or end < floor:
            return
        after = await next_list(examination.session.state, listing, end)
        if after is None and end >= await _floor(examination, head):  # or it was collected meanwhile
            for finding in await look(listing.before):
                yield finding
        listing = after


async def _look_at(examination: Examination, commit: str, head: str, needed: Container[str]) -> Sequence[Finding]:
    """Returns the finding for a commit that is missing, can't be read, or is another commit. It has a repair if the
    commit is `head`, HEAD's commit, or HEAD is computed from it (`needed`)."""
    key, repair = examination.paths.registry_commit(commit), WriteWholeCommit() if commit in needed else None
    found = await examination.read(key)
    if found is None:
        gone = "this registry commit does not exist" if repair is None or commit == head else _LOST
        return [Finding(Code.COMMIT_MISSING, key, gone, CopyHead(commit) if commit == head else repair)]
    try:
        named = commit_id(found.body, key)
    except InternalError as error:
        return [Finding(Code.COMMIT_UNREADABLE, key, error.message, repair)]
    description = f"the object is commit {named}, and has the key of another commit"
    return [] if named == commit else [Finding(Code.COMMIT_FOREIGN, key, description, repair)]


async def _examine_intents(examination: Examination, index: Index) -> Findings:
    """Yields a finding for each transaction with intents on names in the index whose decision object is missing, or,
    with a repair, that was decided some time ago, if the names still have them. A pending transaction has none, nor has
    one with a decision that can't be read."""
    state = examination.session.state

    async def look(transaction: str) -> Sequence[Finding]:
        key = examination.paths.transaction(transaction)
        found = await examination.read(key)
        try:
            decision = None if found is None else Decision.parse(found, key)
            if decision is not None and (decision.status == "pending" or decision.age_ms < examination.settling_ms):
                return []
            if transaction not in pending_transactions((await state.head()).index):
                return []
        except InternalError:  # a finding of the examination of transactions
            return []
        if decision is None:
            return [
                Finding(
                    Code.TRANSACTION_MISSING,
                    key,
                    "a name has an intent of this transaction, and its decision does not exist, so the next request "
                    "for the name takes it for one that did not commit",
                )
            ]
        return [
            Finding(
                Code.INTENT_LEFT,
                key,
                f"the transaction is {decision.status}, and a name still has the intent",
                SettleNames(transaction),
            )
        ]

    async for finding in examination.each(pending_transactions(index), look):
        yield finding


async def _examine_successors(examination: Examination, head: str, late: Sequence[str]) -> Findings:
    """Reads the commits with the ids `late`, and yields a finding for a child of `head`, the id of HEAD, that has a
    child itself: it was HEAD, so HEAD is an older commit. Yields another finding for an old child without a child,
    which may have become HEAD, and adds the ids of its operations to `examination.unconfirmed`. A commit that lost the
    compare-and-swap has another parent, since HEAD has moved."""
    built = await _documents(examination, late)
    followed = {optional_text(commit, "parent") for commit in built}
    settled = ulid_of(examination.session.now_ms() - examination.settling_ms, bytes(10))
    for commit in built:
        name = optional_text(commit, "id") or ""
        if commit.get("parent") != head:
            continue
        if name in followed:
            found = (
                f"commit {name}, a child of HEAD, has a child itself: {_known_head(built, _last_parent(built, name))}"
            )
            yield Finding(Code.MANIFEST_OLDER, examination.paths.manifest, found)
        elif name < settled:
            examination.unconfirmed |= {str(operation.get("id")): name for operation in objects(commit, "operations")}
            yield Finding(
                Code.COMMIT_UNCONFIRMED,
                examination.paths.registry_commit(name),
                "the registry commit is a child of HEAD, and it is unknown whether it became HEAD, which matters only "
                "if manifest.json was restored",
            )


def _last_parent(built: Sequence[JsonObject], first: str) -> str:
    """Returns the id of the last commit that was HEAD in a line of descendants that begins at the commit `first`: the
    last one that has a child among the commits `built`."""
    parents, last = {commit.get("parent") for commit in built}, first
    for _ in built:
        after = [str(commit.get("id")) for commit in built if commit.get("parent") == last]
        last = next((commit for commit in after if commit in parents), last)
    return last


def _known_head(commits: Sequence[JsonObject], last: str) -> str:
    """Describes, for a finding, the commit `last`, which is the last one known to have been HEAD, and its children
    among `commits`, one of which may be HEAD."""
    children = ", ".join(sorted(str(commit["id"]) for commit in commits if commit.get("parent") == last))
    return f"the last commit known to have been HEAD is {last}; one of its children may be HEAD: {children}"


async def _last_known_head(examination: Examination, commits: Sequence[str]) -> str:
    """Reads the `NEWEST` last of these commits, and describes, for a finding, the last one that has a child among them,
    and so is known to have been HEAD; or states that there is none."""
    newest = await _documents(examination, sorted(commits)[-NEWEST:])
    parents = {commit.get("parent") for commit in newest}
    known = [commit for commit in newest if commit.get("id") in parents]
    if not known:
        return "no commit is known to have been HEAD"
    last = max(known, key=lambda commit: integer(commit, "sequence"))
    return _known_head(newest, str(last["id"]))


async def _documents(examination: Examination, commits: Sequence[str]) -> Sequence[JsonObject]:
    """Reads these registry commits, given by their ids. Returns the documents of those that exist and are not corrupt.
    Raises `StoreError`."""
    there: list[JsonObject] = []
    for batch in batches(commits, AT_ONCE):
        states = await gather(*(_commit(examination, commit) for commit in batch))
        there += [state.document for state in states if state is not None]
    return there


async def _commit(examination: Examination, commit: str) -> CommitRecord | None:
    """Reads the registry commit with this id; None if it is missing or corrupt, which is another finding. Raises
    `StoreError`."""
    key = examination.paths.registry_commit(commit)
    found = await examination.read(key)
    try:
        return None if found is None else CommitRecord.read(found.body, key)
    except InternalError:
        return None
