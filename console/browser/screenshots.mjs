// Pictures of pages for docs/console.md. tests/console/screenshots.py starts this file.
import { mkdirSync, writeFileSync } from "node:fs";
import { close, PAGES, ROOT, show, signedIn } from "./harness.mjs";

const [folder] = process.argv.slice(2);
const WIDE = { viewport: { width: 1200, height: 760 } };
const PHONE = { viewport: { width: 360, height: 720 }, deviceScaleFactor: 2, colorScheme: "dark" };
mkdirSync(folder, { recursive: true });

/** Writes what a page shows in the window as WebP, which Playwright itself does not. */
async function picture(page, name, hash) {
  await show(page, hash);
  await take(page, name);
}

async function take(page, name) {
  await page.waitForTimeout(300);
  const devtools = await page.context().newCDPSession(page);
  const { data } = await devtools.send("Page.captureScreenshot", { format: "webp", quality: 80 });
  writeFileSync(`${folder}/${name}.webp`, Buffer.from(data, "base64"));
}

/** The dialog that asks before a drop is undone. */
async function change(page) {
  await show(page, "/c/arco/history?namespace=sales&table=mistake");
  await page.getByRole("button", { name: /^Undo the drop/ }).click();
  await page.getByRole("dialog").waitFor();
}

const page = await signedIn(ROOT, WIDE);
for (const name of Object.keys(PAGES)) await picture(page, name, PAGES[name]);
await change(page);
await take(page, "change");
const phone = await signedIn(ROOT, PHONE);
await picture(phone, "phone", PAGES.timeline);
await close();
