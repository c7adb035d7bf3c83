import assert from "node:assert/strict";
import { test } from "node:test";
import { detailOf } from "../src/pages/operations";
import { pointsOf } from "../src/pages/snapshots";
import { type Field, rowsOf } from "../src/schema";

test("fields inside of others follow them, with their path", () => {
  const fields: Field[] = [
    { id: 1, name: "id", type: "long", required: true, doc: "key" },
    {
      id: 2,
      name: "tags",
      required: false,
      type: { type: "map", "key-id": 3, key: "string", "value-id": 4, value: "int", "value-required": true },
    },
    {
      id: 5,
      name: "lines",
      required: false,
      type: {
        type: "list",
        "element-id": 6,
        "element-required": false,
        element: { type: "struct", fields: [{ id: 7, name: "sku", type: "string", required: false }] },
      },
    },
  ];
  assert.deepEqual(
    rowsOf(fields).map(({ id, path, type }) => [id, path.join("."), type]),
    [
      [1, "id", "long"],
      [2, "tags", "map"],
      [3, "tags.key", "string"],
      [4, "tags.value", "int"],
      [5, "lines", "list"],
      [6, "lines.element", "struct"],
      [7, "lines.element.sku", "string"],
    ],
  );
});

test("a chart has the totals that the summaries have, oldest first", () => {
  const snapshots = [3, 2, 1].map((at) => ({
    "snapshot-id": String(at),
    "timestamp-ms": at,
    ...(at === 2 ? {} : { summary: { "total-records": String(10 * at) } }),
  }));
  assert.deepEqual(pointsOf(snapshots, "total-records"), [
    { ms: 1, value: 10 },
    { ms: 3, value: 30 },
  ]);
});

test("of an operation's other facts those are shown that people read", () => {
  const grant = { role: "reader", privilege: "TABLE_DROP", principal_role: null, principal_id: "01J", purge: false };
  assert.equal(detailOf(grant), "privilege TABLE_DROP, role reader");
  assert.equal(
    detailOf({ purge: true, governance: ["arco.owner", "arco.quality"] }),
    "governance arco.owner, arco.quality, purge true",
  );
});
