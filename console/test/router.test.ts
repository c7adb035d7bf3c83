import assert from "node:assert/strict";
import { test } from "node:test";
import { joined, LEVELS, levelsOf, pages } from "../src/names";
import { href, parseRoute } from "../src/router";

const HOSTILE = ["a/b?c#d%2e", "$(x)", "<script>", "שלום", "a b+c&d=e", "..", "%"];

test("every name comes back from an address", () => {
  for (const name of HOSTILE) {
    const route = parseRoute(href(["c", name, "t"], { q: name }));
    assert.deepEqual(route, { path: ["c", name, "t"], query: { q: name } });
  }
});

test("the levels of a namespace are one part of an address", () => {
  const route = parseRoute(pages.entity("lake", "t", ["a", "b/c"], "t", ["timeline"]));
  assert.deepEqual(route.path, ["c", "lake", "t", `a${LEVELS}b/c`, "t", "timeline"]);
});

test("a namespace comes back from its text, also one whose name has a dot", () => {
  for (const namespace of [["a", "b"], ["a.b"], []]) {
    assert.deepEqual(levelsOf(joined(namespace)), namespace);
  }
});

test("what does not decode is kept, and an empty address is home", () => {
  assert.deepEqual(parseRoute("#/c/%zz").path, ["c", "%zz"]);
  assert.deepEqual(parseRoute(""), { path: [], query: {} });
});

test("empty values are not in an address", () => {
  assert.equal(href(["c"], { at: "", from: undefined, to: "1" }), "#/c?to=1");
});
