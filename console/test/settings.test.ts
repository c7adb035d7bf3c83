import assert from "node:assert/strict";
import { test } from "node:test";
import { blocksFor, type Target } from "../src/settings";

const TARGET: Target = {
  uri: "https://lake.example/prod",
  warehouse: "lake",
  realm: "",
  logins: [],
  fileIo: {},
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

test("files are reached at the region and endpoint of the server", () => {
  const fileIo = {
    "client.region": "eu-central-1",
    "s3.region": "eu-central-1",
    "s3.endpoint": "http://minio:9000",
    "s3.path-style-access": "true",
  };
  assert.ok(text("Spark", { fileIo }).includes("arco.client.region=eu-central-1"));
  assert.ok(text("Spark", { fileIo }).includes("arco.s3.endpoint=http://minio:9000"));
  assert.ok(text("Flink", { fileIo }).includes("'client.region' = 'eu-central-1'"));
  assert.ok(text("PyIceberg", { fileIo }).includes('"s3.region": "eu-central-1"'));
  assert.ok(!text("PyIceberg", { fileIo }).includes("client.region"));
  assert.match(text("Trino", { fileIo }), /s3.region=eu-central-1\ns3.endpoint=.*\ns3.path-style-access=true/);
  const secret = "REGION 'eu-central-1', ENDPOINT 'minio:9000', USE_SSL false, URL_STYLE 'path'";
  assert.ok(text("DuckDB", { fileIo }).includes(secret));
  assert.ok(!text("DuckDB", { fileIo, logins: ["token"] }).includes("TYPE s3"));
});

test("projects and accounts are those of the server and of the table", () => {
  const gcs = { "gcs.project-id": "lake", "gcs.service.host": "http://gcs:4443", "gcs.oauth2.token": "none" };
  const google = { location: "gs://b/t", fileIo: gcs };
  assert.ok(text("Spark", google).includes("arco.gcs.service.host=http://gcs:4443"));
  assert.ok(!text("Spark", google).includes("oauth2"));
  assert.ok(text("PyIceberg", google).includes('"gcs.oauth2.token": "none"'));
  assert.match(text("Trino", google), /gcs.project-id=lake\ngcs.endpoint=http:\/\/gcs:4443/);
  const azure = { location: "abfss://c@acc.dfs.core.chinacloudapi.cn/t" };
  assert.ok(text("PyIceberg", azure).includes('"adls.account-name": "acc"'));
  assert.match(text("Trino", azure), /azure.auth-type=DEFAULT\nazure.endpoint=core.chinacloudapi.cn/);
});

test("properties of another store are left out", () => {
  const fileIo = { "client.region": "eu-central-1", "s3.region": "eu-central-1" };
  for (const { engine, text } of blocksFor({ ...TARGET, location: "file:///t", fileIo })) {
    assert.ok(!text.includes("eu-central-1"), engine);
  }
});

test("a hostile name stays inside of its quotes", () => {
  const table = "a`b'c\"d$(x)";
  assert.ok(text("Spark", { table }).includes("a``b'\\''c\"d$(x)"));
  assert.ok(text("DuckDB", { table }).includes('"a`b\'c""d$(x)"'));
  assert.ok(text("PyIceberg", { table }).includes(JSON.stringify(table)));
  assert.ok(text("Flink", { warehouse: "it's" }).includes("'it''s'"));
});
