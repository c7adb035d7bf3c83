/** What goes wrong at issuers, in their words, and what to do about it. */

/** A sign-in failed, or its renewal: what came, its code, and what to do. `final` if another try would fail, too. */
export class SignInError extends Error {
  constructor(
    message: string,
    readonly code: string,
    readonly advice: string,
    readonly final: boolean,
  ) {
    super(message);
  }
}

const AGAIN = "Sign in again.";
const REGISTRATION =
  "The console must be a public client of the issuer, with authorization codes, PKCE and this page as redirect URI: " +
  "who runs the server finds in its documentation how to register it.";
const SCOPES = "The issuer must know all scopes that the server names for it in ARCO_CONSOLE_CLIENTS.";

/** By the codes of OAuth 2.0 and OpenID Connect, and those of the library. */
const ADVICE = new Map<unknown, string>(
  Object.entries({
    access_denied: "The issuer, or you, refused. Sign in again, or request access from who runs the issuer.",
    login_required: AGAIN,
    interaction_required: AGAIN,
    consent_required: AGAIN,
    account_selection_required: AGAIN,
    invalid_grant: "The code or token was used before, is too old, or was withdrawn. Sign in again.",
    invalid_client: REGISTRATION,
    unauthorized_client: REGISTRATION,
    unsupported_response_type: REGISTRATION,
    invalid_request: REGISTRATION,
    invalid_scope: SCOPES,
    server_error: "Try again later: the issuer has a fault.",
    temporarily_unavailable: "Try again later: the issuer is busy.",
    OAUTH_JWT_TIMESTAMP_CHECK_FAILED: "Set the clock of this machine: it differs from that of the issuer.",
    OAUTH_INVALID_RESPONSE: "The answer is not that of this sign-in. Sign in again, from this page.",
    OAUTH_JWT_CLAIM_COMPARISON_FAILED: "The answer is not that of this sign-in. Sign in again, from this page.",
  }),
);

/** Returns an error of the library, or of an issuer, with what to do. Other errors are returned as they are. */
export function explained(error: unknown): Error {
  const { error: code, error_description: description, code: kind } = error as Record<string, unknown>;
  if (typeof code === "string") {
    const message = typeof description === "string" && description ? description : `The issuer answered: ${code}`;
    return new SignInError(message, code, ADVICE.get(code) ?? AGAIN, true);
  }
  if (typeof kind === "string" && kind.startsWith("OAUTH_")) {
    return new SignInError((error as Error).message, kind, ADVICE.get(kind) ?? AGAIN, true);
  }
  return error as Error;
}

/** Returns the error for an issuer that a page can't reach: a browser does not say why. */
export function unreachable(address: string, page: string): SignInError {
  const { origin } = new URL(address);
  const advice =
    `It may be down, or not allow requests of pages of ${page} (CORS). If it is not at the issuer's own origin, ` +
    "ARCO_CONSOLE_ORIGINS of the server must name it.";
  return new SignInError(`${origin} does not answer this page.`, "", advice, false);
}

/** Returns the error for an answer that belongs to no sign-in of this tab. */
export function notBegun(): SignInError {
  const message = "This tab has not begun the sign-in that this address ends.";
  return new SignInError(message, "", "Nothing was done. Sign in from this page if you mean to.", true);
}
