/** Who uses the console: what the server says of logins, and the token of this tab. No secret is stored. */
import { signal } from "@preact/signals";

export type LoginKind = "client-credentials" | "token";

/** What the console is to an issuer at which people sign in: a public client. */
export interface Client {
  issuer: string;
  "client-id": string;
  scope: string;
}

/** `/ui/config.json`, which is public. */
export interface ServerConfig {
  version: string;
  warehouse: string | null;
  realms: number;
  logins: LoginKind[];
  issuers: Client[];
}

/** What an issuer gave with an access token. `expiresMs` is when that token expires, null if the issuer does not say. */
export interface Grant {
  issuer: string;
  idToken: string;
  refreshToken: string | null;
  expiresMs: number | null;
}

/**
 * A login of this tab: the token, the name to show, the realm if one was named, the grant of an issuer, and once the
 * catalog has answered the principal roles that the token activates.
 */
export interface Login {
  token: string;
  name: string;
  realm: string;
  roles?: string[];
  grant?: Grant;
}

/** Why this tab has no login any more, or got none. */
export interface Notice {
  text: string;
  error: Error;
}

const KEY = "arco-login";

/** Null until the server has answered. */
export const serverConfig = signal<ServerConfig | null>(null);
export const login = signal<Login | null>(stored());
/** Null where nothing went wrong. */
export const notice = signal<Notice | null>(null);

/** Whether this server has realms, and with them principals, roles and grants. */
export function hasRealms(): boolean {
  return (serverConfig.value?.realms ?? 0) > 0;
}

/** The ways to sign in; none if this server does not authenticate callers, and before it has answered. */
export function loginKinds(): readonly LoginKind[] {
  return serverConfig.value?.logins ?? [];
}

/** The issuers at which people sign in. */
export function issuers(): readonly Client[] {
  return serverConfig.value?.issuers ?? [];
}

/** Whether this server lets nobody in who has not signed in, and this tab has not. */
export function mustSignIn(): boolean {
  return loginKinds().length > 0 && login.value === null;
}

/** Keeps a login for as long as this tab is open. */
export function signIn(made: Login): void {
  notice.value = null;
  keepLogin(made);
}

/** Keeps a login in place of the one before, as one with the next token, and leaves the notice. */
export function keepLogin(made: Login): void {
  sessionStorage.setItem(KEY, JSON.stringify(made));
  login.value = made;
}

/** Names the login of this tab as the catalog names its principal, which a token of another issuer does not. */
export function nameLogin(name: string, roles: string[]): void {
  if (login.value !== null) keepLogin({ ...login.value, name, roles });
}

/** Forgets the login, because of an error or, without one, because the user signs out. */
export function signOut(because: Error | null): void {
  sessionStorage.removeItem(KEY);
  notice.value = because && { text: "Your sign-in has ended. Sign in again to go on where you were.", error: because };
  login.value = null;
}

function stored(): Login | null {
  const text = globalThis.sessionStorage?.getItem(KEY);
  return text ? (JSON.parse(text) as Login) : null;
}
