// People who sign in at issuers: how they go there and come back, and what a tab keeps.
import assert from "node:assert/strict";
import { URI } from "./harness.mjs";

export const ISSUERS = JSON.parse(process.env.ARCO_ISSUERS ?? "{}");
export const UI = `${URI}/ui/`;

/** Begins to sign in at an issuer from the page to sign in, and waits for the issuer's page. */
export async function goToIssuer(page, issuer = ISSUERS.issuer) {
  await page.getByRole("button", { name: issuer.replace("http://", "") }).click();
  await page.waitForURL((url) => url.href.startsWith(issuer));
}

/** Signs in on the pages of oidc-provider, and agrees. */
export async function agree(page, name = "ada") {
  await page.locator("input[name=login]").fill(name);
  await page.locator("input[name=password]").fill("x");
  await page.locator("button[type=submit]").click();
  await page.locator("input[name=prompt][value=consent]").waitFor({ state: "attached" });
  await page.locator("button[type=submit]").click();
}

/** Signs in as ada at an issuer, and waits until the console shows who one is to the catalog. */
export async function signInAt(page, issuer = ISSUERS.issuer) {
  await goToIssuer(page, issuer);
  await agree(page);
  await named(page);
}

/** Waits until the console shows ada as the catalog's name of who has signed in. */
export const named = (page) =>
  page.getByRole("group", { name: "Signed in as" }).getByText("ada", { exact: true }).waitFor();

/** Signs in, and returns the address that the issuer redirects to, which the console has not read yet. */
export async function interceptedAnswer(page, issuer = ISSUERS.issuer) {
  await goToIssuer(page, issuer);
  await page.route(`${UI}*.js`, (route) => route.abort());
  await agree(page);
  await page.waitForURL(/[?&]code=/);
  await page.unroute(`${UI}*.js`);
  return page.url();
}

/** What a tab keeps of its login, null if it has none. */
export const held = (page) => page.evaluate(() => JSON.parse(sessionStorage.getItem("arco-login")));

/** Changes what a tab keeps, as an attacker or time would. */
export const change = (page, key, changes) =>
  page.evaluate(
    ([name, more]) => {
      const kept = JSON.parse(sessionStorage.getItem(name));
      sessionStorage.setItem(name, JSON.stringify({ ...kept, ...more }));
    },
    [key, changes],
  );

/** Changes the grant of a tab's login. */
export async function changeGrant(page, changes, more = {}) {
  const { grant } = await held(page);
  await change(page, "arco-login", { ...more, grant: { ...grant, ...changes } });
}

/** Lets a page read another document of its issuer. */
export const altered = (page, changes) =>
  page.route(`${ISSUERS.issuer}/.well-known/**`, async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, json: { ...(await response.json()), ...changes } });
  });

/** Asserts that no one is signed in, and that the page names why. */
export async function assertRefused(page, why) {
  await page.getByRole("heading", { name: "Sign in", level: 1 }).waitFor();
  assert.match(await page.getByRole("alert").first().innerText(), why);
  assert.equal(await held(page), null);
  assert.equal(await page.evaluate(() => sessionStorage.length), 0);
  assert.doesNotMatch(page.url(), /code=|state=/);
}
