// People sign in to the console at Keycloak. tests/authentication/test_keycloak_console.py starts this file.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { ADA, close, faults, heading, open, settled, show } from "./harness.mjs";
import { changeGrant, goToIssuer, held, named, UI } from "./people.mjs";

const DEEP = "/c/arco/n/sales/access";
after(close);

test("a user of Keycloak signs in, is renewed, and signs out of both", async () => {
  const page = await open();
  await show(page, DEEP);
  await goToIssuer(page);
  await page.locator("#username").fill(ADA[0]);
  await page.locator("#password").fill(ADA[1]);
  await page.locator("#kc-login").click();
  await page.getByRole("region", { name: "Table: What you may do" }).waitFor();
  assert.equal(page.url(), `${UI}#${DEEP}`);
  await named(page);

  const before = await held(page);
  await changeGrant(page, { expiresMs: 0 });
  await page.reload();
  await settled(page);
  const after = await held(page);
  assert.match(await heading(page), /sales/);
  assert.notEqual(after.token, before.token);
  assert.notEqual(after.grant.refreshToken, before.grant.refreshToken);

  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByRole("heading", { name: "Sign in", level: 1 }).waitFor();
  assert.equal(new URL(page.url()).pathname, new URL(UI).pathname);
  assert.equal(await page.evaluate(() => sessionStorage.length), 0);
  await goToIssuer(page);
  await page.locator("#password").waitFor(); // the session at Keycloak has ended, too
  assert.deepEqual(faults, []);
});
