// Requests to the server as its other clients send them, to prepare what a scenario changes and to look at what it did.
import assert from "node:assert/strict";
import { URI } from "./harness.mjs";

export const MANAGEMENT = "api/management/v1";

/** Sends requests with a token that a client id and secret got. */
export class Api {
  constructor(token, uri = URI) {
    this.token = token;
    this.uri = uri;
  }

  static async login([id, secret]) {
    const answer = await getToken(id, secret);
    assert.equal(answer.status, 200);
    return new Api((await answer.json()).access_token);
  }

  /** Sends a request, and returns its status with the JSON of the answer. */
  async send(method, path, body) {
    const headers = this.token ? { authorization: `Bearer ${this.token}` } : {};
    if (body !== undefined) headers["content-type"] = "application/json";
    const answer = await fetch(`${this.uri}/${path}`, { method, headers, body: JSON.stringify(body) });
    const text = await answer.text();
    return { status: answer.status, json: text ? JSON.parse(text) : null };
  }

  /** Sends a request that must succeed, and returns the JSON of the answer. */
  async must(method, path, body) {
    const { status, json } = await this.send(method, path, body);
    assert.ok(status < 300, `${method} ${path}: ${status} ${JSON.stringify(json)}`);
    return json;
  }

  async createTable(namespace, name) {
    const schema = { type: "struct", fields: [{ id: 1, name: "x", type: "long", required: false }] };
    return this.must("POST", `v1/arco/namespaces/${namespace}/tables`, { name, schema });
  }

  async createDropped(namespace, name) {
    await this.createTable(namespace, name);
    await this.must("DELETE", tablePath(namespace, name));
  }

  /** Makes a principal that has the privileges of these grants, and returns its client id and secret. */
  async createPrincipal(name, ...grants) {
    const made = await this.must("POST", `${MANAGEMENT}/principals`, { principal: { name } });
    await this.must("POST", `${MANAGEMENT}/principal-roles`, { principalRole: { name } });
    await this.must("PUT", `${MANAGEMENT}/principals/${name}/principal-roles`, { principalRole: { name } });
    await this.must("POST", `${MANAGEMENT}/catalogs/arco/catalog-roles`, { catalogRole: { name } });
    await this.must("PUT", `${MANAGEMENT}/principal-roles/${name}/catalog-roles/arco`, { catalogRole: { name } });
    for (const grant of grants) {
      await this.must("PUT", `${MANAGEMENT}/catalogs/arco/catalog-roles/${name}/grants`, { grant });
    }
    return [made.credentials.clientId, made.credentials.clientSecret];
  }

  /** The privileges of a catalog role, as texts. */
  async grantsOf(role) {
    const path = `${MANAGEMENT}/catalogs/arco/catalog-roles/${encodeURIComponent(role)}/grants`;
    return (await this.must("GET", path)).grants;
  }

  async history(query = "") {
    return (await this.must("GET", `v1/arco/history${query}`)).operations;
  }
}

export const tablePath = (namespace, name) => `v1/arco/namespaces/${namespace}/tables/${encodeURIComponent(name)}`;

export function getToken(id, secret) {
  const body = new URLSearchParams({
    grant_type: "client_credentials",
    client_id: id,
    client_secret: secret,
    scope: "PRINCIPAL_ROLE:ALL",
  });
  return fetch(`${URI}/v1/oauth/tokens`, { method: "POST", body });
}
