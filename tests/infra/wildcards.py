"""Every wildcard in the resources of a policy that allows something, and why it is there."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Wildcard:
    """Statements with this id may name resources that end like this."""

    statement: str
    ending: str
    reason: str


REASONS = (
    Wildcard("State", "/_catalog/*", "the catalog's records, which nobody can list beforehand"),
    Wildcard("ReadMetadataFiles", "/*.metadata.json", "metadata files, wherever a table keeps them: no data file"),
    Wildcard("ReadMetadataFiles", "/*.metadata.json.gz", "metadata files that other catalogs named so, for register"),
    Wildcard("WriteMetadataFiles", "/*.metadata.json", "metadata files, wherever a table keeps them: no data file"),
    Wildcard("ReadRealm", "/_realm/*", "principals, roles and catalogs of a realm, and the state of those catalogs"),
    Wildcard("WriteRealm", "/_realm/*", "the same, which the API alone writes"),
    Wildcard("StateInRealm", "/_realm/catalogs/*", "state of catalogs, each in a folder of its own"),
    Wildcard(
        "TableFiles", "/*", "files of tables, in the folders where tables may be, for credentials that are vended"
    ),
    Wildcard("TokenKey", "-token-key-??????", "Secrets Manager ends a secret's ARN with six characters of its own"),
    Wildcard("ProbeForConditionalWrites", "/_probe/*", "two objects a start, under a name that is new each time"),
    Wildcard("DeleteTableFiles", "/*", "files of dropped tables and of expired snapshots, where tables may be"),
    Wildcard("RemoveHints", "/_catalog/tasks/open/*", "hints, which are named by task and time"),
    Wildcard("DeleteProposals", "/_catalog/core/proposals/*", "planned changes of requests that have ended"),
    Wildcard("DeleteProposals", "/_realm/core/proposals/*", "the same of a realm's registry"),
    Wildcard("CollectState", "/_catalog/*", "whatever nothing leads to any more; manifests are denied"),
    Wildcard("CollectState", "/_realm/catalogs/*", "the same of catalogs that were made in a realm"),
    Wildcard("CollectState", "/_realm/core/commits/*", "old commits of a realm's registry"),
    Wildcard("CollectState", "/_realm/core/index/*", "parts of its index that were replaced"),
    Wildcard("CollectState", "/_realm/core/proposals/*", "planned changes of processes that died"),
    Wildcard("CollectState", "/_realm/iceberg_idempotency/*", "markers of old keys of its requests"),
    Wildcard("CollectState", "/_catalog/tasks/*", "tasks of a delegation service that have ended"),
    Wildcard("CollectState", "/_catalog/iceberg_idempotency/*", "markers of old keys of such a service"),
    Wildcard("FenceRealm", "/_realm/core/*", "HEAD of a realm, moved to a commit that changes nothing"),
    Wildcard("FenceRealm", "/_realm/iceberg_idempotency/*", "the last slot of a marker that is to go"),
    Wildcard("FenceRealm", "/_realm/operational/*", "up to where commits have gone"),
    Wildcard("ReadDelegatedTasks", "/_catalog/*", "what a delegation service keeps at the store's root"),
    Wildcard("CloseMarkersOfDelegatedTasks", "/_catalog/iceberg_idempotency/*", "the last slot of a marker"),
    Wildcard("CollectMetadataFiles", "/*.metadata.json", "metadata files of lost tries: no data file"),
    Wildcard("Logs", ":*", "streams of the function's own log group, which Lambda names"),
    Wildcard("ReadState", "/_catalog/*", "the same, for the pipeline, which writes little of it"),
    Wildcard("ReadTables", "/*", "files of tables, for the job that checks that each is there, in its size"),
    Wildcard("ReadManifests", "/*.avro", "manifests and their lists, wherever a table keeps them"),
    Wildcard("WriteMissingReceipts", "/_catalog/events/*/iceberg/committed/*", "receipts of commits, by day"),
    Wildcard("WriteMissingReceipts", "/_catalog/events/late/*", "marks on days, which are named by day"),
    Wildcard("WriteMissingReceipts", "/_catalog/operational/reconciler/*", "checkpoints of walks"),
    Wildcard("RemoveLateMarks", "/_catalog/events/late/*", "marks on days, which are named by day"),
    Wildcard("WriteTasks", "/_catalog/tasks/*", "tasks of maintenance, and hints that lead to them"),
    Wildcard("Tables", "/*", "files of tables, where the catalog gives the pipeline no credentials for them"),
    Wildcard("Traces", "*", "X-Ray knows no resources for these two actions"),
    Wildcard("ReadTheJob", "/arco/*", "the Spark job's script and archives, in the folder that `emr.code` names"),
)
