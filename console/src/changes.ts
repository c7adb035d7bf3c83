/** Carries out changes: each under one idempotency key, which a request that is sent again keeps. */
import { ApiError, type Change, sendChange } from "./api";
import { SignInError } from "./sign-in-errors";

/** How a change ended: by an answer, by an error after which nothing was changed, or with an unknown outcome. */
export type Outcome =
  | { state: "done"; answer: unknown }
  | { state: "refused"; error: Error }
  | { state: "unknown"; error: Error };

/** How long to wait before each further sending of a request, in milliseconds. */
export const PAUSES_MS: readonly number[] = [500, 2000, 5000];

/**
 * Sends a change. With `repeats`, which needs an API that reads the key, the identical request is sent again while no
 * answer says how it ended, once after each pause. `again` if it was sent before, with an unknown outcome.
 */
export async function carryOut(
  change: Change,
  key: string,
  { repeats, again }: { repeats: boolean; again: boolean },
  send: typeof sendChange = sendChange,
  pause: (ms: number) => Promise<void> = wait,
): Promise<Outcome> {
  let outcome = await sendOnce(change, key, send, again);
  for (const ms of repeats ? PAUSES_MS : []) {
    if (outcome.state !== "unknown") break;
    await pause(ms);
    outcome = await sendOnce(change, key, send, true);
  }
  return outcome;
}

async function sendOnce(change: Change, key: string, send: typeof sendChange, again: boolean): Promise<Outcome> {
  try {
    return { state: "done", answer: await send(change, key) };
  } catch (caught) {
    const error = caught as Error;
    return { state: isRefusal(error, again) ? "refused" : "unknown", error };
  }
}

/** Answers by which a server refuses a request before it looks whether an earlier sending was carried out. */
const OF_THIS_SENDING = [401, 403, 429];

function isRefusal(error: Error, again: boolean): boolean {
  if (error instanceof SignInError) return !again; // nothing was sent, or the token was refused
  if (!(error instanceof ApiError) || error.status >= 500) return false;
  return !(again && OF_THIS_SENDING.includes(error.status));
}

function wait(ms: number): Promise<void> {
  return new Promise((done) => setTimeout(done, ms));
}

/** Returns a new idempotency key: a UUIDv7 of this time. */
export function newKey(): string {
  return uuid7(Date.now(), crypto.getRandomValues(new Uint8Array(10)));
}

/** Returns the UUIDv7 of a time in milliseconds, and of ten random bytes. */
export function uuid7(ms: number, random: Uint8Array): string {
  const hex = [...random].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  const time = ms.toString(16).padStart(12, "0");
  const variant = "89ab".charAt(Number.parseInt(hex.charAt(3), 16) % 4);
  return `${time.slice(0, 8)}-${time.slice(8)}-7${hex.slice(0, 3)}-${variant}${hex.slice(4, 7)}-${hex.slice(7, 19)}`;
}
