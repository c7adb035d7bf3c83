import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiError, type Change, Unreachable } from "../src/api";
import { carryOut, PAUSES_MS, uuid7 } from "../src/changes";
import { SignInError } from "../src/sign-in-errors";

const CHANGE: Change = { method: "POST", path: "v1/arco/namespaces/a/tables/t/undrop" };
const KEY = "01890a5d-ac96-774b-bcce-b302099a8057";
const lost = new Unreachable("no answer");
const refused = (status: number) => new ApiError(status, "X", "no", null);

/** Sends by a script of answers: an error is thrown, anything else is the answer. Notes what was sent, and the pauses. */
function scripted(...answers: unknown[]) {
  const sent: unknown[] = [];
  const pauses: number[] = [];
  const send = async (change: Change, key: string) => {
    sent.push([change, key]);
    const answer = answers[sent.length - 1];
    if (answer instanceof Error) throw answer;
    return answer;
  };
  const pause = async (ms: number) => {
    pauses.push(ms);
  };
  const play = (repeats: boolean, again = false) => carryOut(CHANGE, KEY, { repeats, again }, send, pause);
  return { sent, pauses, play };
}

test("an answer ends a change", async () => {
  const script = scripted({ a: 1 });
  assert.deepEqual(await script.play(true), { state: "done", answer: { a: 1 } });
  assert.deepEqual(script.sent, [[CHANGE, KEY]]);
});

test("a lost answer has the identical request sent again, under its key", async () => {
  const script = scripted(lost, refused(503), null);
  assert.deepEqual(await script.play(true), { state: "done", answer: null });
  assert.deepEqual(script.sent, Array(3).fill([CHANGE, KEY]));
  assert.deepEqual(script.pauses, PAUSES_MS.slice(0, 2));
});

test("a request is sent a few times, and then its outcome is unknown", async () => {
  const script = scripted(...Array(9).fill(lost));
  assert.deepEqual(await script.play(true), { state: "unknown", error: lost });
  assert.equal(script.sent.length, PAUSES_MS.length + 1);
});

test("without an API that reads keys a request is sent once", async () => {
  for (const error of [lost, refused(500)]) {
    const script = scripted(error);
    assert.deepEqual(await script.play(false), { state: "unknown", error });
    assert.equal(script.sent.length, 1);
  }
});

test("a refusal ends a change, and is not sent again", async () => {
  for (const status of [400, 401, 403, 404, 409, 422, 429]) {
    const script = scripted(refused(status));
    assert.equal((await script.play(true)).state, "refused");
    assert.equal(script.sent.length, 1);
  }
});

test("a sign-in that fails before a request is sent ends a change, but says nothing of an earlier sending", async () => {
  const failed = new SignInError("no", "login_required", "Sign in again.", true);
  assert.equal((await scripted(failed).play(true)).state, "refused");
  assert.equal((await scripted(lost, ...Array(9).fill(failed)).play(true)).state, "unknown");
});

test("a refusal of the caller after a lost answer says nothing of the earlier sending", async () => {
  for (const status of [401, 403, 429]) {
    const script = scripted(lost, ...Array(9).fill(refused(status)));
    assert.equal((await script.play(true)).state, "unknown");
  }
  assert.equal((await scripted(lost, refused(409)).play(true)).state, "refused");
});

test("nor does one after a user has a change of unknown outcome sent again", async () => {
  for (const error of [refused(401), refused(403), refused(429), new SignInError("no", "", "Sign in again.", true)]) {
    for (const repeats of [true, false]) {
      assert.equal((await scripted(...Array(9).fill(error)).play(repeats, true)).state, "unknown");
    }
  }
  assert.equal((await scripted(refused(409)).play(true, true)).state, "refused");
});

test("a key is a UUIDv7 of its time", () => {
  for (const byte of [0, 0x5a, 0xa5, 0xff]) {
    const key = uuid7(1_700_000_000_123, new Uint8Array(10).fill(byte));
    assert.match(key, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    assert.equal(Number.parseInt(key.slice(0, 13).replace("-", ""), 16), 1_700_000_000_123);
  }
  assert.notEqual(uuid7(1, new Uint8Array(10)), uuid7(1, Uint8Array.from([0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10])));
});
