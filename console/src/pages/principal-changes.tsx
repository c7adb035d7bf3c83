/** What can be done to principals and principal roles. The management API reads no idempotency keys. */
import { managementPath } from "../names";
import { Code } from "../parts/basics";
import type { Intent } from "../parts/change";

interface WithCredentials {
  credentials: { clientId: string; clientSecret: string };
}

/** The secret that an answer has. It is in this part of the page alone, and goes with it. */
function Secret({ answer }: { answer: WithCredentials }) {
  return (
    <>
      <p class="notice">
        The secret is shown this once: when you close this, it is gone. The catalog keeps only a hash of it.
      </p>
      <div class="stack">
        <Code label="client id" text={answer.credentials.clientId} />
        <Code label="client secret" text={answer.credentials.clientSecret} />
      </div>
    </>
  );
}

const secret = (answer: unknown) => <Secret answer={answer as WithCredentials} />;

/** The creation of a principal, whose secret is shown. */
export function creatingPrincipal(name: string, rotates: boolean): Intent {
  return {
    title: "Create a principal",
    summary: (
      <>
        The principal <bdi>{name}</bdi> is created without roles
        {rotates ? ", may do nothing until it has rotated its credentials," : ""} and its secret is shown once.
      </>
    ),
    confirm: "Create",
    change: {
      method: "POST",
      path: managementPath("principals"),
      body: { principal: { name }, credentialRotationRequired: rotates },
    },
    keyed: false,
    done: `The principal ${name} is created.`,
    result: secret,
  };
}

/** A new secret beside the newest one. */
export function rotating(name: string): Intent {
  return {
    title: "Rotate your credentials",
    summary: (
      <>
        <bdi>{name}</bdi> gets a new secret, which is shown once, and the present one stays valid until the next
        rotation.
      </>
    ),
    confirm: "Rotate",
    change: { method: "POST", path: managementPath("principals", name, "rotate"), body: {} },
    keyed: false,
    done: `${name} has a new secret.`,
    result: secret,
  };
}

/** A new secret in place of all others. */
export function resetting(name: string): Intent {
  return {
    title: "Reset the credentials",
    summary: (
      <>
        <bdi>{name}</bdi> gets a new secret, which is shown once, and all its secrets before become invalid at once.
      </>
    ),
    confirm: "Reset",
    change: { method: "POST", path: managementPath("principals", name, "reset"), body: {} },
    keyed: false,
    done: `${name} has a new secret.`,
    result: secret,
  };
}

export function creatingRole(name: string): Intent {
  return {
    title: "Create a principal role",
    summary: (
      <>
        The principal role <bdi>{name}</bdi> is created, which no principal has yet.
      </>
    ),
    confirm: "Create",
    change: { method: "POST", path: managementPath("principal-roles"), body: { principalRole: { name } } },
    keyed: false,
    done: `The principal role ${name} is created.`,
  };
}

export function deleting(kind: "principal" | "principal role", name: string): Intent {
  const effect =
    kind === "principal"
      ? "is deleted with its credentials, and its tokens are refused from now on"
      : "is deleted, and all principals that have it lose what it allows";
  return {
    title: `Delete the ${kind}`,
    summary: (
      <>
        The {kind} <bdi>{name}</bdi> {effect}.
      </>
    ),
    confirm: "Delete",
    change: { method: "DELETE", path: managementPath(`${kind.replace(" ", "-")}s`, name) },
    keyed: false,
    done: `The ${kind} ${name} is deleted.`,
  };
}

export function giving(principal: string, role: string): Intent {
  return {
    title: "Give a principal role",
    summary: (
      <>
        The principal <bdi>{principal}</bdi> gets the principal role <bdi>{role}</bdi>, and with it all that it allows.
      </>
    ),
    confirm: "Give the role",
    change: {
      method: "PUT",
      path: managementPath("principals", principal, "principal-roles"),
      body: { principalRole: { name: role } },
    },
    keyed: false,
    done: `${principal} has the principal role ${role}.`,
  };
}

export function taking(principal: string, role: string): Intent {
  return {
    title: "Take a principal role away",
    summary: (
      <>
        The principal <bdi>{principal}</bdi> loses the principal role <bdi>{role}</bdi>, and what it alone allows.
      </>
    ),
    confirm: "Take away",
    change: { method: "DELETE", path: managementPath("principals", principal, "principal-roles", role) },
    keyed: false,
    done: `${principal} has the principal role ${role} no more.`,
  };
}
