// What people do with the console, in Chromium, at a real server. tests/console/test_browser.py starts this file.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import {
  ADA,
  axe,
  BUDGETS,
  close,
  faults,
  HOSTILE,
  heading,
  open,
  PAGES,
  PLAIN_URI,
  REQUESTS,
  ROOT,
  sendCredentials,
  settled,
  show,
  signedIn,
  URI,
} from "./harness.mjs";

let root;
before(async () => {
  root = await signedIn(ROOT);
});
after(close);

test("someone signs in by id and secret, and no secret is kept", async () => {
  const page = await open();
  await page.goto(`${URI}/`);
  assert.equal(await heading(page), "Sign in");
  await sendCredentials(page, ...ROOT);
  await page.getByRole("link", { name: "arco", exact: true }).first().waitFor();

  assert.equal(await page.getByRole("group", { name: "Signed in as" }).innerText(), "root");
  const kept = await page.evaluate(() => JSON.stringify([{ ...sessionStorage }, { ...localStorage }, document.cookie]));
  assert.ok(!kept.includes(ROOT[1]));
  await page.getByText("Sign out").click();
  assert.equal(await heading(page), "Sign in");
  assert.equal(await page.evaluate(() => sessionStorage.length), 0);
});

test("a wrong secret is refused in the words of the server", async () => {
  const page = await open();
  await show(page, "/");
  await sendCredentials(page, ROOT[0], "wrong");
  assert.match(await page.getByRole("alert").innerText(), /401/);
});

test("a token that was got elsewhere signs in too", async () => {
  const token = await root.evaluate(() => JSON.parse(sessionStorage.getItem("arco-login")).token);
  const page = await open();
  await show(page, "/c/arco/t/sales/orders");
  await page.getByText("Sign in by a token").click();
  await page.getByLabel("Access token").fill(token);
  await page.getByText("Use this token").click();
  await page.getByRole("heading", { name: "Columns" }).waitFor();
  assert.equal(await page.getByRole("group", { name: "Signed in as" }).innerText(), "root");
});

test("without logins the catalog is shown at once", async () => {
  const page = await open();
  await page.goto(`${PLAIN_URI}/`);
  await page.getByText("No login").waitFor();
  await show(page, "/c/arco", PLAIN_URI);
  await page.getByText("There are no namespaces yet").waitFor();
});

test("a user whose token has no name of a principal is named by the catalog", async () => {
  const page = await signedIn(ADA);
  await page.evaluate(() => {
    const held = JSON.parse(sessionStorage.getItem("arco-login"));
    sessionStorage.setItem("arco-login", JSON.stringify({ ...held, name: "Token", roles: undefined }));
  });
  await page.goto(`${URI}/ui/?named#${PAGES.access}`);
  await page.getByRole("region", { name: "Table: What you may do" }).waitFor();
  await page.getByRole("group", { name: "Signed in as" }).getByText("ada", { exact: true }).waitFor();
});

test("a link on another site opens the page that it names", async () => {
  const site = createServer((_, response) => {
    response.setHeader("content-type", "text/html");
    response.end(`<a href="${URI}/ui/#/c/arco/t/sales/orders">orders</a><iframe src="${URI}/ui/"></iframe>`);
  }).listen(0, "127.0.0.1");
  await once(site, "listening");
  const page = await open();
  await page.goto(`http://localhost:${site.address().port}/`);
  await page.getByText("orders").click();
  await sendCredentials(page, ...ROOT);
  await page.getByRole("heading", { name: "Columns" }).waitFor();
  assert.match(await heading(page), /orders/);
  site.close();
  faults.length = 0; // the frame on the other site, which the policy forbids
});

test("another site can read nothing of an API", async () => {
  const site = createServer((_, response) => response.end("<title>x</title>")).listen(0, "127.0.0.1");
  await once(site, "listening");
  const page = await open();
  await page.goto(`http://localhost:${site.address().port}/`);
  const read = await page.evaluate(
    (uri) =>
      fetch(`${uri}/v1/config`).then(
        ({ status }) => status,
        () => "refused",
      ),
    PLAIN_URI,
  );
  assert.equal(read, "refused");
  await page.goto(`${PLAIN_URI}/ui/`);
  assert.equal(await page.evaluate((uri) => fetch(`${uri}/v1/config`).then(({ status }) => status), PLAIN_URI), 200);
  site.close();
});

test("namespaces, tables and their parts are browsed by links", async () => {
  await show(root, "/");
  await root.getByRole("link", { name: "arco", exact: true }).first().click();
  await root.getByRole("main").getByRole("link", { name: "sales", exact: true }).first().click();
  await root.getByRole("link", { name: "orders", exact: true }).first().click();
  await root.getByText("The number of the order").waitFor();
  await root.getByText("lines.element.").first().waitFor();
  await root.getByText("day(placed)").waitFor();
  await root.getByText("first-day").waitFor();
  await root.getByText("owner shop").waitFor();
  await root.getByRole("link", { name: "Snapshots", exact: true }).click();
  await root.getByRole("img", { name: /^Rows: 3 at/ }).waitFor();
  await root.locator("canvas").first().waitFor();
  assert.equal(await root.locator("tbody tr").count(), 6);
});

test("settings are filled in for the server and the table", async () => {
  await show(root, PAGES.connect);
  const text = await root.getByRole("main").innerText();
  for (const part of [`uri=${URI}`, "`sales`.`orders`", 'load_table(("sales","orders"))', `ENDPOINT '${URI}'`]) {
    assert.ok(text.includes(part), part);
  }
  assert.ok(!text.includes(ROOT[1]));
});

test("a search finds names by the beginnings of their words", async () => {
  await show(root, "/c/arco");
  await root.getByRole("search").getByRole("searchbox").fill("ord");
  await root.keyboard.press("Enter");
  await root.getByRole("main").getByRole("link", { name: "sales.orders" }).waitFor();
  await root.getByRole("main").getByRole("link", { name: "sales.recent_orders" }).waitFor();
});

test("the timeline shows who made each version, and what changed between two", async () => {
  await show(root, PAGES.timeline);
  await root.getByRole("link", { name: "Version 8" }).waitFor();
  assert.match(await root.locator(".timeline").innerText(), /by root with PyIceberg/);
  await root.locator(".timeline > li").first().getByText("Compare with another").click();
  await root.locator(".timeline > li", { hasText: "Version 1" }).first().getByText("Compare with this").click();
  await root.getByRole("heading", { name: "Columns" }).waitFor();
  await root.getByRole("link", { name: "The other way round" }).click();
  await root.locator(".diff .added").first().waitFor();
  const changes = await root.getByRole("region", { name: "Columns", exact: true }).innerText();
  assert.match(changes, /channel/);
  assert.match(changes, /amount.*total/s);
});

test("a receipt is shown as it is stored", async () => {
  await show(root, PAGES.receipt);
  const receipt = JSON.parse(await root.getByRole("region", { name: "receipt", exact: true }).innerText());
  assert.equal(receipt.state, "committed");
});

test("lineage shows the runs that were reported, and in an empty part what to do", async () => {
  await show(root, PAGES.lineage);
  await root.locator("svg .node", { hasText: "sales.totals" }).waitFor();
  await root.getByRole("cell", { name: "nightly totals" }).waitFor();
  await root.getByLabel("Direction").selectOption("upstream");
  await root.getByLabel("Steps").selectOption("3");
  await root.getByRole("button", { name: "Show" }).click();
  await root.getByText("No run that read or wrote this was reported").waitFor();
  assert.match(root.url(), /direction=upstream&depth=3/);
});

test("a graph of lineage is drawn, with verified runs apart from claims", async () => {
  const page = await signedIn(ROOT);
  await page.route("**/lineage?*", (route) => route.fulfill({ json: GRAPH }));
  await show(page, PAGES.lineage);
  await page.locator("svg .node").nth(3).waitFor();
  assert.equal(await page.locator("g.edge").count(), 3);
  assert.equal(await page.locator("g.edge.verified").count(), 1);
  assert.deepEqual(await axe(page), []);
  await page.locator("svg a", { hasText: "sales.raw" }).click();
  await page.waitForURL("**/t/sales/raw/lineage");
});

test("the history names who dropped a table, and the command that undoes it", async () => {
  await show(root, "/c/arco/history?namespace=sales&table=mistake");
  const dropped = root.locator(".history > li").first();
  assert.match(await dropped.innerText(), /drop table.*sales\.mistake.*by root/s);
  await dropped.getByText("by a command").click();
  await dropped.getByText("arco undrop sales.mistake").waitFor();
});

test("a purge is a task that shows how far it is", async () => {
  await show(root, PAGES.tasks);
  const row = root.getByRole("row", { name: /table purge sales\.scrap/ });
  await row.getByRole("link").first().click();
  await root.getByRole("heading", { name: "Progress" }).waitFor();
  await settled(root);
  assert.match(await root.getByRole("main").innerText(), /sales\.scrap/);
  assert.deepEqual(await axe(root), []);
});

test("who may not see something reads why in the words of the API", async () => {
  const page = await signedIn(ADA);
  assert.match(await page.getByRole("alert").first().innerText(), /403/);
  await page.getByLabel("Open a catalog by its name").fill("arco");
  await page.getByRole("button", { name: "Open" }).click();
  await page.getByRole("heading", { name: /arco/ }).waitFor();
  await show(page, PAGES.table);
  await page.getByText("The number of the order").waitFor();
  await show(page, "/c/arco/t/many/table_000");
  assert.match(await page.getByRole("alert").first().innerText(), /40[34]/);
  await page.getByRole("link", { name: "The history of this name" }).waitFor();
  const rights = page.getByRole("region", { name: "Table: What you may do" });
  await rights.getByText("Principal ada lacks the privilege TABLE_READ_DATA on table many.table_000").waitFor();
  await show(page, PAGES.access);
  await page.getByText("Those who may manage grants here").waitFor();
});

test("hostile names are text, in lists, headings, addresses and settings", async () => {
  for (const name of HOSTILE) {
    await show(root, "/c/arco/n/hostile");
    await root.getByRole("link", { name, exact: true }).click();
    await root.getByRole("heading", { name: "Columns" }).waitFor();
    assert.ok((await root.locator("main h1 bdi").innerText()).includes(name));
    assert.ok((await root.title()).includes(name));
    await root.getByRole("link", { name: "Connect", exact: true }).click();
    await root.getByRole("heading", { name: "Flink" }).waitFor();
    assert.equal(await root.locator("main script").count(), 0);
  }
});

test("an API that is down leaves the rest of the page as it is", async () => {
  const page = await signedIn(ROOT);
  await page.route("**/governance", (route) => route.abort());
  await show(page, PAGES.table);
  await page.getByText("The number of the order").waitFor();
  assert.match(await page.getByRole("alert").innerText(), /The server does not answer/);
});

test("the files of a table are looked at on demand", async () => {
  const page = await signedIn(ROOT);
  await show(page, PAGES.health);
  await page.getByText("arco pipeline run compact").waitFor();
  await page.getByRole("button", { name: "Look at the files" }).click();
  await settled(page);
  assert.match(await page.getByRole("row", { name: "Data files read" }).innerText(), /[1-9][0-9]* files?, /);
});

test("a part of the console that does not load is an error that describes what to do", async () => {
  const page = await signedIn(ROOT);
  await page.route(/\/(plot|graph-layout)-/, (route) => route.abort());
  for (const where of [PAGES.snapshots, PAGES.lineage]) {
    await show(page, where);
    assert.match(await page.getByRole("alert").innerText(), /did not load. Load this page again/);
    assert.ok((await page.getByRole("row").count()) > 1, "the table is there");
  }
});

test("a slow part holds up no other", async () => {
  const page = await signedIn(ROOT);
  let answer;
  await page.route("**/governance", (route) => {
    answer = () => route.continue();
  });
  await page.goto(`${URI}/ui/#${PAGES.table}`);
  await page.getByText("The number of the order").waitFor();
  await page.getByRole("region", { name: "Governance" }).getByText("Loading").waitFor();
  answer();
});

test("an expired token leads to a sign-in, and back to the page", async () => {
  const page = await signedIn(ROOT);
  await page.evaluate(() => {
    const held = JSON.parse(sessionStorage.getItem("arco-login"));
    sessionStorage.setItem("arco-login", JSON.stringify({ ...held, token: "expired" }));
  });
  await page.goto(`${URI}/ui/?again#${PAGES.table}`);
  await page.getByText("Your sign-in has ended").waitFor();
  await sendCredentials(page, ...ROOT);
  await page.getByText("The number of the order").waitFor();
});

test("a long list loads as one scrolls, and holds few rows", async () => {
  await show(root, "/c/arco/n/many");
  const list = root.getByRole("region", { name: "tables of many" });
  await list.getByText("table_000").waitFor();
  let filled = false;
  for (let look = 0; look < 20 && !filled; look++) {
    filled = await list.evaluate(async (box) => {
      await new Promise(requestAnimationFrame); // the box is measured once its first rows are there
      const last = [...box.querySelectorAll("li")].at(-1);
      return last.getBoundingClientRect().bottom >= box.getBoundingClientRect().bottom;
    });
  }
  assert.ok(filled, "rows fill the box before anyone scrolls");
  let end = false;
  for (let step = 0; step < 60 && !end; step++) {
    await list.evaluate((box) => box.scrollTo(0, box.scrollHeight));
    end = await list
      .getByText("table_229")
      .waitFor({ timeout: 500 })
      .then(
        () => true,
        () => false,
      );
  }
  assert.ok(end, "the last name is reached");
  assert.ok((await list.locator("li").count()) < 60);
});

test("each page sends few requests, whatever the size of the catalog", async () => {
  const sent = [];
  const note = (request) => sent.push(request.url());
  root.on("request", note);
  for (const [name, hash] of Object.entries(PAGES)) {
    await root.evaluate(() => {
      location.hash = "#/nowhere";
    });
    await settled(root);
    sent.length = 0;
    await show(root, hash);
    const apis = sent.filter((url) => !url.includes("/ui/")).map((url) => url.slice(URI.length + 1));
    if (name in BUDGETS) {
      assert.deepEqual(apis.sort(), BUDGETS[name].requests);
      continue;
    }
    assert.ok(apis.length <= (REQUESTS[name] ?? 1), `${name} sends ${apis.join(" ")}`);
  }
  root.off("request", note);
});

test("the keyboard alone reaches and uses everything", async () => {
  await root.goto(`${URI}/ui/?keys#/c/arco/n/sales`);
  await settled(root);
  await root.keyboard.press("Tab");
  assert.equal(await root.locator(":focus").innerText(), "Skip to the page");
  await root.keyboard.press("Enter");
  assert.equal(await root.locator(":focus").getAttribute("id"), "main");
  const reach = async (name) => {
    for (let step = 0; step < 40; step++) {
      await root.keyboard.press("Tab");
      if ((await root.locator(":focus").innerText()) === name) return;
    }
    assert.fail(`${name} is not reached`);
  };
  await reach("orders");
  await root.keyboard.press("Enter");
  await root.getByRole("heading", { name: "Columns" }).waitFor();
  assert.match(await root.locator(":focus").innerText(), /orders/);
});

test("axe finds nothing on any page, wide and light", async () => {
  assert.deepEqual(await findings(root), []);
});

test("axe finds nothing on any page, narrow and dark, and none is wider than a phone", async () => {
  const page = await signedIn(ROOT, { viewport: { width: 360, height: 740 }, colorScheme: "dark" });
  assert.deepEqual(await findings(page), []);
});

test("no page caused an error or a report of the policy", () => {
  assert.deepEqual(faults, []);
});

/** What is wrong with each page: what axe finds, and a width beyond the window. */
async function findings(page) {
  const found = [];
  for (const [name, hash] of Object.entries(PAGES)) {
    await show(page, hash);
    await settled(page);
    found.push(...(await axe(page)).map((each) => `${name}: ${each}`));
    const beyond = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    if (beyond > 0) found.push(`${name}: ${beyond} pixels wider than the window`);
  }
  return found;
}

const GRAPH = {
  root: "n0",
  nodes: [
    { id: "n0", type: "table", namespace: ["sales"], name: "orders", dataset: null, depth: 0 },
    { id: "n1", type: "table", namespace: ["sales"], name: "raw", dataset: null, depth: 1 },
    {
      id: "n2",
      type: "dataset",
      namespace: null,
      name: null,
      dataset: { namespace: "kafka://broker", name: "clicks" },
      depth: 1,
    },
    { id: "n3", type: "hidden", namespace: null, name: null, dataset: null, depth: 1 },
  ],
  edges: ["n1", "n2", "n3"].map((from, at) => ({
    from,
    to: "n0",
    confidence: at === 0 ? "Verified" : "DeclaredUnverified",
    "run-id": `run-${at}`,
    job: { namespace: "servo", name: "nightly" },
    principal: "ada",
    "at-ms": 1763000000000,
    version: 5,
    "version-id": null,
    "snapshot-id": "3051729675574597004",
    "matched-by": "snapshot",
  })),
  "cut-off": [],
  searched: { days: ["2026-11-29"], events: 3 },
  notes: [],
};
