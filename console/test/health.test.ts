import assert from "node:assert/strict";
import { test } from "node:test";
import type { TableMetadata } from "../src/catalog";
import { healthOf, type LastVersion, workOf } from "../src/health";

const COMMITTED: LastVersion = { version: 4, receipt: "committed" };

function table(summary: Record<string, string> | undefined, properties: Record<string, string> = {}): TableMetadata {
  const snapshots = [{ "snapshot-id": 7, "timestamp-ms": 1, ...(summary ? { summary } : {}) }];
  return { "current-snapshot-id": 7, snapshots, properties } as unknown as TableMetadata;
}

function states(quality: string | undefined, of: TableMetadata, last?: LastVersion): Record<string, string> {
  return Object.fromEntries(healthOf(quality, of, last).map(({ about, state }) => [about, state]));
}

test("a table with few delete files, files of the wanted size, a quality and a receipt is well", () => {
  const totals = { "total-data-files": "5", "total-files-size": "5000", "total-delete-files": "0" };
  assert.deepEqual(states("gold", table(totals, { "write.target-file-size-bytes": "1000" }), COMMITTED), {
    Quality: "good",
    "Last write": "good",
    "Data files": "good",
    "Delete files": "good",
  });
});

test("small files are small against the property of the table, or Iceberg's size", () => {
  const totals = { "total-data-files": "5", "total-files-size": "3000", "total-delete-files": "2" };
  const found = healthOf("gold", table(totals), COMMITTED);
  assert.deepEqual(found[2], {
    about: "Data files",
    state: "warn",
    text: "small: 5 files, 600 bytes on average, 537 MB wanted",
  });
  assert.deepEqual(found[3], { about: "Delete files", state: "warn", text: "2" });
  const few = { ...totals, "total-data-files": "4" };
  assert.equal(states("gold", table(few), COMMITTED)["Data files"], "good");
  assert.equal(
    states("gold", table(totals, { "write.target-file-size-bytes": "801" }), COMMITTED)["Data files"],
    "warn",
  );
  assert.equal(
    states("gold", table(totals, { "write.target-file-size-bytes": "800" }), COMMITTED)["Data files"],
    "good",
  );
});

test("what is not known is not called well", () => {
  const none = { snapshots: [] } as unknown as TableMetadata;
  assert.deepEqual(states(undefined, none), { Quality: "unknown", "Last write": "unknown", "Data files": "unknown" });
  assert.equal(states("gold", table(undefined), COMMITTED)["Data files"], "unknown");
  assert.equal(states("gold", table({ "total-data-files": "x" }), COMMITTED)["Delete files"], "unknown");
});

test("a receipt that is pending or missing is to be looked at", () => {
  for (const [receipt, state] of [
    ["pending", "warn"],
    ["missing", "warn"],
    ["none", "unknown"],
  ] as const) {
    assert.equal(states("gold", table({}), { ...COMMITTED, receipt })["Last write"], state);
  }
});

test("maintenance of this table alone is work that waits, and a part of the tasks does not show that there is none", () => {
  const task = (name: string, type = "TABLE_MAINTENANCE") => ({ type, namespace: ["a", "b"], name, status: "RUNNING" });
  const others = [
    task("u"),
    task("t", "TABLE_PURGE"),
    { ...task("t"), namespace: ["a"] },
    { ...task("t"), namespace: ["a.b"] },
    { ...task("t"), namespace: null },
  ];
  assert.equal(workOf(["a", "b"], "t", others, true).state, "good");
  assert.equal(workOf(["a", "b"], "t", others, false).state, "unknown");
  assert.deepEqual(workOf(["a", "b"], "t", [...others, task("t")], false), {
    about: "Waiting work",
    state: "warn",
    text: "maintenance: running",
  });
});
