/** Requests to the APIs of this server, at addresses relative to the page, with the token of this tab. */

import { nameIn } from "./identity";
import { renew, renewIfOld } from "./issuers";
import { parseExact } from "./json";
import { managementPath } from "./names";
import { hasRealms, type Login, login, nameLogin, type ServerConfig, serverConfig, signIn, signOut } from "./session";

const BASE = "../";

/** An error as the API sent it. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly type: string,
    message: string,
    readonly requestId: string | null,
  ) {
    super(message);
  }
}

/** The server sent no answer. */
export class Unreachable extends Error {}

export interface Call {
  query?: Record<string, string | number | null | undefined>;
  signal?: AbortSignal;
}

/** Reads JSON from a path of an API. Throws what `readText` throws. */
export async function read<T>(path: string, call: Call = {}): Promise<T> {
  return parsed(await readText(path, call)) as T;
}

/**
 * Reads JSON from a path of an API as its text; values of the query that are null are left out. Throws `ApiError`,
 * `Unreachable`, `SignInError`, or the error of an aborted request.
 */
export function readText(path: string, { query = {}, signal }: Call = {}): Promise<string> {
  return sendAuthorized(targetOf(path, query), signal ? { signal } : {});
}

/** Sends JSON to a path of an API that changes nothing, and returns the JSON of the answer. Throws what `readText` throws. */
export async function post<T>(path: string, body: unknown, signal: AbortSignal): Promise<T> {
  const headers = { "Content-Type": "application/json" };
  const options = { method: "POST", headers, body: JSON.stringify(body), signal };
  return parsed(await sendAuthorized(`${BASE}${path}`, options)) as T;
}

/** A request that changes something. The body is JSON, of the media type `type` if it is not plain JSON. */
export interface Change {
  method: "POST" | "PUT" | "DELETE";
  path: string;
  query?: Call["query"];
  body?: unknown;
  type?: string;
}

/** How long a change may take, in milliseconds: longer than the server works on it. */
const CHANGE_MS = 30_000;

/** Sends a change once, with an idempotency key, and returns the JSON of the answer. Throws what `readText` throws. */
export async function sendChange({ method, path, query = {}, body, type }: Change, key: string): Promise<unknown> {
  const sent = body === undefined ? {} : { body: JSON.stringify(body) };
  const typed = body === undefined ? {} : { "Content-Type": type ?? "application/json" };
  const headers = { "Idempotency-Key": key, ...typed };
  const signal = AbortSignal.timeout(CHANGE_MS);
  try {
    return parsed(await sendAuthorized(targetOf(path, query), { method, headers, signal, ...sent }));
  } catch (error) {
    if (signal.aborted) throw new Unreachable(`The server did not answer within ${CHANGE_MS / 1000} seconds.`);
    throw error;
  }
}

/** Reads what the server says of itself, and keeps it in `serverConfig`. */
export async function readServerConfig(): Promise<void> {
  serverConfig.value = parsed(await send("config.json", {})) as ServerConfig;
}

/** Reads who the user is to the catalog, once after each sign-in. Throws what `read` throws. */
export async function readCaller(signal: AbortSignal): Promise<void> {
  if (!hasRealms() || login.value?.roles) return;
  const path = managementPath("caller");
  const { principal, principalRoles } = await read<{ principal: string | null; principalRoles: string[] }>(path, {
    signal,
  });
  if (principal !== null && !signal.aborted) nameLogin(principal, principalRoles);
}

/** Gets a token for a client's id and secret, and signs in by it. Throws what `read` throws. */
export async function signInByCredentials(id: string, secret: string, realm: string): Promise<void> {
  const body = new URLSearchParams({
    grant_type: "client_credentials",
    client_id: id,
    client_secret: secret,
    scope: "PRINCIPAL_ROLE:ALL",
  });
  const text = await send(`${BASE}v1/oauth/tokens`, { method: "POST", body, headers: ofRealm(realm) });
  const { access_token: token } = parsed(text) as { access_token: string };
  signIn({ token, name: nameIn(token) ?? id, realm });
}

/**
 * Sends a request with the token of this tab, which is renewed before it expires, and once more after a renewal if the
 * server refuses the token. If it refuses it again, the login has ended. Throws what `readText` throws, and `SignInError`.
 */
async function sendAuthorized(target: string, options: RequestInit, retries = 1): Promise<string> {
  await renewIfOld();
  const held = login.value;
  try {
    return await send(target, { ...options, headers: { ...options.headers, ...authorized(held) } });
  } catch (error) {
    if (held === null || !(error instanceof ApiError) || error.status !== 401) throw error;
    if (retries > 0 && (isReplaced(held) || (await renew()))) return sendAuthorized(target, options, retries - 1);
    if (login.value !== null && !isReplaced(held)) signOut(error);
    throw error;
  }
}

function isReplaced(held: Login): boolean {
  return login.value !== null && login.value.token !== held.token;
}

function authorized(held: Login | null): Record<string, string> {
  return held === null ? {} : { Authorization: `Bearer ${held.token}`, ...ofRealm(held.realm) };
}

function targetOf(path: string, query: NonNullable<Call["query"]>): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null);
  const search = new URLSearchParams(given.map(([name, value]) => [name, String(value)]));
  return `${BASE}${path}${given.length > 0 ? `?${search}` : ""}`;
}

function ofRealm(realm: string): Record<string, string> {
  return realm ? { "Polaris-Realm": realm } : {};
}

function parsed(text: string): unknown {
  return text ? parseExact(text) : null;
}

async function send(target: string, options: RequestInit): Promise<string> {
  let response: Response;
  let text: string;
  try {
    response = await fetch(target, { credentials: "omit", ...options });
    text = await response.text();
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new Unreachable("The server does not answer. It may have stopped, or the network is down.");
  }
  if (response.ok) return text;
  throw errorOf(response, text);
}

/** Returns the error in a body: in Iceberg's form, in that of OAuth2, or any other body. */
function errorOf(response: Response, text: string): ApiError {
  const id = response.headers.get("X-Request-Id");
  try {
    const body = JSON.parse(text);
    if (body.error?.message) return new ApiError(response.status, body.error.type, body.error.message, id);
    if (body.error_description) return new ApiError(response.status, body.error, body.error_description, id);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  return new ApiError(response.status, "", text.slice(0, 500) || response.statusText, id);
}
