"""Characters that a terminal or a log does not show as themselves: how to find and how to escape them."""

import re

_CONTROL = "[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]"
"""The control characters of ASCII and of Latin-1 (C0, DEL, C1), line and paragraph separators, and the characters that
change the direction of writing (Unicode Standard Annex 9: embeddings, overrides, isolates)."""


def first_control_character(text: str) -> str | None:
    """Returns the code, such as `U+202E`, of the first control character, line or paragraph separator, or character
    that begins or ends an embedding, override or isolate of a direction of writing; None if there is none. Direction
    marks such as U+200F don't count."""
    found = re.search(_CONTROL, text)
    return None if found is None else f"U+{ord(found[0]):04X}"


def escaped(text: str) -> str:
    """Returns the text for a terminal: characters that are not printable are escaped as in JSON (`\\u202e`), except
    the line feed U+000A."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or each == "\n" else _escape(each) for each in text)


def _escape(character: str) -> str:
    """Returns the JSON escape of a character; two escapes, of its surrogates, for one above U+FFFF."""
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at] << 8 | units[at + 1]:04x}" for at in range(0, len(units), 2))
