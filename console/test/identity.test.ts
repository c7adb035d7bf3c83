import assert from "node:assert/strict";
import { test } from "node:test";
import { nameIn } from "../src/identity";

function token(claims: unknown): string {
  return ["{}", JSON.stringify(claims), "signature"].map((part) => Buffer.from(part).toString("base64url")).join(".");
}

test("a token of this server has the name of its principal, in any letters", () => {
  assert.equal(nameIn(token({ iss: "arco", name: "ada" })), "ada");
  assert.equal(nameIn(token({ iss: "arco", name: "שלום ÿ>?" })), "שלום ÿ>?");
});

test("a token of another issuer has no name of a principal, and neither has a text that is no token", () => {
  for (const other of [
    token({ iss: "https://id.example.org", name: "Ada" }),
    token(null),
    token(7),
    "x",
    "a.b.c",
    "",
  ]) {
    assert.equal(nameIn(other), null);
  }
  assert.equal(nameIn(token({ iss: "arco" })), null);
});
