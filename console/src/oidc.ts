/** OpenID Connect by a browser: codes with PKCE, refresh tokens, and the end of a session at its issuer. */
import {
  type AuthorizationServer,
  allowInsecureRequests,
  authorizationCodeGrantRequest,
  calculatePKCECodeChallenge,
  clockTolerance,
  customFetch,
  discoveryRequest,
  generateRandomCodeVerifier,
  generateRandomNonce,
  generateRandomState,
  getValidatedIdTokenClaims,
  None,
  type Client as OAuthClient,
  processAuthorizationCodeResponse,
  processDiscoveryResponse,
  processRefreshTokenResponse,
  processRevocationResponse,
  refreshTokenGrantRequest,
  revocationRequest,
  type TokenEndpointResponse,
  validateAuthResponse,
} from "oauth4webapi";
import { claimsOf } from "./identity";
import { type Begun, redirectUri } from "./redirect";
import type { Client, Grant } from "./session";
import { SignInError, unreachable } from "./sign-in-errors";

const TIMEOUT_MS = 20_000;
/** How far the clocks of this machine and of an issuer may differ. */
const CLOCK_SECONDS = 60;

/** An access token, and what came with it. */
export interface Tokens {
  token: string;
  grant: Grant;
}

/** Returns the address at an issuer where the user signs in, and what this tab has to keep until the answer comes. */
export async function begin(client: Client, page: string): Promise<{ begun: Begun; address: string }> {
  const server = await discover(client);
  const verifier = generateRandomCodeVerifier();
  const begun = { issuer: client.issuer, state: generateRandomState(), nonce: generateRandomNonce(), verifier, page };
  const address = endpoint(server, "authorization_endpoint", {
    response_type: "code",
    client_id: client["client-id"],
    redirect_uri: redirectUri(),
    scope: client.scope,
    state: begun.state,
    nonce: begun.nonce,
    code_challenge: await calculatePKCECodeChallenge(verifier),
    code_challenge_method: "S256",
  });
  return { begun, address };
}

/** Returns the tokens for the code in an issuer's answer to a sign-in. Throws if it is not the answer to this one. */
export async function finish(client: Client, begun: Begun, answer: URLSearchParams): Promise<Tokens> {
  const server = await discover(client);
  const valid = validateAuthResponse(server, oauth(client), answer, begun.state);
  const response = await authorizationCodeGrantRequest(
    server,
    oauth(client),
    None(),
    valid,
    redirectUri(),
    begun.verifier,
    requests(client),
  );
  const checks = { expectedNonce: begun.nonce, requireIdToken: true };
  return tokensOf(await processAuthorizationCodeResponse(server, oauth(client), response, checks), client.issuer);
}

/** Returns the next tokens of a grant. An issuer that rotates refresh tokens has withdrawn the one of `grant` then. */
export async function refresh(client: Client, grant: Grant & { refreshToken: string }): Promise<Tokens> {
  const server = await discover(client);
  const { refreshToken } = grant;
  const response = await refreshTokenGrantRequest(server, oauth(client), None(), refreshToken, requests(client));
  const answer = await processRefreshTokenResponse(server, oauth(client), response);
  const next = getValidatedIdTokenClaims(answer);
  if (next && next.sub !== claimsOf(grant.idToken)?.sub) {
    throw new SignInError("The issuer renewed the sign-in of another user.", "", "Sign in again.", true);
  }
  return tokensOf(answer, client.issuer, grant);
}

/**
 * Ends a grant at its issuer: revokes the refresh token where the issuer can, and returns the address where the user's
 * session ends, null if the issuer has none. Throws if neither could be done.
 */
export async function end(client: Client, grant: Grant): Promise<string | null> {
  const server = await discover(client);
  const failure = await revoke(client, server, grant).then(
    () => null,
    (error) => error,
  );
  if (server.end_session_endpoint) {
    return endpoint(server, "end_session_endpoint", {
      client_id: client["client-id"],
      id_token_hint: grant.idToken,
      post_logout_redirect_uri: redirectUri(),
    });
  }
  if (failure) throw failure;
  return null;
}

async function revoke(client: Client, server: AuthorizationServer, { refreshToken }: Grant): Promise<void> {
  if (refreshToken === null || !server.revocation_endpoint) return;
  const options = { ...requests(client), additionalParameters: { token_type_hint: "refresh_token" } };
  await processRevocationResponse(await revocationRequest(server, oauth(client), None(), refreshToken, options));
}

function tokensOf(answer: TokenEndpointResponse, issuer: string, before?: Grant): Tokens {
  const idToken = answer.id_token ?? before?.idToken ?? "";
  const refreshToken = answer.refresh_token ?? before?.refreshToken ?? null;
  const expiresMs = answer.expires_in === undefined ? null : Date.now() + answer.expires_in * 1000;
  return { token: answer.access_token, grant: { issuer, idToken, refreshToken, expiresMs } };
}

async function discover(client: Client): Promise<AuthorizationServer> {
  const issuer = new URL(client.issuer);
  return processDiscoveryResponse(issuer, await discoveryRequest(issuer, requests(client)));
}

function oauth(client: Client): OAuthClient {
  return { client_id: client["client-id"], token_endpoint_auth_method: "none", [clockTolerance]: CLOCK_SECONDS };
}

function requests(client: Client) {
  return {
    [allowInsecureRequests]: client.issuer.startsWith("http:"), // the server lists such a one if it is on this machine

    [customFetch]: send,
    signal: () => AbortSignal.timeout(TIMEOUT_MS),
  };
}

async function send(address: string, options: unknown): Promise<Response> {
  try {
    return await fetch(address, {
      ...(options as RequestInit),
      credentials: "omit",
      referrerPolicy: "no-referrer",
      cache: "no-store",
    });
  } catch {
    throw unreachable(address, location.origin); // a browser tells pages no more
  }
}

/** Returns the address of a page of an issuer, which the browser goes to, with these parameters. */
function endpoint(
  server: AuthorizationServer,
  name: "authorization_endpoint" | "end_session_endpoint",
  parameters: Record<string, string>,
): string {
  const text = server[name];
  if (!text) throw new SignInError(`The issuer has no ${name}.`, "", "People can't sign in there by a browser.", true);
  const address = new URL(text);
  if (address.protocol !== "https:" && address.origin !== new URL(server.issuer).origin) {
    throw new SignInError(`The issuer's ${name} is no address of a page: ${text}`, "", "Do not sign in there.", true);
  }
  for (const [key, value] of Object.entries(parameters)) address.searchParams.set(key, value);
  return address.href;
}
