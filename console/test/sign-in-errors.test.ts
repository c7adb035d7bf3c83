import assert from "node:assert/strict";
import { test } from "node:test";
import { explained, SignInError, unreachable } from "../src/sign-in-errors";

function shown(error: unknown): SignInError {
  const made = explained(error);
  assert.ok(made instanceof SignInError);
  return made;
}

test("an issuer's words are kept, with its code and what to do", () => {
  const refused = shown(Object.assign(new Error("x"), { error: "access_denied", error_description: "Not you" }));
  assert.deepEqual([refused.message, refused.code, refused.final], ["Not you", "access_denied", true]);
  assert.match(refused.advice, /request access/);
  const bare = shown(Object.assign(new Error("x"), { error: "invalid_scope" }));
  assert.equal(bare.message, "The issuer answered: invalid_scope");
  assert.match(bare.advice, /ARCO_CONSOLE_CLIENTS/);
});

test("a code that no specification has leads to another sign-in, and is no name of a property", () => {
  for (const code of ["made_up", "<script>", "constructor", "__proto__", "toString"]) {
    const error = shown(Object.assign(new Error("x"), { error: code }));
    assert.deepEqual([error.code, error.advice], [code, "Sign in again."]);
  }
});

test("an error of the library is kept, and a clock is named", () => {
  const error = shown(Object.assign(new Error("late"), { code: "OAUTH_JWT_TIMESTAMP_CHECK_FAILED" }));
  assert.equal(error.message, "late");
  assert.match(error.advice, /clock/);
});

test("an issuer that does not answer may do so later", () => {
  const error = unreachable("https://id.example.com/token?x", "https://lake.example.com");
  assert.equal(explained(error), error);
  assert.deepEqual([error.message, error.final], ["https://id.example.com does not answer this page.", false]);
  assert.match(error.advice, /pages of https:\/\/lake\.example\.com \(CORS\)/);
});

test("a fault of the program stays what it is", () => {
  const fault = new TypeError("x is not a function");
  assert.equal(explained(fault), fault);
});
