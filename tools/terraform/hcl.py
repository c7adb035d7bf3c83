"""Formats Terraform's language, as `terraform fmt` prints it."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Check:
    """A `validation` of a Terraform variable: an expression, and the message if it does not hold."""

    condition: str
    message: str


@dataclass(frozen=True, slots=True)
class TerraformVariable:
    """A `variable` block of Terraform. `type` and `default` are expressions; without a default, the variable is
    required."""

    name: str
    description: str
    type: str = "string"
    default: str | None = None
    checks: tuple[Check, ...] = ()

    def block(self) -> str:
        """The block as text."""
        lines = [f"description = {quoted(self.description)}"]
        lines.append(f"type = {self.type}" if "\n" in self.type else f"type        = {self.type}")
        if self.default is not None:
            lines.append(f"default = {self.default}" if "\n" in self.type else f"default     = {self.default}")
        lines += [""] if self.checks else []
        for check in self.checks:
            lines += ["validation {", f"  condition     = {check.condition}"]
            lines += [f"  error_message = {quoted(check.message)}", "}"]
        body = "\n".join(indented("\n".join(lines).split("\n")))
        return f'variable "{self.name}" {{\n{body}\n}}\n'


def quoted(text: str) -> str:
    """A text as a literal."""
    return json.dumps(text, ensure_ascii=False)


def aligned(entries: Mapping[str, str]) -> list[str]:
    """Lines of an object's entries, with their equals signs below each other."""
    width = max(map(len, entries))
    return [f"{name:{width}} = {expression}" for name, expression in entries.items()]


def object_type(fields: Mapping[str, str]) -> str:
    """The type of an object with these fields."""
    return "object({\n" + "\n".join(indented(aligned(fields))) + "\n})"


def indented(lines: Iterable[str]) -> Iterator[str]:
    """Lines one step further in; empty lines stay empty."""
    for line in lines:
        yield f"  {line}" if line else ""
