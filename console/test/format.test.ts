import assert from "node:assert/strict";
import { test } from "node:test";
import { age, bytes, count, isTime, plural, shellWord, signed, utcTime } from "../src/format";

test("sizes have three digits and a unit", () => {
  assert.deepEqual([0, 999, 1000, 4096, 12_345_678, "987654321987"].map(bytes), [
    "0 bytes",
    "999 bytes",
    "1 KB",
    "4.1 KB",
    "12.3 MB",
    "988 GB",
  ]);
});

test("counts of 64 bits keep their digits, and what is not known is a dash", () => {
  assert.equal(count("9223372036854775807"), "9,223,372,036,854,775,807");
  assert.deepEqual([count(null), count(undefined), bytes(null)], ["–", "–", "–"]);
});

test("what an engine wrote as a count, a size or a time and is none breaks no page", () => {
  const odd = ["abc", "1.5", "", "1e400", "9".repeat(100_000)];
  assert.deepEqual(odd.map(count), odd);
  assert.equal(bytes("abc"), "abc");
  assert.equal(bytes("1e400"), "1e400");
  assert.deepEqual([1.5, 1e21].map(count), ["1.5", "1e+21"]);
  assert.deepEqual([0, 8.64e15, 8.64e15 + 1, Number("9999999999999999"), Number.NaN].map(isTime), [
    true,
    true,
    false,
    false,
    false,
  ]);
});

test("a hostile name is one word of a shell", () => {
  assert.deepEqual(["sales.orders", "a b", "t;$(x)`y`", "it's", ""].map(shellWord), [
    "sales.orders",
    "'a b'",
    "'t;$(x)`y`'",
    "'it'\\''s'",
    "''",
  ]);
});

test("changes have a sign, and none is no text", () => {
  assert.deepEqual([signed(1200, "+"), signed(3, "−"), signed(0, "+"), signed(null, "−")], ["+1,200", "−3", "", ""]);
});

test("an age is in its largest unit", () => {
  const ages = [0, 1, 59, 60, 7200, 90_000, 40 * 86_400, 800 * 86_400].map((seconds) => age(0, seconds * 1000));
  assert.deepEqual(ages, [
    "now",
    "1 second ago",
    "59 seconds ago",
    "1 minute ago",
    "2 hours ago",
    "1 day ago",
    "1 month ago",
    "2 years ago",
  ]);
  assert.equal(age(5000, 0), "now");
});

test("a time in UTC has its milliseconds", () => {
  assert.equal(utcTime(1_763_000_000_123), "2025-11-13 02:13:20.123 UTC");
});

test("one of a thing has no s", () => {
  assert.deepEqual([plural(1, "row"), plural(2000, "row")], ["1 row", "2,000 rows"]);
});
