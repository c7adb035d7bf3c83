// What people change from the console, in Chromium, at a real server: each change is compared with what the API then
// answers. tests/console/test_changes.py starts this file.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Api, getToken, MANAGEMENT, tablePath } from "./api.mjs";
import { changesSent, confirm, dialogOf, historyOf, openLine, press, undoButton } from "./changing.mjs";
import { axe, close, faults, ROOT, settled, show, signedIn } from "./harness.mjs";

const FAILED = process.env.ARCO_FAILED_TASK;
const UUID7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

let api;
let page;
before(async () => {
  api = await Api.login(ROOT);
  page = await signedIn(ROOT);
});
after(close);

test("a drop is undone from the history, by one request with a key", async () => {
  await api.createDropped("sales", "back");
  await show(page, historyOf("sales", "back"));
  const sent = changesSent(page);
  const dialog = await press(page, undoButton(page));
  assert.equal(await dialog.getByRole("heading").innerText(), "Undo the drop");
  assert.match(await dialog.innerText(), /The table sales\.back comes back as it was when root dropped it\./);
  await confirm(page, "Undo the drop");

  assert.match(await page.getByRole("status").innerText(), /sales\.back is back/);
  await page.getByText("undone", { exact: true }).waitFor();
  assert.equal((await api.send("GET", tablePath("sales", "back"))).status, 200);
  const kinds = (await api.history("?namespace=sales&table=back")).map(({ kind, principal }) => `${kind} ${principal}`);
  assert.deepEqual(kinds, ["undrop root", "drop-table root", "create-table root"]);
  assert.equal(sent.length, 1);
  assert.match(sent[0].key, UUID7);
});

test("a drop with purge is undone, and its purge is cancelled", async () => {
  await api.createTable("sales", "purged");
  await api.must("DELETE", `${tablePath("sales", "purged")}?purgeRequested=true`);
  await show(page, historyOf("sales", "purged"));
  const dialog = await press(page, undoButton(page));
  assert.match(await dialog.innerText(), /and the purge of its files is cancelled/);
  await confirm(page, "Undo the drop");
  assert.equal((await api.send("GET", tablePath("sales", "purged"))).status, 200);
});

test("the page of what was dropped undoes the drop, and then shows it", async () => {
  await api.createDropped("sales", "linked");
  await show(page, "/c/arco/t/sales/linked");
  await press(page, undoButton(page));
  await confirm(page, "Undo the drop");
  await page.getByRole("heading", { name: "Columns" }).waitFor();
});

test("a view comes back, too", async () => {
  const view = "v1/arco/namespaces/sales/views/recent_orders";
  await api.must("DELETE", view);
  await show(page, historyOf("sales", "recent_orders"));
  const dialog = await press(page, undoButton(page));
  assert.match(await dialog.innerText(), /The view sales\.recent_orders comes back/);
  await confirm(page, "Undo the drop");
  assert.equal((await api.send("GET", view)).status, 200);
});

test("a drop whose namespace is gone says so, and is undone once that is created again", async () => {
  await api.must("POST", "v1/arco/namespaces", { namespace: ["gone"] });
  await api.createDropped("gone", "t");
  await api.must("DELETE", "v1/arco/namespaces/gone");
  await show(page, historyOf("gone", "t"));
  await page.getByText("can't be undone: its namespace is gone").waitFor();
  assert.equal(await undoButton(page).count(), 0);
  const refused = await api.send("POST", `${tablePath("gone", "t")}/undrop`);
  assert.equal(refused.status, 404);
  assert.match(refused.json.error.message, /gone\.t cannot be restored: its namespace gone does not exist/);

  await press(page, page.getByRole("button", { name: "Create the namespace: gone" }));
  await confirm(page, "Create the namespace");
  await press(page, undoButton(page));
  await confirm(page, "Undo the drop");
  assert.equal((await api.send("GET", tablePath("gone", "t"))).status, 200);
});

test("a name that was taken meanwhile is refused in the words of the API", async () => {
  await api.createDropped("sales", "taken");
  await show(page, historyOf("sales", "taken"));
  await press(page, undoButton(page));
  await api.createTable("sales", "taken");
  const dialog = dialogOf(page);
  await dialog.getByRole("button", { name: "Undo the drop" }).click();
  const { json } = await api.send("POST", `${tablePath("sales", "taken")}/undrop`);
  const alert = await dialog.getByRole("alert").innerText();
  assert.ok(alert.includes(json.error.message), alert);
  assert.match(alert, /409 · AlreadyExistsException/);
  await dialog.getByRole("button", { name: "Close" }).click();
  await page.getByText("something else has the name now").first().waitFor();
});

test("a failed task is submitted again", async () => {
  await show(page, `/c/arco/tasks/${FAILED}`);
  const dialog = await press(page, page.getByRole("button", { name: "Try again: sales.scrap" }));
  assert.match(await dialog.innerText(), /The failed task “table purge” for sales\.scrap is submitted again/);
  await confirm(page, "Try again");
  const task = await api.must("GET", `v1/arco/tasks/${FAILED}`);
  assert.equal(task.version, 3);
  assert.notEqual(task.status, "FAILURE");
  assert.equal(await page.getByRole("button", { name: /^Try again/ }).count(), 0);
});

test("a principal is created, its secret is shown once, and it signs in with it", async () => {
  await show(page, "/principals");
  await page.getByLabel("Name of the principal", { exact: true }).fill("carla");
  const dialog = await press(page, page.getByRole("button", { name: "Create a principal", exact: true }));
  assert.match(await dialog.innerText(), /The principal carla is created without roles and its secret is shown once/);
  await dialog.getByRole("button", { name: "Create", exact: true }).click();
  const secret = await dialog.getByRole("region", { name: "client secret" }).innerText();
  const id = await dialog.getByRole("region", { name: "client id" }).innerText();
  assert.deepEqual(await axe(page), []);
  assert.equal(await page.locator(":focus").innerText(), "Close");
  const beyond = await dialog.evaluate((each) => each.scrollWidth - each.clientWidth);
  assert.ok(beyond <= 0, `${beyond} pixels wider than the dialog`);
  assert.equal((await getToken(id, secret)).status, 200);
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await dialog.getByRole("button", { name: "Copy client secret" }).click();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), secret);
  await dialog.getByRole("button", { name: "Close" }).click();
  await dialog.waitFor({ state: "detached" });

  await assertForgotten(page, secret);
  await page.getByRole("region", { name: "Principals", exact: true }).getByText("carla").waitFor();
  assert.equal(await page.getByLabel("Name of the principal", { exact: true }).inputValue(), "");
  const { principals } = await api.must("GET", `${MANAGEMENT}/principals`);
  assert.ok(principals.some(({ name, clientId }) => name === "carla" && clientId === id));
});

/** Checks that a secret is nowhere in a page or what it keeps. */
async function assertForgotten(at, secret) {
  await at.locator("dialog").waitFor({ state: "detached" });
  const kept = await at.evaluate(() =>
    JSON.stringify([
      document.documentElement.outerHTML,
      { ...sessionStorage },
      { ...localStorage },
      document.cookie,
      location.href,
      history.state,
    ]),
  );
  assert.ok(!kept.includes(secret));
}

test("a secret is gone when one leaves the page", async () => {
  await show(page, "/c/arco");
  await show(page, "/principals");
  const line = await openLine(page, "Principals", "carla");
  const dialog = await press(page, line.getByRole("button", { name: "Reset the credentials: carla" }));
  assert.match(await dialog.innerText(), /all its secrets before become invalid at once/);
  await dialog.getByRole("button", { name: "Reset", exact: true }).click();
  const secret = await dialog.getByRole("region", { name: "client secret" }).innerText();
  await page.goBack();
  await dialog.waitFor({ state: "detached" });
  await page.getByRole("heading", { name: "Namespaces" }).waitFor();
  await assertForgotten(page, secret);
  await page.goForward();
  await settled(page);
  await assertForgotten(page, secret);
});

test("one rotates one's own credentials, and the present ones stay valid", async () => {
  const [id, before] = await api.createPrincipal("dora");
  const dora = await signedIn([id, before]);
  await show(dora, "/principals");
  assert.match(await dora.getByRole("alert").first().innerText(), /403/);
  const dialog = await press(dora, dora.getByRole("button", { name: "Rotate your credentials: dora" }));
  await dialog.getByRole("button", { name: "Rotate", exact: true }).click();
  const after = await dialog.getByRole("region", { name: "client secret" }).innerText();
  for (const secret of [before, after]) assert.equal((await getToken(id, secret)).status, 200);
});

test("principal roles are created, given, taken away and deleted", async () => {
  await show(page, "/principals");
  await page.getByLabel("Name of the principal role").fill("night shift");
  await press(page, page.getByRole("button", { name: "Create a principal role" }));
  await confirm(page, "Create");
  const rolesOf = async () =>
    (await api.must("GET", `${MANAGEMENT}/principals/carla/principal-roles`)).roles.map(({ name }) => name);
  const carla = await openLine(page, "Principals", "carla");
  await carla.getByLabel("Principal role for carla").selectOption("night shift");
  const giving = await press(page, carla.getByRole("button", { name: "Give the role" }));
  assert.match(await giving.innerText(), /The principal carla gets the principal role night shift/);
  await confirm(page, "Give the role");
  assert.deepEqual(await rolesOf(), ["night shift"]);
  await press(page, carla.getByRole("button", { name: "Take away: night shift" }));
  await confirm(page, "Take away");
  assert.deepEqual(await rolesOf(), []);

  const role = await openLine(page, "Principal roles", "night shift");
  await press(page, role.getByRole("button", { name: "Delete: principal role night shift" }));
  await confirm(page, "Delete");
  const { roles } = await api.must("GET", `${MANAGEMENT}/principal-roles`);
  assert.ok(!roles.some(({ name }) => name === "night shift"));
  await press(page, carla.getByRole("button", { name: "Delete: principal carla" }));
  await confirm(page, "Delete");
  assert.equal((await api.send("GET", `${MANAGEMENT}/principals/carla`)).status, 404);
});

const SECURABLES = [
  { type: "catalog", privilege: "CATALOG_READ_PROPERTIES" },
  { type: "namespace", namespace: ["sales"], privilege: "TABLE_CREATE" },
  { type: "table", namespace: ["sales"], tableName: "orders", privilege: "TABLE_READ_DATA" },
  { type: "view", namespace: ["sales"], viewName: "recent_orders", privilege: "VIEW_LIST" },
];

test("a catalog role is created, gets grants on all that has them, loses them, and is deleted", async () => {
  await show(page, "/c/arco/roles");
  await page.getByLabel("Name of the catalog role").fill("clerk");
  await press(page, page.getByRole("button", { name: "Create a catalog role" }));
  await confirm(page, "Create");
  await page.getByRole("link", { name: "clerk" }).click();
  await page.getByText("No grants.").waitFor();
  for (const { type, namespace, privilege, ...name } of SECURABLES) {
    await page.getByRole("combobox", { name: "On", exact: true }).selectOption(type);
    if (namespace) await page.getByLabel("Namespace, levels by dots").fill(namespace.join("."));
    for (const given of Object.values(name)) await page.getByLabel(`Name of the ${type}`).fill(given);
    await page.getByRole("combobox", { name: "Privilege" }).selectOption(privilege);
    await press(page, page.getByRole("button", { name: "Grant a privilege" }));
    await confirm(page, "Grant");
  }
  const byType = (grants) => Object.fromEntries(grants.map((grant) => [grant.type, grant]));
  assert.deepEqual(byType(await api.grantsOf("clerk")), byType(SECURABLES));
  assert.equal((await api.history()).filter(({ kind }) => kind === "add-grant").length >= SECURABLES.length, true);

  await page.getByLabel("Name of the principal role").fill("analyst");
  await press(page, page.getByRole("button", { name: "Give it to a principal role" }));
  await confirm(page, "Give the role");
  const given = `${MANAGEMENT}/catalogs/arco/catalog-roles/clerk/principal-roles`;
  assert.deepEqual(
    (await api.must("GET", given)).roles.map(({ name }) => name),
    ["analyst"],
  );
  await press(page, page.getByRole("button", { name: "Take away: analyst" }));
  await confirm(page, "Take away");
  assert.deepEqual((await api.must("GET", given)).roles, []);

  for (let left = SECURABLES.length; left > 0; left--) {
    await press(page, page.getByRole("button", { name: /^Revoke/ }).first());
    await confirm(page, "Revoke");
    assert.equal((await api.grantsOf("clerk")).length, left - 1);
  }
  await press(page, page.getByRole("button", { name: "Delete the role: clerk" }));
  await confirm(page, "Delete");
  assert.equal((await api.send("GET", `${MANAGEMENT}/catalogs/arco/catalog-roles/clerk`)).status, 404);
});

test("a privilege on a table is granted and revoked where its access is shown", async () => {
  await show(page, "/c/arco/t/sales/orders/access");
  await page.getByText("Grant a privilege here").click();
  const grants = page.getByRole("button", { name: "Grant a privilege", exact: true });
  assert.equal(await page.getByLabel("To the catalog role").inputValue(), "");
  assert.equal(await page.getByRole("combobox", { name: "Privilege" }).inputValue(), "");
  assert.ok(await grants.isDisabled());
  await page.getByLabel("To the catalog role").selectOption("reader");
  assert.ok(await grants.isDisabled());
  await page.getByRole("combobox", { name: "Privilege" }).selectOption("TABLE_DROP");
  const dialog = await press(page, grants);
  assert.match(
    await dialog.innerText(),
    /The catalog role reader gets the privilege TABLE_DROP on table sales\.orders/,
  );
  await confirm(page, "Grant");
  const drops = async () => (await api.grantsOf("reader")).filter(({ privilege }) => privilege === "TABLE_DROP");
  assert.deepEqual(await drops(), [
    { type: "table", namespace: ["sales"], tableName: "orders", privilege: "TABLE_DROP" },
  ]);
  const revoke = page.getByRole("button", { name: "Revoke: TABLE_DROP on table sales.orders from reader" });
  await press(page, revoke.first());
  await confirm(page, "Revoke");
  assert.deepEqual(await drops(), []);
  await revoke.first().waitFor({ state: "detached" });
});

test("a grant on what contains a table is not revoked at the table, but on the page of its role", async () => {
  const grants = `${MANAGEMENT}/catalogs/arco/catalog-roles/reader/grants`;
  await api.must("PUT", grants, { grant: { type: "catalog", privilege: "TABLE_LIST" } });
  await show(page, "/c/arco/t/sales/orders"); // the page may be at Access already, and not read it again
  await show(page, "/c/arco/t/sales/orders/access");
  const rows = page.getByRole("region", { name: "Table: Access" }).getByRole("row");
  for (const [privilege, place] of [
    ["TABLE_LIST", "catalog arco"],
    ["TABLE_READ_DATA", "namespace sales"],
  ]) {
    const row = rows.filter({ hasText: `${privilege} on ${place} in reader` }).first();
    await row.getByRole("link", { name: "Grants of reader" }).waitFor();
    assert.equal(await row.getByRole("button").count(), 0);
  }
  await rows.getByRole("link", { name: "Grants of reader" }).first().click();
  const dialog = await press(page, page.getByRole("button", { name: "Revoke: TABLE_LIST on catalog arco" }));
  assert.match(
    await dialog.locator("#change-summary").innerText(),
    /TABLE_LIST on catalog arco, from the next request on\. This holds for the whole catalog\.$/,
  );
  await confirm(page, "Revoke");
  await show(page, "/c/arco/n/sales/access");
  const own = page.getByRole("button", { name: "Revoke: TABLE_READ_DATA on namespace sales from reader" });
  const narrow = await press(page, own.first());
  assert.match(await narrow.locator("#change-summary").innerText(), /on namespace sales, from the next request on\.$/);
  await narrow.getByRole("button", { name: "Cancel" }).click();
});

test("a table, a view and a namespace are protected, and that is lifted", async () => {
  await api.createTable("sales", "kept");
  for (const [hash, path, name] of [
    ["/c/arco/t/sales/kept", tablePath("sales", "kept"), "table sales.kept"],
    ["/c/arco/v/sales/recent_orders", "v1/arco/namespaces/sales/views/recent_orders", "view sales.recent_orders"],
    [
      "/c/arco/n/sales.archive/properties".replace(".", "%1F"),
      "v1/arco/namespaces/sales%1Farchive",
      "namespace sales.archive",
    ],
  ]) {
    await show(page, hash);
    await page.getByText("Protection against drops").click();
    const dialog = await press(page, page.getByRole("button", { name: `Protect: ${name}` }));
    assert.ok((await dialog.innerText()).includes(`The ${name} can't be dropped`));
    await confirm(page, "Protect");
    assert.equal((await api.send("DELETE", path)).status, 409, path);
    await press(page, page.getByRole("button", { name: `Lift the protection: ${name}` }));
    await confirm(page, "Lift the protection");
    assert.equal((await api.send("DELETE", path)).status, 204, path);
  }
});

test("a policy is attached to a namespace and a table, and detached", async () => {
  const attached = async (query) =>
    (await api.must("GET", `polaris/v1/arco/applicable-policies?${query}`))["applicable-policies"].filter(
      ({ inherited }) => !inherited,
    ).length;
  for (const [type, query, hash] of [
    ["namespace", "namespace=sales", "/c/arco/n/sales/policies"],
    ["table", "namespace=sales&target-name=orders", "/c/arco/t/sales/orders/policies"],
    ["catalog", "", "/c/arco/policies"],
  ]) {
    await show(page, "/c/arco/n/sales/policies/compact");
    await page.getByRole("combobox", { name: "To", exact: true }).selectOption(type);
    if (type === "table") await page.getByLabel("Name of the table").fill("orders");
    const dialog = await press(page, page.getByRole("button", { name: "Attach", exact: true }));
    assert.match(await dialog.innerText(), /The policy sales\.compact applies from now on to the/);
    await confirm(page, "Attach");
    assert.equal(await attached(query), 1, type);
    await show(page, hash);
    await press(page, page.getByRole("button", { name: "Detach: sales.compact" }));
    await confirm(page, "Detach");
    assert.equal(await attached(query), 0, type);
  }
});

test("no page caused an error or a report of the policy", () => {
  assert.deepEqual(faults, []);
});
