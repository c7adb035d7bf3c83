/** Signing in at issuers, as pages need it. What speaks OpenID Connect is loaded when it is needed. */
import { nameIn } from "./identity";
import { loadPart } from "./load";
import { keepBegun, type Redirect } from "./redirect";
import { type Client, type Grant, issuers, keepLogin, login, notice, signIn, signOut } from "./session";
import { explained, notBegun, SignInError } from "./sign-in-errors";

/** A token is renewed this time before it expires. */
const RENEWAL_MS = 30_000;
/** The name of a login until the catalog has named its principal. */
export const UNNAMED = "Signed in";

const openIdConnect = () => loadPart(import("./oidc"));

/** Leaves for the page of an issuer at which the user signs in. Throws `SignInError`. */
export async function signInAt(client: Client): Promise<void> {
  if (!isSecureContext) {
    const advice = "Open it by https, or at localhost: else a browser does not let a page sign in.";
    throw new SignInError("This page was loaded without TLS.", "", advice, true);
  }
  try {
    const { begin } = await openIdConnect();
    const { begun, address } = await begin(client, location.hash);
    keepBegun(begun);
    location.assign(address);
  } catch (error) {
    throw explained(error);
  }
}

/** Signs in by the answer of an issuer. If that fails, `notice` has why, and the login of this tab stays as it was. */
export async function completeSignIn({ answer, begun }: Redirect): Promise<void> {
  try {
    const client = begun && clientOf(begun.issuer);
    if (!begun || !client) throw notBegun();
    const { finish } = await openIdConnect();
    const { token, grant } = await finish(client, begun, answer);
    signIn({ token, grant, name: nameIn(token) ?? UNNAMED, realm: "" });
  } catch (error) {
    notice.value = { text: "You were not signed in.", error: explained(error) };
  }
}

/** Renews the token of this tab if it expires soon. Throws `SignInError` if it has expired and is not renewed. */
export async function renewIfOld(): Promise<void> {
  const expiresMs = login.value?.grant?.refreshToken ? (login.value.grant.expiresMs ?? Infinity) : Infinity;
  if (expiresMs - Date.now() > RENEWAL_MS) return;
  try {
    await renew();
  } catch (error) {
    if (expiresMs <= Date.now()) throw error; // else the token still counts, and the next request tries again
  }
}

let renewing: Promise<boolean> | null = null;

/**
 * Gets the next token of this tab: once for all that wait. Returns whether there is one; if the issuer refuses it, the
 * login has ended. Throws `SignInError` if the issuer does not answer.
 */
export function renew(): Promise<boolean> {
  renewing ??= renewOnce().finally(() => {
    renewing = null;
  });
  return renewing;
}

async function renewOnce(): Promise<boolean> {
  const grant = login.value?.grant;
  const client = grant && clientOf(grant.issuer);
  if (!client || !hasRefreshToken(grant)) return false;
  try {
    const { refresh } = await openIdConnect();
    const next = await refresh(client, grant);
    if (login.value?.grant !== grant) return login.value !== null; // the user has signed out, or in anew
    keepLogin({ ...login.value, ...next });
    return true;
  } catch (error) {
    const failure = explained(error);
    if (!(failure instanceof SignInError) || !failure.final) throw failure;
    if (login.value?.grant === grant) signOut(failure);
    return false;
  }
}

/** Signs out of this tab, and then of the issuer, where that leads to a page of its own. */
export async function signOutOfAll(): Promise<void> {
  const grant = login.value?.grant;
  const client = grant && clientOf(grant.issuer);
  signOut(null);
  if (!grant || !client) return;
  try {
    const { end } = await openIdConnect();
    const address = await end(client, grant);
    if (address !== null) location.assign(address);
  } catch (error) {
    notice.value = { text: "You are signed out here. Your session at the issuer may go on.", error: explained(error) };
  }
}

function clientOf(issuer: string): Client | undefined {
  return issuers().find((each) => each.issuer === issuer);
}

function hasRefreshToken(grant: Grant): grant is Grant & { refreshToken: string } {
  return grant.refreshToken !== null;
}
