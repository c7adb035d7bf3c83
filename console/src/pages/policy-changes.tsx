/** Policies are attached to the catalog, a namespace or a table, and detached. */
import { useState } from "preact/hooks";
import type { Catalog } from "../catalog";
import { apiPath, dotted, type Namespace } from "../names";
import { ChangeForm, type Intent } from "../parts/change";
import { ALLOWED, type Grant } from "../rights";
import { namespaceIn, PlaceFields } from "./place-fields";

const TYPES = ["namespace", "table", "catalog"] as const;

interface PolicyName {
  namespace: Namespace;
  name: string;
}

/** What a policy is attached to: a table or view, a namespace, or without levels the catalog. */
export interface Target {
  namespace: Namespace;
  table: string | null;
}

/** Returns the path of Polaris's API to the policies of a namespace, or to something below it. */
export function policyPath(catalog: Catalog, namespace: Namespace, ...rest: string[]): string {
  return `polaris/${apiPath(catalog.prefix, namespace, "policies", ...rest)}`;
}

/** Returns the privileges that it takes to attach or detach a policy: on it, and on the target. */
export function takenTo(action: "ATTACH" | "DETACH", policy: PolicyName, { namespace, table }: Target): Grant[] {
  const type = table !== null ? "table" : namespace.length > 0 ? "namespace" : "catalog";
  return [
    { type: "policy", namespace: policy.namespace, policyName: policy.name, privilege: `POLICY_${action}` },
    {
      type,
      ...(type === "catalog" ? {} : { namespace }),
      ...(table === null ? {} : { tableName: table }),
      privilege: `${type.toUpperCase()}_${action}_POLICY`,
    },
  ];
}

function bodyOf({ namespace, table }: Target): { target: { type: string; path?: string[] } } {
  if (table !== null) return { target: { type: "table-like", path: [...namespace, table] } };
  return { target: namespace.length === 0 ? { type: "catalog" } : { type: "namespace", path: [...namespace] } };
}

function Named({ catalog, target: { namespace, table } }: { catalog: Catalog; target: Target }) {
  if (namespace.length === 0) {
    return (
      <>
        the catalog <bdi>{catalog.name}</bdi>
      </>
    );
  }
  return (
    <>
      the {table === null ? "namespace" : "table"} <bdi>{dotted(namespace, table)}</bdi>
    </>
  );
}

export function detaching(catalog: Catalog, policy: PolicyName, target: Target): Intent {
  const full = dotted(policy.namespace, policy.name);
  return {
    title: "Detach a policy",
    summary: (
      <>
        The policy <bdi>{full}</bdi> applies no more to <Named catalog={catalog} target={target} />, unless it is
        inherited.
      </>
    ),
    confirm: "Detach",
    change: {
      method: "POST",
      path: policyPath(catalog, policy.namespace, policy.name, "mappings"),
      body: bodyOf(target),
    },
    keyed: catalog.takesKeys,
    done: `The policy ${full} is detached.`,
  };
}

function attaching(catalog: Catalog, policy: PolicyName, target: Target): Intent {
  const full = dotted(policy.namespace, policy.name);
  return {
    title: "Attach a policy",
    summary: (
      <>
        The policy <bdi>{full}</bdi> applies from now on to <Named catalog={catalog} target={target} />, and, if it is
        inherited, to all in it.
      </>
    ),
    confirm: "Attach",
    change: {
      method: "PUT",
      path: policyPath(catalog, policy.namespace, policy.name, "mappings"),
      body: bodyOf(target),
    },
    keyed: catalog.takesKeys,
    needs: { catalog: catalog.name, checks: takenTo("ATTACH", policy, target) },
    done: `The policy ${full} is attached.`,
  };
}

/** Attaches a policy to something in the catalog, by its name. */
export function AttachForm({ catalog, policy }: { catalog: Catalog; policy: PolicyName }) {
  const [type, setType] = useState<(typeof TYPES)[number]>("namespace");
  const targetIn = (data: FormData): Target => ({
    namespace: namespaceIn(data),
    table: type === "table" ? String(data.get("name")) : null,
  });
  return (
    <ChangeForm
      label="Attach"
      right={{ state: "loaded", value: ALLOWED }}
      intent={(data) => attaching(catalog, policy, targetIn(data))}
    >
      <PlaceFields label="To" types={TYPES} type={type} setType={setType} namespace={dotted(policy.namespace)} />
    </ChangeForm>
  );
}
