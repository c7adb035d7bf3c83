// Ten questions that people ask about a catalog, each answered from the first page in at most four clicks, by what the
// page shows under its roles and labels, and compared with what the API answers. tests/console/test_questions.py starts
// this file at a catalog drawn from a seed.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { axe, close, faults, ADA as READER, ROOT, settled, signedIn, URI } from "./harness.mjs";

const { namespace, table, dropped, owed, version } = JSON.parse(process.env.ARCO_QUESTIONS);
const TABLE = `v1/arco/namespaces/${namespace}/tables/${table}`;
const MAX_CLICKS = 4;

let root;
let reader;
before(async () => {
  root = await signedIn(ROOT);
  reader = await signedIn(READER);
});
after(close);

test("who dropped this table?", async () => {
  const visit = await Visit.begin(root);
  await visit.click(visit.main.getByRole("link", { name: "All changes" }));
  await visit.main.getByLabel("Namespace").fill(namespace);
  await visit.main.getByLabel("Table or view").fill(dropped);
  await visit.click(visit.main.getByRole("button", { name: "Filter" }));

  const { operations } = await api(`v1/arco/history?namespace=${namespace}&table=${dropped}`);
  const { principal, "at-ms": ms } = operations.find(({ kind }) => kind === "drop-table");
  const line = visit.main.getByRole("listitem").filter({ hasText: "drop table" });
  assert.match(await line.innerText(), new RegExp(`drop table ${namespace}\\.${dropped} by ${principal} `));
  assert.equal(await line.getByRole("time").first().getAttribute("datetime"), new Date(ms).toISOString());
});

test("what did version 12 change?", async () => {
  const visit = await Visit.begin(root);
  await visit.openTable();
  await visit.tab("Timeline");
  const entry = visit.main.getByRole("listitem").filter({ has: visit.page.getByRole("link", { name: "Version 12" }) });
  await visit.click(entry.getByRole("link", { name: "What changed" }));

  const { versions } = await api(`${TABLE}/timeline`);
  const [before, after] = [11, 12].map((number) => versions.find((each) => each.version === number));
  const found = await api(`${TABLE}/compare?from=${before.id}&to=${after.id}`);
  assert.match(await visit.main.innerText(), /from version 11,.*to version 12,/is);
  assert.deepEqual(await visit.linesOf("Properties"), [
    ...Object.entries(found.properties.added).map(([name, value]) => `added ${name} = ${value}`),
    ...Object.entries(found.properties.dropped).map(([name, value]) => `dropped ${name} = ${value}`),
    ...Object.entries(found.properties.changed).map(([name, { from, to }]) => `changed ${name}: ${from} → ${to}`),
  ]);
  assert.deepEqual(
    await visit.linesOf("Columns"),
    found.schema.added.map(({ id, name, type, doc }) => `added ${name} ${type} id ${id} ${doc}`),
  );
  const sizes = Object.entries(found.size).filter(([, { from, to }]) => from !== to);
  const shown = await visit.rowsOf("Size");
  assert.deepEqual(
    shown.map(([name]) => name),
    sizes.map(([name]) => name.replaceAll("-", " ")),
  );
  const counted = sizes.flatMap(([name, { from, to }]) => (name === "bytes" ? [] : [[`${from}`, `${to}`]]));
  assert.deepEqual(
    shown.flatMap(([name, from, to]) => (name === "bytes" ? [] : [[from, to]])),
    counted,
  );
});

test("who can read it?", async () => {
  await checkHolders("TABLE_READ_DATA");
});

test("which job wrote it, from what?", async () => {
  const visit = await Visit.begin(root);
  await visit.openTable();
  await visit.tab("Lineage");

  const { nodes, edges } = await api(`${TABLE}/lineage`);
  const nameOf = (id) => nodes.filter((each) => each.id === id).map((each) => [...each.namespace, each.name].join("."));
  assert.equal(edges.length, 1);
  assert.deepEqual(
    (await visit.rowsOf("Runs")).map((row) => row.slice(0, 5)),
    edges.map((edge) => [
      ...nameOf(edge.from),
      ...nameOf(edge.to),
      edge.confidence === "Verified" ? "verified" : "declared",
      edge.job.name,
      edge.principal,
    ]),
  );
});

test("is it healthy?", async () => {
  const visit = await Visit.begin(root);
  await visit.openTable();
  await visit.tab("Health");

  const governance = await api(`${TABLE}/governance`);
  const { versions } = await api(`${TABLE}/timeline?pageSize=1`);
  const { metadata } = await api(TABLE);
  const current = metadata.snapshots.at(-1).summary;
  const rows = Object.fromEntries((await visit.rowsOf("Health")).map(([about, ...rest]) => [about, rest]));
  const quality = (governance.governance ?? governance)["arco.quality"];
  assert.deepEqual(rows.Quality, quality ? ["well", quality] : ["not known", "not declared"]);
  assert.equal(versions[0].receipt, "committed");
  assert.deepEqual(rows["Last write"], ["well", `version ${versions[0].version}, its receipt is committed`]);
  const [state, files] = rows["Data files"];
  const [, number] = files.match(/(\d+) files?,/);
  assert.equal(number, current["total-data-files"]);
  assert.equal(state, Number(number) >= 5 ? "look at it" : "well");
  assert.deepEqual(rows["Delete files"], ["well", "none"]);
  const waiting = (await api("v1/arco/tasks?unfinished=true")).tasks.filter((each) => each.name === table);
  assert.deepEqual(rows["Waiting work"], waiting.length === 0 ? ["well", "none"] : []);
  const command = visit.main.getByRole("region", { name: "command that looks at the table" });
  assert.equal(await command.innerText(), `arco info ${namespace}.${table}`);
  assert.deepEqual(await axe(visit.page), []);
});

test("what is owed?", async () => {
  const visit = await Visit.begin(root);
  await visit.click(visit.main.getByRole("link", { name: "What is owed" }));

  const { tasks } = await api("v1/arco/tasks?unfinished=true");
  assert.deepEqual(
    tasks.map((each) => each.name),
    [owed],
  );
  const rows = await visit.rowsOf("Tasks that have not ended");
  assert.deepEqual(
    rows.map(([name, status]) => [name, status]),
    tasks.map((each) => [
      `${each.id.slice(0, 8)} ${each.type.toLowerCase().replaceAll("_", " ")} ${namespace}.${owed}`,
      each.status.toLowerCase().replaceAll("_", " "),
    ]),
  );
  const due = visit.tableOf("Tasks that have not ended").getByRole("row").last().getByRole("time").last();
  assert.equal(await due.getAttribute("datetime"), new Date(tasks[0]["next-run-at-ms"]).toISOString());
  await visit.main.getByText("No task failed.").waitFor();
});

test("how do I connect Trino?", async () => {
  const visit = await Visit.begin(root);
  await visit.openTable();
  await visit.tab("Connect");

  const text = await visit.main.getByRole("region", { name: "settings for Trino" }).innerText();
  const settings = Object.fromEntries(text.split("\n").map((line) => line.split(/=(.*)/s).slice(0, 2)));
  const catalog = "iceberg.rest-catalog";
  const uri = settings[`${catalog}.uri`];
  const login = await root.request.post(settings[`${catalog}.oauth2.server-uri`], {
    form: {
      grant_type: "client_credentials",
      client_id: ROOT[0],
      client_secret: ROOT[1],
      scope: settings[`${catalog}.oauth2.scope`],
    },
  });
  const { access_token: token } = await login.json();
  const config = await root.request.get(`${uri}/v1/config?warehouse=${settings[`${catalog}.warehouse`]}`, {
    headers: { authorization: `Bearer ${token}` },
  });
  assert.equal((await config.json()).overrides.prefix, "arco");
  assert.equal(settings[`${catalog}.oauth2.credential`], "CLIENT_ID:CLIENT_SECRET");
});

test("what was it a week ago?", async () => {
  const { versions } = await api(`${TABLE}/timeline`);
  const ms = versions.find((each) => each.version === version)["at-ms"];
  const visit = await Visit.begin(root);
  await visit.openTable();
  await visit.tab("Timeline");
  await visit.main.getByLabel("What was it at").fill(localInput(ms));
  await visit.click(visit.main.getByRole("button", { name: "Show" }));

  const then = (await api(`${TABLE}/timeline?at=${ms}`)).versions;
  const links = visit.main.getByRole("link", { name: /^Version \d+$/ });
  assert.deepEqual(
    await links.allInnerTexts(),
    then.map((each) => `Version ${each.version}`),
  );
  assert.ok(then[0].version < versions[0].version);
  assert.equal(
    await visit.main.getByRole("time").first().getAttribute("datetime"),
    new Date(then[0]["at-ms"]).toISOString(),
  );
});

test("why was I refused?", async () => {
  const refused = await send("DELETE", TABLE, READER);
  assert.equal(refused.status(), 403);
  const { message } = (await refused.json()).error;
  const visit = await Visit.begin(reader);
  await visit.main.getByLabel("Open a catalog by its name").fill("arco");
  await visit.click(visit.main.getByRole("button", { name: "Open" }));
  await visit.openTable();
  await visit.tab("Access");

  const rows = Object.fromEntries((await visit.rowsOf("What you may do")).map(([to, ...rest]) => [to, rest]));
  assert.deepEqual(rows.TABLE_DROP, ["no", message]);
  assert.equal(rows.TABLE_READ_DATA[0], "yes");
  const denied = await send("GET", `${TABLE}/access`, READER);
  assert.ok((await visit.main.getByRole("alert").innerText()).includes((await denied.json()).error.message));
});

test("who may drop it?", async () => {
  await checkHolders("TABLE_DROP");
});

test("one is named as the catalog knows one", async () => {
  for (const [page, credentials] of [
    [root, ROOT],
    [reader, READER],
  ]) {
    const checks = [{ type: "catalog", privilege: "CATALOG_DROP" }];
    const answer = await send("POST", "api/management/v1/catalogs/arco/check", credentials, { checks });
    const [{ principal }] = (await answer.json()).results;
    assert.equal(await page.getByRole("group", { name: "Signed in as" }).innerText(), principal);
  }
});

test("no page caused an error or a report of the policy", () => {
  assert.deepEqual(faults, []);
});

/** Someone who looks for an answer, from the first page on, and who may click a few times. Enter counts as a click. */
class Visit {
  clicks = 0;

  constructor(page) {
    this.page = page;
    this.main = page.getByRole("main");
  }

  static async begin(page) {
    await page.goto(`${URI}/ui/?${Math.random()}#/`);
    await settled(page);
    return new Visit(page);
  }

  count() {
    this.clicks++;
    assert.ok(this.clicks <= MAX_CLICKS, `more than ${MAX_CLICKS} clicks`);
  }

  async click(locator) {
    this.count();
    await locator.click();
    await settled(this.page);
  }

  /** Finds the table by its name. */
  async openTable() {
    this.count();
    const box = this.page.getByRole("searchbox").first();
    await box.fill(table);
    await box.press("Enter");
    await this.click(this.main.getByRole("link", { name: `${namespace}.${table}`, exact: true }));
    await this.page.getByRole("heading", { name: `Table ${table}` }).waitFor();
  }

  async tab(name) {
    const tabs = this.page.getByRole("navigation", { name: "Parts of the table" });
    await this.click(tabs.getByRole("link", { name, exact: true }));
  }

  tableOf(label) {
    return this.main.getByRole("region", { name: `Table: ${label}`, exact: true });
  }

  /** The cells of each row of a table, without its heading; none if there is no such table. */
  async rowsOf(label) {
    const rows = (await this.tableOf(label).getByRole("row").all()).slice(1);
    return Promise.all(rows.map((row) => row.getByRole("cell").or(row.getByRole("rowheader")).allInnerTexts()));
  }

  /** The lines of a list in a part of the page; none if there is no such part. */
  async linesOf(part) {
    const lines = await this.main
      .getByRole("region", { name: part, exact: true })
      .getByRole("listitem")
      .allInnerTexts();
    return lines.map((line) => line.replaceAll(/\s+/g, " ").trim());
  }
}

/** Compares who has a privilege on the table by its page, which is three clicks away, with the API. */
async function checkHolders(privilege) {
  const visit = await Visit.begin(root);
  await visit.openTable();
  await visit.tab("Access");
  const { access } = await api(`${TABLE}/access`);
  const expected = access.filter((each) => each.privileges.some((held) => held.privilege === privilege));
  assert.ok(expected.length > 0);
  const found = [];
  let holder;
  for (const row of await visit.rowsOf("Access")) {
    if (row.length === 5) holder = row.slice(0, 2); // those below it, of this holder too, have three cells
    if (row.at(-3) === privilege) found.push(holder);
  }
  assert.deepEqual(
    found,
    expected.map((each) => [each["principal-role"], each.principal ?? "none yet"]),
  );
}

const tokens = new Map();

async function send(method, path, [id, secret], data) {
  if (!tokens.has(id)) {
    const form = {
      grant_type: "client_credentials",
      client_id: id,
      client_secret: secret,
      scope: "PRINCIPAL_ROLE:ALL",
    };
    const login = await root.request.post(`${URI}/v1/oauth/tokens`, { form });
    tokens.set(id, (await login.json()).access_token);
  }
  return root.request.fetch(`${URI}/${path}`, {
    method,
    headers: { authorization: `Bearer ${tokens.get(id)}` },
    ...(data ? { data } : {}),
  });
}

/** What the API answers to root. */
async function api(path) {
  const answer = await send("GET", path, ROOT);
  assert.equal(answer.status(), 200, path);
  return answer.json();
}

/** A time as a field for local times holds it: as short as possible. */
function localInput(ms) {
  const local = new Date(ms - new Date(ms).getTimezoneOffset() * 60_000).toISOString().slice(0, 23);
  const short = local.replace(/\.(\d*?)0+$/, ".$1").replace(/\.$/, "");
  return short.length === "2026-11-29T11:00:00".length ? short.replace(/:00$/, "") : short;
}
