// Changes from the console that are refused, lose their answers, are sent twice or meet others, in Chromium, at a real
// server. tests/console/test_changes.py starts this file.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Api, MANAGEMENT, tablePath } from "./api.mjs";
import { changesSent, confirm, dialogOf, historyOf, plainWithDrop, press, undoButton } from "./changing.mjs";
import { ADA, axe, close, faults, open, PLAIN_URI, ROOT, sendCredentials, show, signedIn } from "./harness.mjs";

let api;
let page;
before(async () => {
  api = await Api.login(ROOT);
  page = await signedIn(ROOT);
});
after(close);

test("who may not change something reads why, and sends nothing", async () => {
  const ada = await signedIn(ADA);
  const sent = changesSent(ada);
  await show(ada, "/c/arco/t/sales/orders");
  await ada.getByText("Protection against drops").click();
  const protect = ada.getByRole("button", { name: "Protect: table sales.orders" });
  await ada.getByText("Principal ada lacks the privilege CATALOG_MANAGE_ACCESS on table sales.orders").waitFor();
  assert.ok(await protect.isDisabled());
  for (const hash of ["/principals", "/c/arco/roles", "/c/arco/roles/reader", historyOf("sales", "mistake")]) {
    await show(ada, hash);
    for (const button of await ada
      .getByRole("main")
      .getByRole("button", { name: /^(Create|Delete|Undo|Grant|Take|Give)/ })
      .all()) {
      if (await button.isVisible()) assert.ok(await button.isDisabled(), `${hash} ${await button.innerText()}`);
    }
  }
  await show(ada, "/c/arco/roles/reader");
  await ada.getByText("Principal ada lacks the privilege CATALOG_ROLE_MANAGE_GRANTS").waitFor();
  assert.deepEqual(sent, []);
});

test("who may create but not drop is offered no undo, and the server refuses it too", async () => {
  await api.createDropped("sales", "theirs");
  const creator = await api.createPrincipal(
    "creator",
    { type: "namespace", namespace: ["sales"], privilege: "TABLE_CREATE" },
    { type: "namespace", namespace: ["sales"], privilege: "TABLE_READ_PROPERTIES" },
  );
  const at = await signedIn(creator);
  await show(at, historyOf("sales", "theirs"));
  await at.getByText("Principal creator lacks the privilege TABLE_DROP on table sales.theirs").waitFor();
  assert.ok(await undoButton(at).isDisabled());
  const refused = await (await Api.login(creator)).send("POST", `${tablePath("sales", "theirs")}/undrop`);
  assert.equal(refused.status, 403);
});

test("who manages one namespace grants and revokes there alone", async () => {
  const at = await signedIn(
    await api.createPrincipal("steward", {
      type: "namespace",
      namespace: ["sales"],
      privilege: "CATALOG_MANAGE_ACCESS",
    }),
  );
  await api.must("PUT", `${MANAGEMENT}/catalogs/arco/catalog-roles/reader/grants`, {
    grant: { type: "catalog", privilege: "TABLE_LIST" },
  });
  await show(at, "/c/arco/n/sales/access");
  const revoke = (what) => at.getByRole("button", { name: `Revoke: ${what} from reader` });
  assert.ok(await revoke("TABLE_READ_DATA on namespace sales").first().isEnabled());
  await at.getByRole("region", { name: "Table: Access" }).getByText("TABLE_LIST on catalog arco").first().waitFor();
  assert.equal(await revoke("TABLE_LIST on catalog arco").count(), 0);

  await show(at, "/c/arco/t/sales/orders/access");
  await at.getByText("Grant a privilege here").click();
  await at.getByLabel("To the catalog role").fill("reader");
  await at.getByRole("combobox", { name: "Privilege" }).selectOption("TABLE_DROP");
  await press(at, at.getByRole("button", { name: "Grant a privilege", exact: true }));
  await confirm(at, "Grant");
  assert.ok((await api.grantsOf("reader")).some(({ privilege }) => privilege === "TABLE_DROP"));
});

test("a dialog that nothing was checked for checks the right, and does not send without it", async () => {
  const at = await signedIn(await api.createPrincipal("porter", { type: "catalog", privilege: "POLICY_READ" }));
  const sent = changesSent(at);
  await show(at, "/c/arco/n/sales/policies/compact");
  const dialog = await press(at, at.getByRole("button", { name: "Attach", exact: true }));
  await dialog.getByText("Principal porter lacks the privilege POLICY_ATTACH on policy sales.compact").waitFor();
  await dialog.getByRole("button", { name: "Attach", exact: true }).dispatchEvent("click");
  await dialog.getByRole("button", { name: "Attach", exact: true }).press("Enter");
  await dialog.getByRole("button", { name: "Cancel" }).click();
  assert.deepEqual(sent, []);
});

test("a right that was lost meanwhile is refused by the server, whose words the dialog shows", async () => {
  const grant = { type: "namespace", namespace: ["sales"], privilege: "CATALOG_MANAGE_CONTENT" };
  const at = await signedIn(await api.createPrincipal("leaver", grant));
  await api.createDropped("sales", "late");
  await show(at, historyOf("sales", "late"));
  const dialog = await press(at, undoButton(at));
  await api.must("POST", `${MANAGEMENT}/catalogs/arco/catalog-roles/leaver/grants`, { grant });
  await dialog.getByRole("button", { name: "Undo the drop" }).click();
  assert.match(await dialog.getByRole("alert").innerText(), /40[34]/);
  assert.equal((await api.send("GET", tablePath("sales", "late"))).status, 404);
});

test("an answer that is lost has the identical request sent again, which is carried out once", async () => {
  await api.createDropped("sales", "lost");
  await show(page, historyOf("sales", "lost"));
  const sent = changesSent(page);
  let lost = 0;
  await page.route("**/undrop", async (route) => {
    if (lost++ > 0) return route.continue();
    await route.fetch(); // the server does it, and no answer comes
    await route.abort();
  });
  await press(page, undoButton(page));
  await confirm(page, "Undo the drop");
  await page.unroute("**/undrop");
  assert.equal(sent.length, 2);
  assert.deepEqual(sent[0], sent[1]);
  const kinds = (await api.history("?namespace=sales&table=lost")).map(({ kind }) => kind);
  assert.deepEqual(kinds, ["undrop", "drop-table", "create-table"]);
});

test("when no answer comes at all the outcome is unknown, and the key stays for another try", async () => {
  await api.createDropped("sales", "silent");
  await show(page, historyOf("sales", "silent"));
  const sent = changesSent(page);
  await page.route("**/undrop", (route) => route.abort());
  const dialog = await press(page, undoButton(page));
  await dialog.getByRole("button", { name: "Undo the drop" }).click();
  await dialog.getByText("No answer says whether this was done.").waitFor();
  await page.unroute("**/undrop");
  assert.equal(sent.length, 4);
  assert.deepEqual(await axe(page), []);
  await page.route("**/undrop", (route) => route.fulfill({ status: 429, body: "later" }));
  await dialog.getByRole("button", { name: "Send again" }).click();
  await dialog.getByText("later").waitFor();
  await dialog.getByText("No answer says whether this was done.").waitFor();
  await page.unroute("**/undrop");
  assert.equal(sent.length, 8);
  await confirm(page, "Send again");
  assert.equal(sent.length, 9);
  assert.equal(new Set(sent.map(({ key }) => key)).size, 1);
  assert.equal((await api.send("GET", tablePath("sales", "silent"))).status, 200);
});

test("a request to an API without keys is sent once, and the page shows what became of it", async () => {
  await show(page, "/principals");
  const sent = changesSent(page);
  await page.route("**/principals", async (route) => {
    if (route.request().method() !== "POST") return route.continue();
    await route.fetch();
    await route.abort();
  });
  await page.getByLabel("Name of the principal", { exact: true }).fill("echo");
  const dialog = await press(page, page.getByRole("button", { name: "Create a principal", exact: true }));
  await dialog.getByRole("button", { name: "Create", exact: true }).click();
  await dialog.getByText("This API reads no idempotency keys").waitFor();
  await page.unroute("**/principals");
  assert.equal(sent.length, 1);
  await dialog.getByRole("button", { name: "Close" }).click();
  await page.getByRole("region", { name: "Principals", exact: true }).getByText("echo").waitFor();
  await api.must("DELETE", `${MANAGEMENT}/principals/echo`);
});

test("a double click sends one request, and a refused one is a new intent", async () => {
  await api.createDropped("sales", "twice");
  await show(page, historyOf("sales", "twice"));
  const sent = changesSent(page);
  let release;
  await page.route("**/undrop", (route) => {
    release = () => route.continue();
  });
  const dialog = await press(page, undoButton(page));
  const button = dialog.getByRole("button", { name: "Undo the drop" });
  await button.dblclick();
  await button.press("Enter");
  await page.keyboard.press("Enter");
  await dialog.getByText("Sending").waitFor();
  assert.equal(sent.length, 1);
  await api.createTable("sales", "twice");
  await release();
  await dialog.getByRole("alert").waitFor();
  await page.unroute("**/undrop");
  await api.must("DELETE", `${tablePath("sales", "twice")}?purgeRequested=true`);
  await dialog.getByRole("button", { name: "Try again" }).click();
  await dialog.waitFor({ state: "detached" });
  assert.equal(sent.length, 2);
  assert.notEqual(sent[0].key, sent[1].key);
});

test("a token that expires in the middle leads to a sign-in, and nothing was changed", async () => {
  await api.createDropped("sales", "expired");
  const at = await signedIn(ROOT);
  await show(at, historyOf("sales", "expired"));
  await at.route("**/undrop", (route) =>
    route.continue({ headers: { ...route.request().headers(), authorization: "Bearer expired" } }),
  );
  const dialog = await press(at, undoButton(at));
  await dialog.getByRole("button", { name: "Undo the drop" }).click();
  await at.getByText("Your sign-in has ended").waitFor();
  assert.equal(await dialog.count(), 0);
  assert.equal((await api.send("GET", tablePath("sales", "expired"))).status, 404);
  await at.unroute("**/undrop");
  await sendCredentials(at, ...ROOT);
  await press(at, undoButton(at));
  await confirm(at, "Undo the drop");
  assert.equal((await api.send("GET", tablePath("sales", "expired"))).status, 200);
});

test("of two browsers the second gets the conflict as it came, and reads the page again", async () => {
  const grant = { type: "namespace", namespace: ["sales"], privilege: "VIEW_LIST" };
  const grants = `${MANAGEMENT}/catalogs/arco/catalog-roles/reader/grants`;
  await api.must("PUT", grants, { grant });
  const other = await signedIn(ROOT);
  for (const at of [page, other]) {
    await show(at, "/c/arco/roles/reader");
    await press(at, at.getByRole("button", { name: "Revoke: VIEW_LIST on namespace sales" }));
  }
  await confirm(page, "Revoke");
  const dialog = dialogOf(other);
  await dialog.getByRole("button", { name: "Revoke", exact: true }).click();
  const refused = await api.send("POST", grants, { grant });
  const alert = await dialog.getByRole("alert").innerText();
  assert.ok(alert.includes(refused.json.error.message), alert);
  assert.ok(alert.includes(`${refused.status} · ${refused.json.error.type}`), alert);
  await dialog.getByRole("button", { name: "Close" }).click();
  await other.getByRole("button", { name: "Revoke: VIEW_LIST on namespace sales" }).waitFor({ state: "detached" });
});

test("without logins changes are offered and carried out", async () => {
  const { plain, prefix } = await plainWithDrop("n");
  const history = `/c/${prefix}/history?namespace=n&table=t`;
  const at = await open();
  await show(at, history, PLAIN_URI);
  await press(at, undoButton(at));
  await confirm(at, "Undo the drop");
  assert.equal((await plain.send("GET", `v1/${prefix}/namespaces/n/tables/t`)).status, 200);
  await plain.must("DELETE", `v1/${prefix}/namespaces/n/tables/t`);
  await at.route("**/health", (route) =>
    route.fulfill({
      json: { warehouses: [{ name: prefix, read_only_because: "the store ignores conditions" }] },
    }),
  );
  await show(at, `/c/${prefix}`, PLAIN_URI);
  await show(at, history, PLAIN_URI);
  await at.getByText("Read-only: the store ignores conditions").waitFor();
  assert.ok(await undoButton(at).isDisabled());
});

test("a list that can't be read after a change is read anew on demand, and shows nothing twice", async () => {
  await api.createDropped("sales", "reread");
  await show(page, historyOf("sales", "reread"));
  const lines = page.getByRole("main").locator("ol.history > li");
  assert.equal(await lines.count(), 2);
  await page.route("**/history?**", (route) => route.abort());
  await press(page, undoButton(page));
  await confirm(page, "Undo the drop");
  await page.getByRole("main").getByRole("alert").waitFor();
  await page.unroute("**/history?**");
  await page.getByRole("main").getByRole("button", { name: "Try again" }).click({ timeout: 5000 });
  await page.getByRole("main").getByRole("alert").waitFor({ state: "detached" });
  await lines.nth(2).waitFor();
  assert.equal(await lines.count(), 3);
});

test("no page caused an error or a report of the policy", () => {
  assert.deepEqual(faults, []);
});
