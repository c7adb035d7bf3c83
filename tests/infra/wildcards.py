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
    Wildcard("Logs", ":*", "streams of the function's own log group, which Lambda names"),
    Wildcard("Traces", "*", "X-Ray knows no resources for these two actions"),
    Wildcard("ReadTheJob", "/arco/*", "the Spark job's script and archives, in the folder that `emr.code` names"),
)
