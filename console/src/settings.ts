/** The settings with which engines use this server, ready to paste. They hold no secrets. */
import { shellWord } from "./format";
import type { LoginKind } from "./session";

const ICEBERG = "1.11.0";
const CATALOG = "arco";
const SPARK = `org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:${ICEBERG}`;

/** What settings of a catalog are filled with: the server's address, the catalog's name, and how to sign in. */
export interface CatalogTarget {
  uri: string;
  warehouse: string;
  realm: string;
  logins: readonly LoginKind[];
}

/** What settings of a table are filled with: also its name, and where its files are. */
export interface Target extends CatalogTarget {
  namespace: readonly string[];
  table: string;
  location: string;
}

export interface Block {
  engine: string;
  where: string;
  text: string;
}

interface FileAccess {
  bundle: string | null;
  spark: Record<string, string>;
  trino: Record<string, string>;
}

/** Returns the settings of each engine. */
export function blocksFor(target: Target): Block[] {
  const files = accessTo(target);
  return [spark(target, files), trino(target, files), pyiceberg(target), duckdb(target), flink(target, files)];
}

function accessTo({ location, logins }: Target): FileAccess {
  const scheme = location.slice(0, Math.max(0, location.indexOf(":")));
  const io = (name: string) => ({ "io-impl": `org.apache.iceberg.${name}` });
  const delegated: Record<string, string> =
    logins.length > 0 ? { "header.X-Iceberg-Access-Delegation": "vended-credentials" } : {};
  const vended: Record<string, string> =
    logins.length > 0 ? { "iceberg.rest-catalog.vended-credentials-enabled": "true" } : {};
  const of = (bundle: string, impl: string, trino: string) => ({
    bundle: `org.apache.iceberg:iceberg-${bundle}-bundle:${ICEBERG}`,
    spark: { ...delegated, ...io(impl) },
    trino: { ...vended, [trino]: "true" },
  });
  if (/^s3[an]?$/.test(scheme)) return of("aws", "aws.s3.S3FileIO", "fs.native-s3.enabled");
  if (scheme === "gs") return of("gcp", "gcp.gcs.GCSFileIO", "fs.native-gcs.enabled");
  if (/^(abfss?|wasbs?)$/.test(scheme)) return of("azure", "azure.adlsv2.ADLSFileIO", "fs.native-azure.enabled");
  return { bundle: null, spark: {}, trino: { "fs.native-local.enabled": "true", "local.location": "/" } };
}

/** The settings of a login under the names that Iceberg's Java library and PyIceberg share. */
function loginOf({ logins, uri, realm }: CatalogTarget): Record<string, string> {
  const named: Record<string, string> = realm ? { "header.Polaris-Realm": realm } : {};
  if (logins.includes("client-credentials")) {
    const credential = { credential: "CLIENT_ID:CLIENT_SECRET", scope: "PRINCIPAL_ROLE:ALL" };
    return { ...credential, "oauth2-server-uri": `${uri}/v1/oauth/tokens`, ...named };
  }
  return logins.includes("token") ? { token: "TOKEN", ...named } : named;
}

function spark(target: Target, files: FileAccess): Block {
  const catalog = `spark.sql.catalog.${CATALOG}`;
  const of = (settings: Record<string, string>) =>
    Object.entries(settings).map(([name, value]) => [`${catalog}.${name}`, value] as const);
  const settings = [
    ["spark.sql.extensions", "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"],
    [catalog, "org.apache.iceberg.spark.SparkCatalog"],
    ...of({ type: "rest", uri: target.uri, warehouse: target.warehouse }),
    ["spark.sql.defaultCatalog", CATALOG],
    ...of(loginOf(target)),
    ...of(files.spark),
  ];
  const query = `SELECT * FROM ${sqlName(target, "`")} LIMIT 10`;
  const lines = [
    `spark-sql --packages ${[SPARK, files.bundle].filter(Boolean).join(",")}`,
    ...settings.map(([name, value]) => `--conf ${shellWord(`${name}=${value}`)}`),
    `-e ${shellWord(query)}`,
  ];
  return { engine: "Spark", where: "on a command line", text: lines.join(" \\\n  ") };
}

function trino(target: Target, files: FileAccess): Block {
  const { credential, token, scope, "oauth2-server-uri": server } = loginOf(target);
  const oauth = { credential, token, scope, "server-uri": server };
  const prefix = "iceberg.rest-catalog.oauth2.";
  const settings = {
    "connector.name": "iceberg",
    "iceberg.catalog.type": "rest",
    "iceberg.rest-catalog.uri": target.uri,
    "iceberg.rest-catalog.warehouse": target.warehouse,
    "iceberg.rest-catalog.nested-namespace-enabled": "true",
    "iceberg.rest-catalog.view-endpoints-enabled": "true",
    ...(credential || token ? { "iceberg.rest-catalog.security": "OAUTH2" } : {}),
    ...Object.fromEntries(Object.entries(oauth).flatMap(([k, v]) => (v ? [[`${prefix}${k}`, v]] : []))),
    ...files.trino,
  };
  const text = Object.entries(settings).map(([name, value]) => `${name}=${value}`);
  return { engine: "Trino", where: `etc/catalog/${CATALOG}.properties`, text: text.join("\n") };
}

/** Returns the lines of Python that make a catalog of PyIceberg. */
export function pyicebergCatalog(target: CatalogTarget): string[] {
  const settings = { type: "rest", uri: target.uri, warehouse: target.warehouse, ...loginOf(target) };
  return [
    "from pyiceberg.catalog import load_catalog",
    "",
    "catalog = load_catalog(",
    `    "${CATALOG}",`,
    "    **{",
    ...Object.entries(settings).map(([key, value]) => `        "${key}": ${JSON.stringify(value)},`),
    "    },",
    ")",
  ];
}

function pyiceberg(target: Target): Block {
  const name = JSON.stringify([...target.namespace, target.table])
    .replace("[", "(")
    .replace(/\]$/, ")");
  const text = [...pyicebergCatalog(target), `table = catalog.load_table(${name})`];
  return { engine: "PyIceberg", where: "in Python", text: text.join("\n") };
}

function duckdb(target: Target): Block {
  const { credential, token, scope, "oauth2-server-uri": server } = loginOf(target);
  const options = [
    ...(credential ? ["CLIENT_ID 'CLIENT_ID'", "CLIENT_SECRET 'CLIENT_SECRET'"] : []),
    ...(credential ? [`OAUTH2_SERVER_URI ${sqlText(server ?? "")}`, `OAUTH2_SCOPE '${scope}'`] : []),
    ...(token ? ["TOKEN 'TOKEN'"] : []),
  ];
  const has = options.length > 0;
  const access = has ? `SECRET ${CATALOG}` : "AUTHORIZATION_TYPE 'none'";
  const text = [
    "INSTALL iceberg;",
    "LOAD iceberg;",
    ...(has ? [`CREATE SECRET ${CATALOG} (TYPE iceberg, ${options.join(", ")});`] : []),
    `ATTACH ${sqlText(target.warehouse)} AS ${CATALOG} (TYPE iceberg, ${access}, ENDPOINT ${sqlText(target.uri)});`,
    `SELECT * FROM ${CATALOG}.${sqlName(target, '"')} LIMIT 10;`,
  ];
  return { engine: "DuckDB", where: "in SQL", text: text.join("\n") };
}

function flink(target: Target, files: FileAccess): Block {
  const settings = {
    type: "iceberg",
    "catalog-type": "rest",
    uri: target.uri,
    warehouse: target.warehouse,
    ...loginOf(target),
    ...files.spark,
  };
  const listed = Object.entries(settings).map(([name, value]) => `  ${sqlText(name)} = ${sqlText(value)}`);
  const query = `SELECT * FROM ${CATALOG}.${sqlName(target, "`")};`;
  const text = `CREATE CATALOG ${CATALOG} WITH (\n${listed.join(",\n")}\n);\n${query}`;
  return { engine: "Flink", where: `in SQL, with iceberg-flink-runtime-2.1:${ICEBERG}`, text };
}

function sqlName({ namespace, table }: Target, quote: string): string {
  return [...namespace, table].map((part) => quote + part.replaceAll(quote, quote + quote) + quote).join(".");
}

function sqlText(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
