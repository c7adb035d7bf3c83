"""Writes docs/bounds.md, the page of the bounds on all that outsiders can write, from the code's constants: `python -m
tools.bounds`. With `--check`, it only compares."""

import sys
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from pathlib import Path

from arco_catalog.authentication import claims, jwks, oidc, secrets, token_endpoint
from arco_catalog.cli import connections
from arco_catalog.http import names, options, requests
from arco_catalog.iceberg import commit, json, json_slices, manifests, scan_request
from arco_catalog.operations import generic_tables, lineage, namespaces, properties, reports
from arco_catalog.operations.management import entities
from arco_catalog.operations.policies import attachments, policies
from arco_catalog.operations.scans import (
    delete_files,
    delete_memory,
    listed_manifests,
    manifest_source,
    plan_turns,
    planner,
    ranges,
    tokens,
)
from arco_catalog.planning import borrowing, governance, semantic_models
from arco_catalog.protocol import append_rebaser, manifest_reader
from arco_catalog.protocol.catalog import Settings
from arco_catalog.state import (
    avro,
    avro_codecs,
    avro_schema,
    avro_values,
    entry_statistics,
    files,
    manifest_entries,
    memory,
    worker_threads,
)
from arco_catalog.state import lineage as events
from arco_catalog.upkeep.delegation_service import payload
from arco_catalog.upkeep.delivery import deliver, sink, webhook
from arco_catalog.upkeep.purge import reach
from arco_catalog.vending import delete_body, outbound, s3_operation
from tools.support.generated_files import write_or_check

PAGE = Path(__file__).resolve().parents[1] / "docs" / "bounds.md"
REQUEST_S = Settings("").request_ms // 1_000
BODY_S = options.HttpOptions().body_seconds
DEPTH = f"{options.HttpOptions().max_body_depth}"


@dataclass(frozen=True)
class Format:
    """A format that outsiders can write, for the page of bounds: who writes it, and how much of it is read."""

    what: str
    writer: str
    size: str
    values: str
    depth: str
    time: str


def size_of(count: int) -> str:
    """A number of bytes in the largest unit that divides it."""
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= unit and count % unit == 0:
            return f"{count // unit:,} {name}"
    return f"{count:,} B"


REQUEST = f"{REQUEST_S} s"
IN_BODY = "as the body"
METADATA_VALUES = memory.max_metadata_values(memory.MAX_METADATA_BYTES)

FORMATS: Sequence[Format] = (
    Format(
        "Target and headers",
        "anyone",
        size_of(connections.MAX_OVERHEAD_BYTES),
        f"{connections.MAX_PIPELINED} requests ahead of their answers",
        "-",
        f"{connections.HEAD_SECONDS:g} s to arrive",
    ),
    Format(
        "Body, JSON",
        "callers who are let in",
        f"{size_of(options.MAX_BODY_BYTES)} (`ARCO_MAX_BODY`)",
        f"{requests.MAX_VALUES:,}",
        DEPTH,
        f"{BODY_S:g} s to arrive, {REQUEST} in all",
    ),
    Format(
        "Commit, or all of a transaction",
        "writers",
        IN_BODY,
        f"{commit.MAX_UPDATES:,} updates, {commit.MAX_REQUIREMENTS:,} requirements, "
        f"{borrowing.MAX_NEW_PATHS:,} new paths of files elsewhere, {Settings('').max_transaction_tables} tables",
        IN_BODY,
        REQUEST,
    ),
    Format(
        "Form of the token endpoint",
        "anyone",
        size_of(requests.MAX_FORM_BYTES),
        f"{token_endpoint.MAX_FIELDS} fields, {token_endpoint.MAX_ESCAPES:,} percent signs, "
        f"a secret of {secrets.MAX_LENGTH} characters",
        "-",
        f"{BODY_S:g} s to arrive",
    ),
    Format(
        "Token (JWT, our own too)",
        "anyone",
        f"{size_of(claims.MAX_TOKEN)}, its header {size_of(claims.MAX_HEADER)}",
        f"a key's name of {oidc.MAX_KEY_ID} characters",
        f"{json_slices.MAX_DEPTH:,}",
        REQUEST,
    ),
    Format(
        "Issuer's discovery document, and its keys (JWKS)",
        "the issuer",
        f"{size_of(jwks.MAX_DISCOVERY_BYTES)}, {size_of(jwks.MAX_KEYS_BYTES)}",
        f"{jwks.MAX_KEYS} keys; of RSA {8 * max(jwks.RSA_BYTES):,} bits, exponents of {8 * jwks.MAX_EXPONENT_BYTES}",
        f"{json_slices.MAX_DEPTH:,}",
        f"read again after {jwks.RETRY_MS // 1_000} s at least",
    ),
    Format(
        "Metadata file, plain",
        "writers of files, `register`",
        f"{size_of(memory.MAX_METADATA_BYTES)} (`ARCO_MAX_METADATA`)",
        f"strings {size_of(json_slices.MAX_STRING_BYTES)}, {METADATA_VALUES:,} values "
        f"(one for each {memory.BYTES_A_VALUE} bytes of the limit, "
        f"{memory.MIN_METADATA_VALUES:,} at least)",
        f"{json_slices.MAX_DEPTH:,}",
        f"{REQUEST} in a request",
    ),
    Format(
        "Metadata file, gzip",
        "writers of files, `register`",
        f"{size_of(memory.MAX_METADATA_BYTES)}, packed and unpacked",
        f"as plain, {files.MAX_MEMBERS:,} members",
        "as plain",
        "as plain",
    ),
    Format(
        "Manifest list and manifest (Avro)",
        "writers of files",
        f"a file {size_of(avro.MAX_FILE_BYTES)} unpacked, a block {size_of(avro.MAX_BLOCK_BYTES)}, a record "
        f"{size_of(avro.MAX_RECORD_BYTES)}, a zstandard window {size_of(avro_codecs.MAX_DICTIONARY_BYTES)}",
        f"{avro.MAX_FILE_RECORDS:,} records, names of {reach.MAX_NAME_LENGTH:,} characters, "
        f"{size_of(reach.MAX_LIST_BYTES)} of them in a list",
        f"{avro_schema.MAX_NESTING} types",
        "its own task",
    ),
    Format(
        "Header and schema of an Avro file",
        "writers of files",
        f"{size_of(avro.MAX_HEADER_BYTES)}, {size_of(avro_schema.MAX_SCHEMA_BYTES)}",
        f"{avro.MAX_HEADER_ENTRIES:,} entries, {avro_schema.MAX_TYPES:,} types",
        f"{avro_schema.MAX_NESTING}",
        "its own task",
    ),
    Format(
        "Manifest list and new manifest of a rebased append",
        "writers",
        f"{size_of(manifest_reader.MAX_LIST_BYTES)}, {size_of(manifest_reader.MAX_MANIFEST_BYTES)}; unpacked "
        f"{size_of(manifest_reader.MAX_LIST_UNPACKED)}, {size_of(manifest_reader.MAX_MANIFEST_UNPACKED)} and at most "
        f"{manifest_reader.UNPACKED_WEIGHT} times as much; an entry of a list "
        f"{size_of(manifest_reader.MAX_LISTED_BYTES)}, a schema in a manifest {size_of(manifests.MAX_SCHEMA_BYTES)}",
        f"{manifest_reader.MAX_LISTED:,} manifests in a list, {manifests.MAX_LIST_SUMMARIES:,} summaries of partition "
        f"fields, {manifests.MAX_SUMMARIES:,} in an entry, {manifests.MAX_ADDED_MANIFESTS} new manifests, "
        f"{append_rebaser.MAX_ADDED_FILES:,} new files",
        f"{avro_schema.MAX_NESTING} types",
        REQUEST,
    ),
    Format(
        "Manifest list of a scan",
        "writers",
        f"{size_of(listed_manifests.MAX_LIST_BYTES)}, {size_of(listed_manifests.MAX_UNPACKED)} unpacked; an entry "
        f"{size_of(listed_manifests.MAX_ENTRY_BYTES)}",
        f"{listed_manifests.MAX_LISTED:,} manifests, {listed_manifests.MAX_SUMMARIES:,} summaries of partition fields, "
        f"{manifests.MAX_SUMMARIES:,} in an entry",
        f"{avro_schema.MAX_NESTING} types",
        REQUEST,
    ),
    Format(
        "Manifest of a scan",
        "writers",
        f"{size_of(manifest_entries.LIMITS.file_bytes)} unpacked, a header "
        f"{size_of(manifest_entries.LIMITS.header_bytes)}, a block "
        f"{size_of(manifest_entries.LIMITS.block_bytes)}, an entry {size_of(manifest_entries.LIMITS.record_bytes)}; "
        "all that a process reads at one time "
        f"{size_of(manifest_source.READING_BYTES)}; {plan_turns.PLANS_AT_ONCE} plans of a process at one time, each "
        f"with {size_of(plan_turns.TURN_BYTES)} of the memory of requests; delete files in the memory of a plan "
        f"{size_of(delete_memory.MAX_BYTES)}, of more than {size_of(delete_memory.FREE_BYTES)} one plan at a time",
        f"{manifest_entries.LIMITS.file_records:,} entries, {delete_files.MAX_ENTRIES:,} in the delete manifests of a "
        f"part, {planner.MAX_COMPARISONS:,} comparisons with delete files in an answer, "
        f"statistics of {entry_statistics.MAX_COLUMNS:,} "
        f"columns, arrays of {avro_values.MAX_ITEMS:,} items, paths of "
        f"{manifest_entries.MAX_PATH_LENGTH:,} characters",
        f"{avro_schema.MAX_NESTING} types",
        REQUEST,
    ),
    Format(
        "Plan id, plan task",
        "callers who are let in",
        f"{tokens.MAX_TOKEN} characters; its request {size_of(tokens.MAX_STORED)}, "
        f"{size_of(tokens.MAX_REQUEST_BYTES)} unpacked",
        f"{scan_request.MAX_FIELDS:,} columns in select and stats-fields, {ranges.MAX_PARTS} plan tasks in an answer",
        "as the body",
        REQUEST,
    ),
    Format("Statistics (Puffin)", "writers of files", "not read: fsck compares the size", "-", "-", "-"),
    Format(
        "OpenLineage event",
        "callers who are let in",
        f"{size_of(lineage.MAX_EVENT_BYTES)}, a name {size_of(events.MAX_NAME)}",
        f"{events.MAX_DATASETS:,} inputs, as many outputs, {events.MAX_IDENTIFIERS} identifiers each",
        IN_BODY,
        REQUEST,
    ),
    Format("Metrics report that is stored", "engines", size_of(reports.MAX_BYTES), IN_BODY, IN_BODY, REQUEST),
    Format(
        "Policy",
        "writers of policies",
        f"content {size_of(policies.MAX_CONTENT_BYTES)}, parameters {size_of(attachments.MAX_PARAMETERS_BYTES)}",
        IN_BODY,
        f"{json_slices.MAX_DEPTH:,}",
        REQUEST,
    ),
    Format("Semantic model", "writers", size_of(semantic_models.MAX_MODEL_BYTES), IN_BODY, IN_BODY, REQUEST),
    Format(
        "Governance of a name",
        "administrators",
        size_of(governance.MAX_GOVERNANCE_BYTES),
        f"{governance.MAX_CHANGES:,} changes",
        IN_BODY,
        REQUEST,
    ),
    Format(
        "Properties of a namespace",
        "writers",
        f"{size_of(properties.MAX_PROPERTIES_BYTES)}, a name {size_of(properties.MAX_KEY_BYTES)}, a value "
        f"{size_of(properties.MAX_VALUE_BYTES)}",
        f"{namespaces.MAX_REMOVALS:,} removals",
        IN_BODY,
        REQUEST,
    ),
    Format("Generic table", "writers", f"text {size_of(generic_tables.MAX_DOC_BYTES)}", IN_BODY, IN_BODY, REQUEST),
    Format(
        "Principal, role, catalog",
        "administrators",
        f"properties {size_of(entities.MAX_PROPERTIES_BYTES)}, a name {entities.MAX_NAME} characters",
        IN_BODY,
        IN_BODY,
        REQUEST,
    ),
    Format(
        "Name in a path",
        "anyone",
        size_of(names.MAX_NAME_BYTES),
        "-",
        f"{names.MAX_LEVELS} levels",
        REQUEST,
    ),
    Format(
        "Task of the delegation service",
        "catalogs with its scope",
        f"{size_of(payload.MAX_BYTES)}, and as much of `config`",
        IN_BODY,
        IN_BODY,
        REQUEST,
    ),
    Format(
        "Request to be signed",
        "engines",
        f"a key {size_of(s3_operation.MAX_KEY_BYTES)}, DeleteObjects {size_of(delete_body.MAX_BYTES)}",
        f"{delete_body.MAX_OBJECTS:,} objects",
        "elements and text alone",
        REQUEST,
    ),
    Format(
        "Answers of clouds that give credentials",
        "endpoints that the operator allows",
        size_of(outbound.MAX_ANSWER_BYTES),
        "-",
        "-",
        REQUEST,
    ),
    Format(
        "Answers of webhooks that get events",
        "receivers that operators chose",
        size_of(sink.MAX_ANSWER_BYTES),
        f"the status, and a pause of {deliver.LAST_PAUSE_MS // 60_000} minutes",
        "-",
        f"{webhook.TIMEOUTS.exchange_s:.0f} s",
    ),
)

HEAD = """\
# What outsiders can write

<!-- Made by `python -m tools.bounds`: do not edit. -->

The table below lists each format that the catalog reads from outside, who writes it, and how much of it is read before
it is refused. An operator can change a limit by the variable in brackets behind it. The other limits of requests and
answers are in [Operating](operating.md#limits).

| what | who writes it | bytes | values or records | depth | time |
| --- | --- | --- | --- | --- | --- |
"""
TAIL = f"""
The catalog does not read CloudEvents, notifications of buckets, and files of Java properties.

## What a process takes at most

- **Values of documents** are counted before a document is parsed, by its commas and opening brackets:
  {memory.VALUE_BYTES} bytes of memory are taken for each, or by weight of its bytes if that is more
  ([memory](operating.md#memory-and-connections)). The values of a metadata file of up to 128 KiB are not counted.
- **All requests of a process** have {size_of(memory.REQUEST_MEMORY_BYTES)} of memory together
  (`ARCO_REQUEST_MEMORY`). A request begins to use a part
  of it only if it and the other requests of its principal then have at most one part in {memory.OWNER_SHARE}; a
  principal's only request always begins, and one that has begun may take more. Tasks, collections and commands have
  {size_of(memory.BACKGROUND_MEMORY_BYTES)} of memory. Caches have
  {size_of(memory.CACHE_MEMORY_BYTES)} (`ARCO_CACHE_MEMORY`).
- **A document that weighs more than the whole memory of requests, or of tasks,** is read alone, with up to 400 MB
  beyond it. So the sum with the defaults is 60 MB at rest, 420 MB for requests, tasks and caches, and 400 MB for each
  of requests and tasks while such a document is read.
- **The event loop** parses up to 64 KB itself; two threads parse all that is longer, in slices of
  {size_of(json_slices.SLICE_BYTES)} where a document has more than {json.MAX_CALL_VALUES:,} values or
  {size_of(json.MAX_CALL_BYTES)}. No string in such a document may be longer than
  {size_of(json_slices.MAX_STRING_BYTES)}. Values are written, and freed, in steps as small. What a long commit
  adds is compared with the registry by these threads, too. The collector of cycles leaves large documents alone for
  as long as a request has memory for one.
  Python runs one thread at a time, and the loop waits for its turn more than once for each request: for
  {worker_threads.SWITCH_S * 1e3:.0f} ms, where Python's default is 5, and until the present call of a thread ends.
- **A hostile table fails its own task**: an object that can't be read ends the purge of its table with a reason, and
  other purges go on. These read the records of the tables that have changed since the last purge, which takes some
  15 µs of CPU for each record. A version of a file that can't be read is read once in a process. How many files the
  readable manifests of one table name has no bound.

`make bench-hostile` sends the worst document of each format to a real server. It prints how long `/health` waits
meanwhile, the longest step of the event loop in CPU time, by how much the loop was late, and the peak of memory. The
bench fails where a step takes more than 100 ms, or the delay, the memory or an answer breaks its bound.
"""


def page() -> str:
    """The text of the page."""
    return HEAD + "".join(f"| {' | '.join(astuple(each))} |\n" for each in FORMATS) + TAIL


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes or checks the page."""
    return write_or_check({PAGE: page()}, "tools.bounds", arguments)


if __name__ == "__main__":
    sys.exit(main())
