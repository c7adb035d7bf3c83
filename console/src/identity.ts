/** Who one is, by the token of this tab. */

/** The name of its principal that this server wrote into a token; null for a token of another issuer. */
export function nameIn(token: string): string | null {
  const claims = claimsOf(token);
  return claims?.iss === "arco" && typeof claims.name === "string" ? claims.name : null;
}

/** The claims of a JWT, which are not verified here; null for any other text. */
export function claimsOf(token: string): Record<string, unknown> | null {
  const payload = (token.split(".")[1] ?? "").replaceAll("-", "+").replaceAll("_", "/");
  try {
    const bytes = Uint8Array.from(atob(payload), (each) => each.charCodeAt(0));
    const claims: unknown = JSON.parse(new TextDecoder().decode(bytes));
    return typeof claims === "object" ? (claims as Record<string, unknown> | null) : null;
  } catch {
    return null; // no JWT
  }
}
