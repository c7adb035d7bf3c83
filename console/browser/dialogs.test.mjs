// The dialogs of the console: hostile names, the keyboard, axe, and pages of other sites that attack what dialogs send. In
// Chromium, at a real server; tests/console/test_changes.py starts this file.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { Api, MANAGEMENT, tablePath } from "./api.mjs";
import { dialogOf, historyOf, openLine, plainWithDrop, press, undoButton } from "./changing.mjs";
import { axe, close, faults, HOSTILE, open, PLAIN_URI, ROOT, settled, show, signedIn } from "./harness.mjs";

let api;
let page;
before(async () => {
  api = await Api.login(ROOT);
  page = await signedIn(ROOT);
});
after(close);

test("hostile names are text in every dialog", async () => {
  for (const name of HOSTILE) {
    await api.createDropped("sales", name);
    await show(page, historyOf("sales", name));
    await readAndCancel(undoButton(page), name);
    await show(page, `/c/arco/t/hostile/${encodeURIComponent(name)}`);
    await page.getByText("Protection against drops").click();
    await readAndCancel(page.getByRole("button", { name: /^Protect/ }), name);
    const roles = `${MANAGEMENT}/catalogs/arco/catalog-roles`;
    await api.must("POST", roles, { catalogRole: { name } });
    const grant = { type: "table", namespace: ["hostile"], tableName: name, privilege: "TABLE_DROP" };
    await api.must("PUT", `${roles}/${encodeURIComponent(name)}/grants`, { grant });
    await api.must("PUT", `${MANAGEMENT}/principal-roles/analyst/catalog-roles/arco`, { catalogRole: { name } });
    await show(page, `/c/arco/roles/${encodeURIComponent(name)}`);
    await readAndCancel(page.getByRole("button", { name: /^Revoke/ }), name, 2);
    await readAndCancel(page.getByRole("button", { name: /^Delete the role/ }), name);
    await page.getByLabel("Name of the principal role").fill(name);
    await readAndCancel(page.getByRole("button", { name: /^Give it/ }), name, 2);
    await show(page, `/c/arco/t/hostile/${encodeURIComponent(name)}/access`);
    await readAndCancel(page.getByRole("button", { name: /^Revoke: TABLE_DROP on table/ }).first(), name, 2);
    await show(page, "/principals");
    for (const [label, button] of [
      ["Name of the principal", "Create a principal"],
      ["Name of the principal role", "Create a principal role"],
    ]) {
      await page.getByLabel(label, { exact: true }).fill(name);
      await readAndCancel(page.getByRole("button", { name: button, exact: true }), name);
    }
    await show(page, "/c/arco/n/sales/policies/compact");
    await page.getByLabel("Namespace, levels by dots").fill(name);
    await readAndCancel(page.getByRole("button", { name: "Attach", exact: true }), name);
  }
  assert.equal(await page.locator("dialog script, main script, main img").count(), 0);
});

/** Opens a dialog, checks that it has a name as text so many times and fits, and cancels it. */
async function readAndCancel(button, name, times = 1) {
  const dialog = await press(page, button);
  const summary = await dialog.locator("#change-summary").evaluate((each) => each.textContent);
  assert.ok(summary.split(name).length > times, summary);
  const beyond = await dialog.evaluate((each) => each.scrollWidth - each.clientWidth);
  assert.ok(beyond <= 0, `${beyond} pixels wider than the dialog`);
  await dialog.getByRole("button", { name: "Cancel" }).click();
}

test("a dialog holds the focus, is left by Escape, and gives the focus back", async () => {
  await api.createDropped("sales", "focus");
  await show(page, historyOf("sales", "focus"));
  const button = undoButton(page);
  await button.focus();
  await page.keyboard.press("Enter");
  const dialog = dialogOf(page);
  await dialog.waitFor();
  assert.equal(await dialog.getAttribute("aria-labelledby"), "change-title");
  const seen = [];
  for (let step = 0; step < 6; step++) {
    seen.push(
      await page.evaluate(() => [document.activeElement.tagName, Boolean(document.activeElement.closest("dialog"))]),
    );
    await page.keyboard.press("Tab");
  }
  assert.ok(
    seen.every(([tag, inside]) => inside || tag === "BODY"),
    JSON.stringify(seen),
  );
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  assert.match(await page.locator(":focus").getAttribute("aria-label"), /^Undo the drop/);
  assert.equal((await api.send("GET", tablePath("sales", "focus"))).status, 404);
});

test("the keyboard alone changes something, and the focus stays on the page", async () => {
  await show(page, historyOf("sales", "focus"));
  await undoButton(page).focus();
  await page.keyboard.press("Enter");
  await dialogOf(page).waitFor();
  await page.keyboard.press("Tab");
  assert.equal(await page.locator(":focus").innerText(), "Undo the drop");
  await page.keyboard.press("Enter");
  await page.getByText("undone", { exact: true }).waitFor();
  await page.locator("h1:focus").waitFor();
  assert.equal((await api.send("GET", tablePath("sales", "focus"))).status, 200);
});

/** Chooses something of a list of a form. */
async function choose(at, label, value) {
  await at.getByRole("combobox", { name: label }).selectOption(value);
}

/** Opens the form that grants a privilege on one thing, and fills it in. */
async function grantHere(at) {
  await at.getByText("Grant a privilege here").click();
  await choose(at, "To the catalog role", "reader");
  await choose(at, "Privilege", "TABLE_LIST");
}

/** Buttons that ask, each with its page and with what is filled in before. */
const ASKING = [
  [historyOf("sales", "asked"), /^Undo the drop/],
  ["/c/arco/t/sales/orders", /^Protect/, (at) => at.getByText("Protection against drops").click()],
  ["/c/arco/n/sales/policies/compact", "Attach"],
  ["/c/arco/roles", "Create a catalog role", (at) => at.getByLabel("Name of the catalog role").fill("x")],
  ["/c/arco/roles/reader", "Grant a privilege", (at) => choose(at, "Privilege", "TABLE_LIST")],
  ["/c/arco/roles/reader", /^Revoke/],
  ["/c/arco/roles/reader", /^Take away/],
  ["/c/arco/roles/reader", /^Delete the role/],
  ["/c/arco/t/sales/orders/access", "Grant a privilege", grantHere],
  ["/principals", "Create a principal", (at) => at.getByLabel("Name of the principal", { exact: true }).fill("x")],
  ["/principals", /^Rotate your credentials/],
  ["/principals", /^Reset the credentials/, (at) => openLine(at, "Principals", "ada")],
  ["/principals", /^Delete: principal ada/, (at) => openLine(at, "Principals", "ada")],
  ["/principals", "Give the role", (at) => openLine(at, "Principals", "ada")],
  ["/principals", /^Delete: principal role/, (at) => openLine(at, "Principal roles", "analyst")],
];

test("axe finds nothing on any dialog, wide and light", async () => {
  assert.deepEqual(await findings(page), []);
});

test("axe finds nothing on any dialog, narrow and dark, and none is wider than a phone", async () => {
  const phone = await signedIn(ROOT, { viewport: { width: 360, height: 740 }, colorScheme: "dark" });
  assert.deepEqual(await findings(phone), []);
});

/** What is wrong with each dialog, and with the page around it: what axe finds, and a width beyond the window. */
async function findings(at) {
  const found = [];
  await api.createDropped("sales", "asked");
  await api.send("POST", `${MANAGEMENT}/catalogs/arco/catalog-roles`, { catalogRole: { name: "w".repeat(250) } });
  for (const [hash, name, prepare] of ASKING) {
    await show(at, "/nowhere");
    await show(at, hash);
    await prepare?.(at);
    await settled(at);
    found.push(...(await axe(at)).map((each) => `${hash}: ${each}`));
    const dialog = await press(at, at.getByRole("main").getByRole("button", { name }).first());
    found.push(...(await axe(at)).map((each) => `${hash} ${name}: ${each}`));
    const beyond = await at.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    if (beyond > 0) found.push(`${hash} ${name}: ${beyond} pixels wider than the window`);
    await dialog.getByRole("button", { name: "Cancel" }).click();
  }
  return found;
}

test("pages of another site change nothing: by forms, by fetch without CORS or with it, and by beacons", async () => {
  const { plain, prefix } = await plainWithDrop("attacked");
  const before = await plain.must("GET", `v1/${prefix}/history`);
  const site = createServer((_, response) => {
    response.setHeader("content-type", "text/html");
    response.end("<title>elsewhere</title>");
  }).listen(0, "127.0.0.1");
  await once(site, "listening");
  const at = await open();
  const answers = [];
  at.on("response", (answer) => {
    if (answer.url().startsWith(PLAIN_URI) && answer.request().method() !== "GET") answers.push(answer.status());
  });
  let tries = 0;
  for (const path of attackedPaths(prefix)) {
    for (const type of ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"]) {
      await at.goto(`http://localhost:${site.address().port}/`);
      await at.evaluate(sendForm, { target: `${PLAIN_URI}/${path}`, type });
      await at.waitForURL(`${PLAIN_URI}/**`);
      tries++;
    }
    await at.goto(`http://localhost:${site.address().port}/`);
    tries += await at.evaluate(sendByScripts, `${PLAIN_URI}/${path}`);
  }
  site.close();
  assert.ok(answers.length >= 3 * attackedPaths(prefix).length);
  assert.deepEqual([...new Set(answers)], [403]);
  assert.deepEqual(await plain.must("GET", `v1/${prefix}/history`), before);
  assert.equal((await plain.send("GET", `v1/${prefix}/namespaces/attacked/tables/t`)).status, 404);
  assert.ok(tries >= 90, `${tries}`);
});

/** What the console sends that changes something, on a server without logins. */
function attackedPaths(prefix) {
  const namespace = `v1/${prefix}/namespaces/attacked`;
  return [
    `${namespace}/tables/t/undrop`,
    `v1/${prefix}/namespaces`,
    `${namespace}/governance`,
    `${namespace}/tables/t/governance`,
    `v1/${prefix}/tasks/00000000-0000-0000-0000-000000000000/retry`,
    `polaris/${namespace}/policies/p/mappings`,
    "api/management/v1/principals",
    "api/management/v1/principals/root/rotate",
    "api/management/v1/catalogs/arco/catalog-roles/reader/grants",
  ];
}

/** Sends a form, whose one field makes a JSON object of the body as text. */
function sendForm({ target, type }) {
  const form = document.createElement("form");
  form.method = "post";
  form.action = target;
  form.enctype = type;
  const field = document.createElement("input");
  field.name = '{"namespace": ["stolen"], "x": "';
  field.value = '"}';
  form.append(field);
  document.body.append(form);
  form.submit();
}

/** Sends requests by all ways that a page has, and returns their number. */
async function sendByScripts(target) {
  const body = '{"namespace": ["stolen"]}';
  const ways = [
    { mode: "no-cors", method: "POST" },
    { mode: "no-cors", method: "POST", body, headers: { "content-type": "text/plain" } },
    { mode: "no-cors", method: "POST", body: new Blob([body], { type: "application/json" }) },
    { mode: "cors", method: "POST", body, headers: { "content-type": "text/plain" } },
    { mode: "cors", method: "POST", body, headers: { "content-type": "application/json" } },
    { mode: "cors", method: "PUT", body, headers: { "content-type": "application/json" } },
    { mode: "cors", method: "DELETE" },
  ];
  for (const way of ways) await fetch(target, { credentials: "include", ...way }).catch(() => null);
  navigator.sendBeacon(target, body);
  return ways.length + 1;
}

test("no other site shows the console in a frame, in which a click could be stolen", async () => {
  const site = createServer((_, response) => {
    response.setHeader("content-type", "text/html");
    response.end(`<iframe src="${PLAIN_URI}/ui/"></iframe><object data="${PLAIN_URI}/ui/"></object>`);
  }).listen(0, "127.0.0.1");
  await once(site, "listening");
  const at = await open();
  await at.goto(`http://localhost:${site.address().port}/`);
  await at.waitForLoadState("networkidle");
  for (const frame of at.frames().slice(1)) {
    assert.equal(await frame.locator("#app").count(), 0, frame.url());
  }
  site.close();
  faults.length = 0; // the reports of what the policy refused
});

test("no page caused an error or a report of the policy", () => {
  assert.deepEqual(faults, []);
});
