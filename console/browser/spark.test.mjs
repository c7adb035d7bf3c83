// The console with what Spark wrote. tests/console/test_browser_with_spark.py starts this file.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { axe, close, faults, ROOT, show, signedIn } from "./harness.mjs";

const TABLE = "/c/arco/t/sales/from_spark";
let page;
before(async () => {
  page = await signedIn(ROOT);
});
after(close);

test("the timeline names Spark, and what each of its statements changed", async () => {
  await show(page, `${TABLE}/timeline`);
  const text = await page.locator(".timeline").innerText();
  assert.match(text, /by root with spark\/4/);
  assert.match(text, /append \+3 rows/);
  assert.match(text, /add-schema/);
  assert.deepEqual(await axe(page), []);
});

test("a table of Spark's has its partition spec, its branch and its comments", async () => {
  await show(page, TABLE);
  await page.getByText("month(day)").waitFor();
  await page.getByRole("rowheader", { name: "audit" }).waitFor();
  await page.getByText("What the shop wrote").waitFor();
});

test("a view of Spark's has its SQL", async () => {
  await show(page, "/c/arco/v/sales/spark_view");
  await page.getByText("SELECT id FROM sales.from_spark").waitFor();
  assert.deepEqual(await axe(page), []);
});

test("no page caused an error or a report of the policy", () => {
  assert.deepEqual(faults, []);
});
