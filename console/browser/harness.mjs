// Chromium on the console, for scenarios: the pages to visit, users who sign in, and what a visit must not cause.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const environment = (name) => {
  const value = process.env[name];
  assert.ok(value, `${name} is not set: tests/console/test_browser.py starts the scenarios`);
  return value;
};
export const URI = environment("ARCO_URI");
export const PLAIN_URI = environment("ARCO_PLAIN_URI");
export const ROOT = JSON.parse(environment("ARCO_ROOT"));
export const ADA = JSON.parse(environment("ARCO_ADA"));
export const HOSTILE = JSON.parse(environment("ARCO_HOSTILE"));
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const FLAGS = [
  ...["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"],
  ...["--disable-background-networking", "--disable-component-update", "--disable-sync"],
];

/** Every page of the console, by the part of its address after `#`. */
export const PAGES = {
  catalogs: "/",
  principals: "/principals",
  catalog: "/c/arco",
  namespaces: "/c/arco/namespaces",
  namespace: "/c/arco/n/sales",
  "namespace-properties": "/c/arco/n/sales/properties",
  "namespace-policies": "/c/arco/n/sales/policies",
  policy: "/c/arco/n/sales/policies/compact",
  search: "/c/arco/search?q=ord",
  table: "/c/arco/t/sales/orders",
  snapshots: "/c/arco/t/sales/orders/snapshots",
  timeline: "/c/arco/t/sales/orders/timeline",
  receipt: "/c/arco/t/sales/orders/timeline/5",
  compare: "/c/arco/t/sales/orders/compare?from=0",
  lineage: "/c/arco/t/sales/orders/lineage",
  health: "/c/arco/t/sales/orders/health",
  access: "/c/arco/t/sales/orders/access",
  "namespace-access": "/c/arco/n/sales/access",
  policies: "/c/arco/policies",
  connect: "/c/arco/t/sales/orders/connect",
  view: "/c/arco/v/sales/recent_orders",
  history: "/c/arco/history",
  tasks: "/c/arco/tasks",
  roles: "/c/arco/roles",
  role: "/c/arco/roles/reader",
  missing: "/nowhere",
};

/** The requests of the pages with a budget of calls to the store, which tests/console/test_budgets.py counts. */
export const BUDGETS = JSON.parse(readFileSync(new URL("budgets.json", import.meta.url), "utf8"));

/** The number of requests to APIs that each other page may send, once its catalog is open: 1 unless it is listed. */
export const REQUESTS = {
  principals: 4,
  catalog: 3,
  namespace: 3,
  "namespace-properties": 2,
  "namespace-policies": 2,
  snapshots: 2,
  receipt: 2,
  compare: 2,
  lineage: 2,
  health: 5,
  access: 4,
  "namespace-access": 3,
  policies: 2,
  connect: 2,
  view: 2,
  history: 2,
  tasks: 2,
  roles: 3,
  role: 3,
  missing: 0,
};

/** What pages did that they must never do: errors of scripts, and reports of the policy. */
export const faults = [];

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM || "/usr/bin/chromium", args: FLAGS });

export const close = () => browser.close();

/** A new page of a browser that nobody has used before. */
export async function open(options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  context.setDefaultTimeout(30_000);
  const page = await context.newPage();
  page.on("pageerror", (error) => faults.push(`${page.url()}: ${error}`));
  page.on("console", (message) => {
    if (/Content.Security.Policy|Trusted/.test(message.text())) faults.push(`${page.url()}: ${message.text()}`);
  });
  page.on("dialog", (dialog) => {
    faults.push(`${page.url()}: a dialog, ${dialog.message()}`);
    void dialog.dismiss();
  });
  return page;
}

/** Shows a page of the console, and waits until all of it is loaded. */
export async function show(page, hash, uri = URI) {
  await page.goto(`${uri}/ui/#${hash}`);
  await settled(page);
}

export async function settled(page) {
  await page.waitForSelector("h1");
  // two frames, so that parts which load after others have begun to
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  await page.waitForFunction(() => !document.querySelector(".loading, [aria-busy=true]"));
}

/** A page on which someone has signed in. */
export async function signedIn([id, secret], options = {}) {
  const page = await open(options);
  await show(page, "/");
  await sendCredentials(page, id, secret);
  await page.getByText("Sign out").waitFor();
  await settled(page);
  return page;
}

export async function sendCredentials(page, id, secret) {
  await page.getByLabel("Client id", { exact: true }).fill(id);
  await page.getByLabel("Client secret", { exact: true }).fill(secret);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
}

/** What axe finds on a page, one line each. */
export async function axe(page) {
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => globalThis.axe.run({ resultTypes: ["violations"] }));
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ html, any }) => `${id}: ${html.slice(0, 200)} ${any[0]?.message ?? ""}`),
  );
}

/** The heading of a page. */
export const heading = (page) => page.locator("main h1").innerText();
