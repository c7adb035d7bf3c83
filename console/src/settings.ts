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
  /** Properties of Iceberg by which engines reach the files of the server's store. */
  fileIo: Readonly<Record<string, string>>;
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

type Properties = Record<string, string>;

interface FileAccess {
  bundle: string | null;
  spark: Properties;
  pyiceberg: Properties;
  trino: Properties;
  /** Statements of DuckDB before the one that attaches the catalog. */
  duckdb: string[];
}

/** Returns the settings of each engine. */
export function blocksFor(target: Target): Block[] {
  const files = accessTo(target);
  return [
    spark(target, files),
    trino(target, files),
    pyiceberg(target, files.pyiceberg),
    duckdb(target, files),
    flink(target, files),
  ];
}

function accessTo(target: Target): FileAccess {
  const scheme = target.location.slice(0, Math.max(0, target.location.indexOf(":")));
  if (/^s3[an]?$/.test(scheme)) return accessToS3(target);
  if (scheme === "gs") return accessToGcs(target);
  if (/^(abfss?|wasbs?)$/.test(scheme)) return accessToAzure(target);
  const trino = { "fs.native-local.enabled": "true", "local.location": "/" };
  return { bundle: null, spark: {}, pyiceberg: {}, trino, duckdb: [] };
}

/** What the engines of Java have to set: the library, and that the catalog gives credentials where there are logins. */
function accessOfJava({ logins }: Target, bundle: string, io: string): Pick<FileAccess, "bundle" | "spark" | "trino"> {
  const delegates = logins.length > 0;
  const header: Properties = delegates ? { "header.X-Iceberg-Access-Delegation": "vended-credentials" } : {};
  return {
    bundle: `org.apache.iceberg:iceberg-${bundle}-bundle:${ICEBERG}`,
    spark: { ...header, "io-impl": `org.apache.iceberg.${io}` },
    trino: delegates ? { "iceberg.rest-catalog.vended-credentials-enabled": "true" } : {},
  };
}

function accessToS3(target: Target): FileAccess {
  const java = accessOfJava(target, "aws", "aws.s3.S3FileIO");
  const { fileIo } = target;
  const ofTrino = picked(fileIo, ["s3.region", "s3.endpoint", "s3.path-style-access"]);
  return {
    ...java,
    spark: { ...java.spark, ...picked(fileIo, ["client.region", "s3.endpoint", "s3.path-style-access"]) },
    pyiceberg: picked(fileIo, ["s3.region", "s3.endpoint"]),
    trino: { ...java.trino, "fs.native-s3.enabled": "true", ...ofTrino },
    duckdb: target.logins.length > 0 ? [] : [s3Secret(fileIo)],
  };
}

/** The secret by which DuckDB reaches S3 with the credentials of its environment. */
function s3Secret(fileIo: Readonly<Properties>): string {
  const [, scheme, host] = /^(https?):\/\/([^/]+)/.exec(fileIo["s3.endpoint"] ?? "") ?? [];
  const options = [
    "TYPE s3",
    "PROVIDER credential_chain",
    ...(fileIo["s3.region"] ? [`REGION ${sqlText(fileIo["s3.region"])}`] : []),
    ...(host ? [`ENDPOINT ${sqlText(host)}`, `USE_SSL ${scheme === "https"}`] : []),
    ...(fileIo["s3.path-style-access"] === "true" ? ["URL_STYLE 'path'"] : []),
  ];
  return `CREATE SECRET files (${options.join(", ")});`;
}

function accessToGcs(target: Target): FileAccess {
  const java = accessOfJava(target, "gcp", "gcp.gcs.GCSFileIO");
  const { fileIo } = target;
  const names = ["gcs.project-id", "gcs.user-project", "gcs.service.host", "gcs.no-auth"];
  const python = ["gcs.project-id", "gcs.service.host", "gcs.oauth2.token", "gcs.oauth2.token-expires-at"];
  const trino = { "gcs.project-id": "gcs.project-id", "gcs.service.host": "gcs.endpoint" };
  return {
    ...java,
    spark: { ...java.spark, ...picked(fileIo, names) },
    pyiceberg: picked(fileIo, python),
    trino: { ...java.trino, "fs.native-gcs.enabled": "true", ...renamed(fileIo, trino) },
    duckdb: [],
  };
}

function accessToAzure(target: Target): FileAccess {
  const java = accessOfJava(target, "azure", "azure.adlsv2.ADLSFileIO");
  const { fileIo, location } = target;
  const connections = Object.keys(fileIo).filter((name) => name.startsWith("adls.connection-string."));
  const [, account, cloud] = /^[^/]*\/\/(?:[^@/]*@)?([^./]+)\.(?:dfs|blob)\.([^/]+)/.exec(location) ?? [];
  return {
    ...java,
    spark: { ...java.spark, ...picked(fileIo, connections) },
    pyiceberg: { ...(account ? { "adls.account-name": account } : {}), ...picked(fileIo, ["adls.account-host"]) },
    trino: {
      ...java.trino,
      "fs.native-azure.enabled": "true",
      "azure.auth-type": "DEFAULT",
      ...(cloud && cloud !== "core.windows.net" ? { "azure.endpoint": cloud } : {}),
    },
    duckdb: [],
  };
}

function picked(properties: Readonly<Properties>, names: readonly string[]): Properties {
  return renamed(properties, Object.fromEntries(names.map((name) => [name, name])));
}

/** Returns properties under other names; those that are missing are left out. */
function renamed(properties: Readonly<Properties>, names: Readonly<Properties>): Properties {
  const found = Object.entries(names).flatMap(([name, other]): [string, string][] => {
    const value = properties[name];
    return value ? [[other, value]] : [];
  });
  return Object.fromEntries(found);
}

/** The settings of a login under the names that Iceberg's Java library and PyIceberg share. */
function loginOf({ logins, uri, realm }: CatalogTarget): Properties {
  const named: Properties = realm ? { "header.Polaris-Realm": realm } : {};
  if (logins.includes("client-credentials")) {
    const credential = { credential: "CLIENT_ID:CLIENT_SECRET", scope: "PRINCIPAL_ROLE:ALL" };
    return { ...credential, "oauth2-server-uri": `${uri}/v1/oauth/tokens`, ...named };
  }
  return logins.includes("token") ? { token: "TOKEN", ...named } : named;
}

function spark(target: Target, files: FileAccess): Block {
  const catalog = `spark.sql.catalog.${CATALOG}`;
  const of = (settings: Properties) =>
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
export function pyicebergCatalog(target: CatalogTarget, files: Readonly<Properties> = {}): string[] {
  const settings = { type: "rest", uri: target.uri, warehouse: target.warehouse, ...loginOf(target), ...files };
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

function pyiceberg(target: Target, files: Properties): Block {
  const name = JSON.stringify([...target.namespace, target.table])
    .replace("[", "(")
    .replace(/\]$/, ")");
  const text = [...pyicebergCatalog(target, files), `table = catalog.load_table(${name})`];
  return { engine: "PyIceberg", where: "in Python", text: text.join("\n") };
}

function duckdb(target: Target, files: FileAccess): Block {
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
    ...files.duckdb,
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
