/** Who uses the console: what the server says of logins, and the token of this tab. No secret is stored. */
import { signal } from "@preact/signals";

export type LoginKind = "client-credentials" | "token";

/** `/ui/config.json`, which is public. */
export interface ServerConfig {
  version: string;
  warehouse: string | null;
  realms: number;
  logins: LoginKind[];
}

/** A login of this tab: the token, the name to show, and the realm if one was named. */
export interface Login {
  token: string;
  name: string;
  realm: string;
}

const KEY = "arco-login";

/** Null until the server has answered. */
export const serverConfig = signal<ServerConfig | null>(null);
export const login = signal<Login | null>(stored());
/** True after the server refused the token that this tab had. */
export const expired = signal(false);

/** Whether this server has realms, and with them principals, roles and grants. */
export function hasRealms(): boolean {
  return (serverConfig.value?.realms ?? 0) > 0;
}

/** The ways to sign in; none if this server does not authenticate callers, and before it has answered. */
export function loginKinds(): readonly LoginKind[] {
  return serverConfig.value?.logins ?? [];
}

/** Whether this server lets nobody in who has not signed in, and this tab has not. */
export function mustSignIn(): boolean {
  return loginKinds().length > 0 && login.value === null;
}

/** Keeps a login for as long as this tab is open. */
export function signIn(made: Login): void {
  sessionStorage.setItem(KEY, JSON.stringify(made));
  expired.value = false;
  login.value = made;
}

/** Names the login of this tab as the catalog names its principal, which a token of another issuer does not. */
export function nameLogin(name: string): void {
  if (login.value !== null && login.value.name !== name) signIn({ ...login.value, name });
}

/** Forgets the login: `because` the server refused its token, or the user signs out. */
export function signOut(because: "expired" | "user"): void {
  sessionStorage.removeItem(KEY);
  expired.value = because === "expired";
  login.value = null;
}

function stored(): Login | null {
  const text = globalThis.sessionStorage?.getItem(KEY);
  return text ? (JSON.parse(text) as Login) : null;
}
