/**
 * The way to an issuer and back. What this tab needs to know again is kept in its session storage, so an answer counts in
 * the tab that asked for it, and leads to the page where the sign-in began, whatever the address has.
 */

/** A sign-in that was begun in this tab. `page` is the part of the address from `#` on. */
export interface Begun {
  issuer: string;
  state: string;
  nonce: string;
  verifier: string;
  page: string;
}

/** The answer of an issuer, and the sign-in that was begun here, null if none was. */
export interface Redirect {
  answer: URLSearchParams;
  begun: Begun | null;
}

const KEY = "arco-sign-in";

/** Where issuers send the browser back to: the first page, at the address that is registered with them. */
export function redirectUri(): string {
  return location.origin + location.pathname;
}

export function keepBegun(begun: Begun): void {
  sessionStorage.setItem(KEY, JSON.stringify(begun));
}

/** Returns the answer of an issuer in the address, null if there is none. The address and the tab forget it at once. */
export function takeRedirect(): Redirect | null {
  const answer = new URLSearchParams(location.search);
  if (!answer.has("code") && !answer.has("error")) return null;
  const text = sessionStorage.getItem(KEY);
  sessionStorage.removeItem(KEY);
  const begun = text ? (JSON.parse(text) as Begun) : null;
  const clean = new URL(location.href);
  clean.search = "";
  if (begun) clean.hash = begun.page;
  history.replaceState(null, "", clean);
  return { answer, begun };
}
