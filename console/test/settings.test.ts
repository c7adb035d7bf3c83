import assert from "node:assert/strict";
import { test } from "node:test";
import { blocksFor, type Target } from "../src/settings";

const TARGET: Target = {
  uri: "https://lake.example/prod",
  warehouse: "lake",
  realm: "",
  logins: [],
  namespace: ["sales"],
  table: "orders",
  location: "s3://bucket/t",
};
const text = (engine: string, changed: Partial<Target> = {}) =>
  blocksFor({ ...TARGET, ...changed }).find((each) => each.engine === engine)?.text ?? "";

test("each engine gets the address, the catalog and the table", () => {
  for (const { engine, text } of blocksFor(TARGET)) {
    assert.ok(text.includes("https://lake.example/prod"), engine);
    assert.ok(text.includes("lake"), engine);
  }
  assert.ok(text("Spark").includes("SELECT * FROM `sales`.`orders` LIMIT 10"));
  assert.ok(text("PyIceberg").endsWith('table = catalog.load_table(("sales","orders"))'));
  assert.ok(text("DuckDB").includes("AUTHORIZATION_TYPE 'none'"));
});

test("a login is a placeholder, and files are reached by credentials of the catalog", () => {
  const logins = ["client-credentials", "token"] as const;
  assert.ok(text("Spark", { logins }).includes("credential=CLIENT_ID:CLIENT_SECRET"));
  assert.ok(text("Spark", { logins }).includes("vended-credentials"));
  assert.ok(text("Trino", { logins }).includes("oauth2.server-uri=https://lake.example/prod/v1/oauth/tokens"));
  assert.ok(text("DuckDB", { logins: ["token"] }).includes("TOKEN 'TOKEN'"));
  assert.ok(text("Flink", { logins, realm: "eu" }).includes("'header.Polaris-Realm' = 'eu'"));
});

test("the store of the table decides on libraries", () => {
  assert.ok(text("Spark").includes("iceberg-aws-bundle"));
  assert.ok(text("Spark", { location: "gs://b/t" }).includes("iceberg-gcp-bundle"));
  assert.ok(text("Trino", { location: "abfss://c@a.dfs.core.windows.net/t" }).includes("fs.native-azure.enabled=true"));
  assert.ok(!text("Spark", { location: "file:///t" }).includes("bundle"));
});

test("a hostile name stays inside of its quotes", () => {
  const table = "a`b'c\"d$(x)";
  assert.ok(text("Spark", { table }).includes("a``b'\\''c\"d$(x)"));
  assert.ok(text("DuckDB", { table }).includes('"a`b\'c""d$(x)"'));
  assert.ok(text("PyIceberg", { table }).includes(JSON.stringify(table)));
  assert.ok(text("Flink", { warehouse: "it's" }).includes("'it''s'"));
});
