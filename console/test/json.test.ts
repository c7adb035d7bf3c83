import assert from "node:assert/strict";
import { test } from "node:test";
import { parseExact, prettyField } from "../src/json";

test("ids of 64 bits keep their digits", () => {
  assert.deepEqual(parseExact('{"snapshot-id":3051729675574597004,"ids":[-9223372036854775808, 12]}'), {
    "snapshot-id": "3051729675574597004",
    ids: ["-9223372036854775808", 12],
  });
});

test("numbers in texts, fractions and times are left as they are", () => {
  const text =
    '{"a":"id 3051729675574597004 \\"1234567890123456\\"","b":0.12345678901234567890,"c":1763000000000,"d":1e30}';
  assert.deepEqual(parseExact(text), JSON.parse(text));
});

test("what is no JSON is refused", () => {
  assert.throws(() => parseExact("{1234567890123456789"), SyntaxError);
});

test("a field is shown with its numbers as they were sent", () => {
  const text = '{"entry":{},"receipt":{"ids":[3051729675574597004,12,0.5],"text":"3051729675574597004","none":null}}';
  const shown = prettyField(text, "receipt");
  assert.equal(
    shown.replace(/\s/g, ""),
    '{"ids":[3051729675574597004,12,0.5],"text":"3051729675574597004","none":null}',
  );
});
