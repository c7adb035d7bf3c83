"""Terraform over a copy of `infra/`, against a moto that stands in for AWS."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from arco_catalog.iceberg.json import JsonObject, JsonValue
from tools.support.environment import PROJECT
from tools.support.s3_servers import S3Server

INFRA = PROJECT / "infra"
REGION = "us-east-1"
REGISTRY = "registry.terraform.io/hashicorp"
PROVIDER = f"{REGISTRY}/aws"
SERVICES = (
    *("apigateway", "apigatewayv2", "cloudwatch", "emrserverless", "iam", "kms", "lambda", "logs", "s3"),
    *("scheduler", "secretsmanager", "sqs", "sts"),
)
VARIABLES = ("setting_variables.tf", "variables.tf", "realm_variables.tf", "names.tf", "versions.tf")
"""Files of the module that are a module of their own: all variables, and what is computed from them alone."""
OF_AWS = {
    "data.aws_caller_identity.current.account_id": "123456789012",
    "data.aws_partition.current.partition": "aws",
    "data.aws_partition.current.dns_suffix": "amazonaws.com",
    "data.aws_region.current.name": REGION,
}
"""What names are computed from besides variables, and what moto answers: with its answers no provider is needed."""
MINUTES_15 = 900
UNKNOWN = "known after apply"
SELDOM = "400"
"""How seldom Go looks for garbage in Terraform and its providers, which live for seconds: a third of their CPU less."""
Variables = Mapping[str, JsonValue]


class TerraformFailed(Exception):
    """Terraform ended with an error; the message has its output."""


def terraform() -> str:
    """The path of Terraform. Raises `TerraformFailed` if there is none: tests are not skipped without it."""
    found = shutil.which("terraform")
    if found is None:
        raise TerraformFailed("terraform (1.11 or newer) is not in PATH; the tests of infra/ need it")
    return found


def plugins(provider: str = "aws") -> Path | None:
    """A folder of plugins with a provider: `TF_PLUGIN_DIR`, or one where they usually lie. Without any Terraform
    downloads the provider itself."""
    named = os.environ.get("TF_PLUGIN_DIR")
    candidates = [
        *([Path(named)] if named else []),
        Path.home() / ".terraform.d" / "plugins",
        *(Path(share) / "terraform" / "plugins" for share in ("/usr/share", "/usr/local/share")),
        *sorted(Path("/opt").glob("*")),
    ]
    program = f"{REGISTRY}/{provider}/*/*/terraform-provider-{provider}*"
    return next((folder for folder in candidates if any(folder.glob(program))), None)


@dataclass(frozen=True)
class Workspace:
    """A folder with configuration that Terraform was initialised in."""

    folder: Path

    @classmethod
    def copy_of(cls, module: str, scratch: Path) -> "Workspace":
        """A copy of the whole of `infra/`, with `module` in it (`.` or an example) as what Terraform works on."""
        workspace = cls(copy_module(INFRA, scratch) / module)
        workspace.initialise()
        return workspace

    @classmethod
    def of_deployments(cls, deployments: Mapping[str, Variables], scratch: Path) -> "Workspace":
        """Many deployments of the module in one configuration: Terraform takes long to start, and less for each."""
        shown = {"realm_settings": "local.realm_settings", "jobs": "[local.job_arguments, local.job_submission]"}
        outputs = [f'output "{name}" {{\n  value = {value}\n}}\n' for name, value in shown.items()]
        (copy_module(INFRA, scratch) / "shown.tf").write_text("".join(outputs))
        blocks = [
            f'{module_block(name, variables)}output "{name}" {{\n  value = module.{name}.realm_settings\n}}\n'
            f'output "{name}-jobs" {{\n  value = module.{name}.jobs\n}}\n'
            for name, variables in deployments.items()
        ]
        return cls.of_blocks(blocks, scratch)

    @classmethod
    def of_refused(
        cls, deployments: Mapping[str, Variables], scratch: Path, *, by_resources: Sequence[str] = ()
    ) -> "Workspace":
        """Many deployments of which Terraform sees the variables and what is made of them alone, and no resources: what
        refuses them stands there. Those in `by_resources` are whole; where there are none, no provider is needed."""
        variables_alone = scratch / "variables"
        variables_alone.mkdir()
        for file in copy_module(INFRA, scratch).iterdir():
            if file.name in VARIABLES:
                text = file.read_text()
                (variables_alone / file.name).write_text(text if by_resources else _without_provider(text))
        blocks = [
            module_block(name, variables, "./infra" if name in by_resources else "./variables")
            for name, variables in deployments.items()
        ]
        return cls.of_blocks(blocks, scratch)

    @classmethod
    def of_examples(cls, examples: Mapping[str, Variables], scratch: Path) -> "Workspace":
        """The examples beside `infra/`, each as a module."""
        copy_module(INFRA, scratch)
        blocks = [module_block(name, given, f"./infra/examples/{name}") for name, given in examples.items()]
        return cls.of_blocks(blocks, scratch)

    @classmethod
    def of_blocks(cls, blocks: Sequence[str], scratch: Path) -> "Workspace":
        """A configuration of these blocks, beside the copies of modules that they name."""
        (scratch / "main.tf").write_text("\n".join(blocks))
        workspace = cls(scratch)
        workspace.initialise()
        return workspace

    def initialise(self, provider: str = "aws") -> None:
        """Run `terraform init` with the local provider if there is one."""
        folder = plugins(provider)
        self.run("init", "-backend=false", *([] if folder is None else [f"-plugin-dir={folder}"]))

    def use(self, aws: S3Server) -> None:
        """Let the provider send its requests to `aws` and not to Amazon."""
        provider: JsonObject = {
            "region": REGION,
            "access_key": "testing",
            "secret_key": "testing",
            "skip_credentials_validation": True,
            "skip_metadata_api_check": True,
            "s3_use_path_style": True,
            "endpoints": [dict.fromkeys(SERVICES, aws.endpoint)],
        }
        document: JsonObject = {"provider": {"aws": provider}}
        (self.folder / "moto_override.tf.json").write_text(json.dumps(document))

    def plan(self) -> "Plan":
        """Plan the configuration without existing resources. Raises `TerraformFailed` if Terraform refuses it."""
        self.run("plan", "-refresh=false", "-lock=false", "-out=made.tfplan")
        document: JsonObject = json.loads(self.run("show", "-json", "made.tfplan"))
        return Plan(document)

    def managed(self) -> list[str]:
        """The addresses of existing resources."""
        return [line for line in self.run("state", "list").splitlines() if not line.startswith("data.")]

    def refusals(self, command: str) -> list[dict[str, Any]]:
        """The errors that `validate` or `plan` ends with."""
        done = self._done(command, "-json")
        if command == "validate":
            diagnostics = json.loads(done.stdout)["diagnostics"]
        else:
            events = [json.loads(line) for line in done.stdout.splitlines()]
            diagnostics = [event["diagnostic"] for event in events if event["type"] == "diagnostic"]
        return [diagnostic for diagnostic in diagnostics if diagnostic["severity"] == "error"]

    def apply(self, variables: Variables) -> dict[str, Any]:
        """Apply the configuration, and return the outputs by name."""
        self.run("apply", "-auto-approve", "-parallelism=30", self._given(variables))
        outputs = json.loads(self.run("output", "-json"))
        return {name: output["value"] for name, output in outputs.items()}

    def destroy(self, variables: Variables) -> None:
        """Destroy all resources."""
        self.run("destroy", "-auto-approve", "-refresh=false", "-parallelism=30", self._given(variables))

    def changes(self, variables: Variables) -> set[str]:
        """The addresses of resources that another apply would change."""
        events = [json.loads(line) for line in self.run("plan", "-json", self._given(variables)).splitlines()]
        return {event["change"]["resource"]["addr"] for event in events if event["type"] == "planned_change"}

    def run(self, command: str, *arguments: str) -> str:
        """Run a Terraform command, and return its output. Raises `TerraformFailed` if it fails."""
        done = self._done(command, *arguments)
        if done.returncode != 0:
            raise TerraformFailed(f"terraform {command} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
        return done.stdout

    def _done(self, command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        settings = {"TF_IN_AUTOMATION": "1", "TF_INPUT": "0", "TF_CLI_ARGS": "-no-color", "GOGC": SELDOM}
        environment = {**os.environ, **settings}
        return subprocess.run(
            [terraform(), command, *arguments],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=MINUTES_15,
        )

    def _given(self, variables: Variables) -> str:
        file = self.folder / "given.tfvars.json"
        file.write_text(json.dumps(dict(variables)))
        return f"-var-file={file.name}"


def _without_provider(text: str) -> str:
    for source, value in OF_AWS.items():
        text = text.replace(source, json.dumps(value))
    return re.sub(r'(?m)^data "aws_\w+" "current" {}\n|(?s:^  required_providers {.*?^  }\n)', "", text)


def copy_module(module: Path, scratch: Path) -> Path:
    """Makes a copy of a module's folder, with its name, without what Terraform has left there."""
    left_out = shutil.ignore_patterns(".terraform*", "*.tfstate*")
    return Path(shutil.copytree(module, scratch / module.name, ignore=left_out))


def module_block(name: str, variables: Variables, source: str = "./infra") -> str:
    """A module block: what is JSON is an expression of Terraform's language too."""
    given = "".join(f"  {key} = {json.dumps(value)}\n" for key, value in variables.items())
    return f'module "{name}" {{\n  source = "{source}"\n{given}}}\n'


@dataclass(frozen=True)
class Resource:
    """One that a plan makes."""

    address: str
    type: str
    values: Mapping[str, Any]


@dataclass(frozen=True)
class Plan:
    """`terraform show -json` of a plan of many deployments."""

    document: JsonObject

    def deployment(self, name: str) -> list[Resource]:
        """The resources of one of them, addressed as within it."""
        document: Any = self.document
        modules = document["planned_values"]["root_module"]["child_modules"]
        found = next(module for module in modules if module["address"] == f"module.{name}")
        prefix = f"module.{name}."
        return [
            Resource(resource["address"].removeprefix(prefix), resource["type"], resource["values"])
            for resource in found["resources"]
            if resource["mode"] == "managed"
        ]

    def of_type(self, deployment: str, kind: str) -> list[Resource]:
        """The resources of one type that a deployment has."""
        return [resource for resource in self.deployment(deployment) if resource.type == kind]

    def output(self, name: str) -> Any:
        """The value of an output that is known before the apply."""
        document: Any = self.document
        return document["planned_values"]["outputs"][name]["value"]

    def data(self, deployment: str, address: str) -> Mapping[str, Any]:
        """The values of a data source of a deployment: its results, or its arguments if it is read by the apply."""
        document: Any = self.document
        values = [
            resource["values"]
            for place in (document["prior_state"]["values"], document["planned_values"])
            for module in place["root_module"]["child_modules"]
            for resource in module.get("resources", [])
            if resource["address"] == f"module.{deployment}.{address}"
        ]
        found: Mapping[str, Any] = values[0]
        return found

    def realm_settings(self, deployment: str) -> Mapping[str, Any]:
        """The settings of the realm that the API of a deployment gets; `UNKNOWN` for those known after the apply."""
        document: Any = self.document
        change = document["output_changes"][deployment]
        unknown = change["after_unknown"]
        hidden = unknown if isinstance(unknown, dict) else {}
        return {**(change["after"] or {}), **dict.fromkeys(hidden, UNKNOWN)}

    def jobs(self, deployment: str) -> tuple[Mapping[str, list[str]], Mapping[str, str]]:
        """The arguments of each job of the pipeline, and those with which it is submitted."""
        arguments, submission = self.output(f"{deployment}-jobs")
        return arguments, submission
