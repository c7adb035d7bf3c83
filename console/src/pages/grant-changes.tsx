/** What can be done to catalog roles and their grants. The management API reads no idempotency keys. */
import type { ComponentChildren } from "preact";
import { managementPath } from "../names";
import type { Intent } from "../parts/change";
import type { Grant } from "../rights";
import { GrantedOn } from "./grant-parts";

/** Returns the privilege to change the grants on what a grant is on. */
export function managing({ privilege: _, ...on }: Grant): Grant {
  return { ...on, privilege: "CATALOG_MANAGE_ACCESS" };
}

function grantsOf(catalog: string, role: string): string {
  return managementPath("catalogs", catalog, "catalog-roles", role, "grants");
}

export function granting(catalog: string, role: string, grant: Grant): Intent {
  return {
    title: "Grant a privilege",
    summary: (
      <>
        The catalog role <bdi>{role}</bdi> gets the privilege {grant.privilege} on{" "}
        <GrantedOn catalog={catalog} grant={grant} />
        {" and everything in it."}
      </>
    ),
    confirm: "Grant",
    change: { method: "PUT", path: grantsOf(catalog, role), body: { grant } },
    keyed: false,
    needs: { catalog, checks: [managing(grant)] },
    done: `${role} has the privilege ${grant.privilege}.`,
  };
}

export function revoking(catalog: string, role: string, grant: Grant): Intent {
  return {
    title: "Revoke a privilege",
    summary: (
      <>
        The catalog role <bdi>{role}</bdi> loses the privilege {grant.privilege} on{" "}
        <GrantedOn catalog={catalog} grant={grant} />, from the next request on.
        {grant.type === "catalog" && " This holds for the whole catalog."}
      </>
    ),
    confirm: "Revoke",
    change: { method: "POST", path: grantsOf(catalog, role), body: { grant } },
    keyed: false,
    done: `${role} has lost the privilege ${grant.privilege}.`,
  };
}

export function creatingCatalogRole(catalog: string, name: string): Intent {
  return {
    title: "Create a catalog role",
    summary: (
      <>
        The catalog role <bdi>{name}</bdi> is created in <bdi>{catalog}</bdi>, without grants.
      </>
    ),
    confirm: "Create",
    change: {
      method: "POST",
      path: managementPath("catalogs", catalog, "catalog-roles"),
      body: { catalogRole: { name } },
    },
    keyed: false,
    done: `The catalog role ${name} is created.`,
  };
}

export function deletingCatalogRole(catalog: string, name: string): Intent {
  return {
    title: "Delete the catalog role",
    summary: (
      <>
        The catalog role <bdi>{name}</bdi> of <bdi>{catalog}</bdi> is deleted with all its grants, and all principal
        roles that have it lose what it allows.
      </>
    ),
    confirm: "Delete",
    change: { method: "DELETE", path: managementPath("catalogs", catalog, "catalog-roles", name) },
    keyed: false,
    done: `The catalog role ${name} is deleted.`,
  };
}

export function givingCatalogRole(catalog: string, role: string, to: string): Intent {
  return {
    title: "Give a catalog role",
    summary: <Both role={role} to={to} catalog={catalog} verb="gets" />,
    confirm: "Give the role",
    change: {
      method: "PUT",
      path: managementPath("principal-roles", to, "catalog-roles", catalog),
      body: { catalogRole: { name: role } },
    },
    keyed: false,
    done: `${to} has the catalog role ${role}.`,
  };
}

export function takingCatalogRole(catalog: string, role: string, from: string): Intent {
  return {
    title: "Take a catalog role away",
    summary: <Both role={role} to={from} catalog={catalog} verb="loses" />,
    confirm: "Take away",
    change: { method: "DELETE", path: managementPath("principal-roles", from, "catalog-roles", catalog, role) },
    keyed: false,
    done: `${from} has the catalog role ${role} no more.`,
  };
}

function Both({
  role,
  to,
  catalog,
  verb,
}: {
  role: string;
  to: string;
  catalog: string;
  verb: string;
}): ComponentChildren {
  return (
    <>
      The principal role <bdi>{to}</bdi> {verb} the catalog role <bdi>{role}</bdi> of <bdi>{catalog}</bdi>, and with it
      all that it allows.
    </>
  );
}
