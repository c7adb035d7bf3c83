// Measures the console in Chromium on a large catalog: until a page is painted, and until it has changed after a click.
// tests/console/measure.py starts this file, and prints the numbers.
import { close, open, settled, URI } from "./harness.mjs";

const TABLE = "/c/arco/t/long/history";
const ROUNDS = 5;

/** Milliseconds from the start of a navigation to the first paint with content, and until all of the page is there; and
 * the longest task of the page, in which it reacts to nobody. */
async function paint(hash) {
  const page = await open();
  await page.addInitScript(() => {
    globalThis.tasks = [0];
    const observer = new PerformanceObserver((list) =>
      globalThis.tasks.push(...list.getEntries().map((e) => e.duration)),
    );
    observer.observe({ type: "longtask", buffered: true });
  });
  const before = performance.now();
  await page.goto(`${URI}/ui/#${hash}`);
  await settled(page);
  const whole = performance.now() - before;
  const first = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? 0);
  await page.waitForTimeout(300);
  const task = await page.evaluate(() => Math.max(...globalThis.tasks));
  await page.context().close();
  return { first, whole, task };
}

/** Milliseconds in which a page has changed and was painted after something was done in it, without requests. */
async function interaction(page, act) {
  return page.evaluate(
    ([code]) =>
      new Promise((done) => {
        const before = performance.now();
        new Function(code)();
        requestAnimationFrame(() => setTimeout(() => done(performance.now() - before), 0));
      }),
    [act],
  );
}

const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];

async function painted(name, hash) {
  const found = [];
  for (let round = 0; round < ROUNDS; round++) found.push(await paint(hash));
  const of = (kind) => median(found.map((each) => each[kind]));
  process.stdout.write(`${JSON.stringify({ name, first: of("first"), whole: of("whole"), task: of("task") })}\n`);
}

async function acted(name, hash, act, times = ROUNDS) {
  const page = await open();
  await page.goto(`${URI}/ui/#${hash}`);
  await settled(page);
  await page.waitForTimeout(500);
  const found = [];
  for (let round = 0; round < times; round++) {
    found.push(await interaction(page, act));
    await page.waitForTimeout(300);
  }
  await page.context().close();
  process.stdout.write(`${JSON.stringify({ name, interaction: median(found), slowest: Math.max(...found) })}\n`);
}

await paint("/"); // the server and the browser are warm then
await painted("catalogs", "/");
await painted("catalog", "/c/arco");
await painted("namespaces", "/c/arco/namespaces");
await painted("namespace of 5,000 tables", "/c/arco/n/many");
await painted("search", "/c/arco/search?q=table");
await painted("table", TABLE);
await painted("snapshots", `${TABLE}/snapshots`);
await painted("timeline", `${TABLE}/timeline`);
await painted("compare", `${TABLE}/compare?from=1`);
await painted("lineage", `${TABLE}/lineage`);
await painted("health", `${TABLE}/health`);

const button = (text) =>
  `[...document.querySelectorAll("button")].find((b) => b.textContent.includes("${text}"))?.click()`;
const link = (text) => `[...document.querySelectorAll("a")].find((a) => a.textContent === "${text}")?.click()`;
await acted(
  "scroll a list of tables",
  "/c/arco/n/many",
  `document.querySelector(".scroller, [role=region] ul, .virtual")?.parentElement.scrollBy(0, 400)`,
);
await acted("show more snapshots", `${TABLE}/snapshots`, button("Show more"), 3);
await acted("go from snapshots to the timeline", `${TABLE}/snapshots`, link("Timeline"), 1);
await acted("go from the timeline to snapshots", `${TABLE}/timeline`, link("Snapshots"), 1);
await acted("go from the table to its lineage", TABLE, link("Lineage"), 1);
await close();
