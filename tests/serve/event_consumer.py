"""A consumer of `POST /events`, as a program: it stores each page of events, and then the token after it, so that it
may be killed anywhere and started again. Only the standard library, so that it starts at once.

`python -m tests.serve.event_consumer FOLDER [token-first]`. `FOLDER/servers` has the servers' addresses, one a line;
`FOLDER/events` gets the events, one a line. With `token-first` it has a bug: the token is stored before the page.
"""

import http.client
import json
import os
import random
import sys
import time
from pathlib import Path
from typing import NamedTuple

CATALOG = "/v1/main"
TIMEOUT_S = 10.0
PAUSE_S = 0.05
WINDOW_S = 0.05
"""Between the two writes for a page: so a kill often hits this."""


class Place(NamedTuple):
    """How far a consumer is: the token after the last page, and the size of the file with all events before it."""

    token: str | None = None
    size: int = 0


def read_place(folder: Path) -> Place:
    """Returns the stored place, and removes what was stored after it."""
    stored, events = folder / "place", folder / "events"
    place = Place(**json.loads(stored.read_text())) if stored.exists() else Place()
    if events.exists():
        os.truncate(events, min(place.size, events.stat().st_size))
    return place


def store_events(folder: Path, page: bytes) -> None:
    """Appends events to the file, and returns when that is durable."""
    with (folder / "events").open("ab") as file:
        file.write(page)
        file.flush()
        os.fsync(file.fileno())


def store_place(folder: Path, place: Place) -> None:
    """Replaces the stored place, and returns when that is durable."""
    new = folder / "place.new"
    with new.open("w") as file:
        json.dump(place._asdict(), file)
        file.flush()
        os.fsync(file.fileno())
    new.replace(folder / "place")


def ask(folder: Path, token: str | None) -> dict[str, object] | None:
    """Requests the next page from one of the servers; returns None without one. Raises `ValueError` for a token
    that is refused."""
    address = random.choice((folder / "servers").read_text().split())
    body = json.dumps({"page-size": random.randint(1, 100)} | ({} if token is None else {"continuation-token": token}))
    connection = http.client.HTTPConnection(address, timeout=TIMEOUT_S)
    try:
        connection.request("POST", f"{CATALOG}/events", body, {"content-type": "application/json"})
        answer = connection.getresponse()
        text = answer.read()
    except (OSError, http.client.HTTPException):
        return None  # that server is down
    finally:
        connection.close()
    if answer.status == 400:
        raise ValueError(f"the token {token} was refused: {text.decode()}")
    found = json.loads(text) if answer.status == 200 else None
    return found if isinstance(found, dict) else None


def follow(folder: Path, *, is_token_first: bool) -> None:
    """Follows the feed for ever."""
    place = read_place(folder)
    while True:
        found = ask(folder, place.token)
        if found is None or not (events := found["events"]):
            time.sleep(PAUSE_S)
            continue
        assert isinstance(events, list)
        page = b"".join(json.dumps(event).encode() + b"\n" for event in events)
        place = Place(str(found["continuation-token"]), place.size + len(page))
        if is_token_first:
            store_place(folder, place)
            time.sleep(WINDOW_S)
            store_events(folder, page)
        else:
            store_events(folder, page)
            time.sleep(WINDOW_S)
            store_place(folder, place)


if __name__ == "__main__":
    follow(Path(sys.argv[1]), is_token_first=sys.argv[2:] == ["token-first"])
