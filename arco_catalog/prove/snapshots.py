"""The ids of the snapshots that commits add: each commit's own, which proves that a state is whole."""

from hashlib import sha256


def snapshot_id(table: str, commit: str) -> int:
    """Returns the id of the snapshot that a commit adds to the table that the operation `table` created: a positive
    number of at most 53 bits, which every client reads exactly."""
    return int.from_bytes(sha256(f"{table} {commit}".encode()).digest()[:7], "big") >> 3 | 1
