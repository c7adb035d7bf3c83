// People sign in at issuers, in Chromium, at a real server. tests/console/test_browser_sign_in.py starts this file.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { after, test } from "node:test";
import { Api, MANAGEMENT } from "./api.mjs";
import { confirm, press } from "./changing.mjs";
import { ADA, axe, close, faults, heading, open, ROOT, sendCredentials, settled, show } from "./harness.mjs";
import {
  agree,
  altered,
  assertRefused,
  change,
  changeGrant,
  goToIssuer,
  held,
  ISSUERS,
  interceptedAnswer,
  signInAt,
  UI,
} from "./people.mjs";

const DEEP = "/c/arco/n/sales";
const BEGUN = "arco-sign-in";
after(close);

/** A page on which ada has signed in at her issuer. */
async function adaAt(hash = DEEP) {
  const page = await open();
  await show(page, hash);
  await signInAt(page);
  await settled(page);
  return page;
}

test("someone signs in at an issuer, and comes back to the page that the link named", async () => {
  const page = await open();
  await show(page, `${DEEP}?from=a%20link`);
  assert.equal(await heading(page), "Sign in");
  assert.deepEqual(await axe(page), []);
  await signInAt(page);
  await settled(page);
  assert.equal(page.url(), `${UI}#${DEEP}?from=a%20link`);
  assert.match(await heading(page), /sales/);
  await page.reload();
  await settled(page);
  assert.match(await heading(page), /sales/);
});

test("the page shows the principal as the server has it, and what it may do", async () => {
  const page = await adaAt("/c/arco/n/sales/access");
  await page.getByRole("region", { name: "Table: What you may do" }).waitFor();
  await page.getByText("You are ada, with the principal roles analyst").waitFor();
});

test("a page that has a name, as functions serve it, is come back to by that name", async () => {
  const page = await open();
  await page.goto(`${UI}index.html#${DEEP}`);
  await signInAt(page);
  await settled(page);
  assert.equal(page.url(), `${UI}index.html#${DEEP}`);
  assert.match(await heading(page), /sales/);
});

test("an id and a secret sign in on the same page", async () => {
  const page = await open();
  await show(page, DEEP);
  await sendCredentials(page, ...ADA);
  await page.getByRole("button", { name: "Sign out" }).waitFor();
  assert.equal((await held(page)).grant, undefined);
  await page.getByRole("button", { name: "Sign out" }).click();
  assert.equal(await heading(page), "Sign in");
  assert.equal(page.url(), `${UI}#${DEEP}`);
});

test("no token is outside of the tab, and no code or token stays in an address", async () => {
  const page = await open();
  const sent = [];
  page.on("request", (request) => sent.push(request));
  await show(page, DEEP);
  await signInAt(page);
  await settled(page);
  const { token, grant } = await held(page);
  assert.ok(grant.refreshToken && grant.idToken && token.split(".").length === 3);
  const outside = await page.evaluate(() =>
    JSON.stringify([{ ...localStorage }, document.cookie, history.state, name]),
  );
  for (const secret of [token, grant.refreshToken, grant.idToken]) {
    assert.ok(!outside.includes(secret));
    assert.ok(!sent.some((request) => request.url().includes(secret)));
  }
  const withCode = sent.filter((request) => /[?&]code=/.test(request.url()));
  assert.equal(withCode.length, 1);
  for (const request of sent) {
    const referrer = (await request.allHeaders()).referer ?? "";
    assert.ok(!referrer.includes("code=") && !referrer.includes("/ui/"), `${request.url()} got ${referrer}`);
  }
  await page.goBack();
  await page.goForward();
  assert.doesNotMatch(page.url(), /code=/);
  const kept = await page.evaluate(() => performance.getEntriesByType("navigation").map(({ name }) => name));
  assert.ok(!kept.some((url) => url.includes(token)));
});

test("the requests of a sign-in have PKCE, state and nonce of their own", async () => {
  const seen = [];
  for (let time = 0; time < 2; time++) {
    const page = await open();
    await show(page, DEEP);
    const [request] = await Promise.all([
      page.waitForRequest((each) => each.url().includes("code_challenge=")),
      page.getByRole("button", { name: ISSUERS.issuer.replace("http://", "") }).click(),
    ]);
    const query = Object.fromEntries(new URL(request.url()).searchParams);
    assert.equal(query.code_challenge_method, "S256");
    assert.equal(query.redirect_uri, UI);
    assert.equal(query.response_type, "code");
    for (const name of ["code_challenge", "state", "nonce"]) assert.match(query[name], /^[\w-]{43}$/);
    seen.push(query.code_challenge, query.state, query.nonce);
    await page.context().close();
  }
  assert.equal(new Set(seen).size, 6);
});

test("a token is renewed before it expires, once for all requests of a page, and refresh tokens rotate", async () => {
  const page = await adaAt();
  const before = await held(page);
  await changeGrant(page, { expiresMs: Date.now() + 1000 });
  const renewals = [];
  page.on("request", (request) => request.url().endsWith("/token") && renewals.push(request));
  await page.reload();
  await settled(page);
  assert.match(await heading(page), /sales/);
  const after = await held(page);
  assert.equal(renewals.length, 1);
  assert.notEqual(after.token, before.token);
  assert.notEqual(after.grant.refreshToken, before.grant.refreshToken);
  assert.ok(after.grant.expiresMs > Date.now() + 60_000);
});

test("a token that the server refuses is renewed, and the request sent again", async () => {
  const page = await adaAt();
  await change(page, "arco-login", { token: "expired" });
  await page.reload();
  await settled(page);
  assert.match(await heading(page), /sales/);
  assert.notEqual((await held(page)).token, "expired");
});

test("who can't be renewed signs in again, and comes back to the page", async () => {
  const page = await adaAt();
  await changeGrant(page, { refreshToken: "unknown", expiresMs: 0 });
  await page.reload();
  await page.getByText("Your sign-in has ended").waitFor();
  await assertRefused(page, /invalid_grant/);
  await page.getByRole("button", { name: ISSUERS.issuer.replace("http://", "") }).click();
  await page.getByRole("button", { name: "Sign out" }).waitFor(); // the issuer knows the browser
  await settled(page);
  assert.equal(page.url(), `${UI}#${DEEP}`);
});

test("without a refresh token the server's own reason is shown", async () => {
  const page = await adaAt();
  await changeGrant(page, { refreshToken: null }, { token: "expired" });
  await page.reload();
  await page.getByText("Your sign-in has ended").waitFor();
  await assertRefused(page, /401/);
});

test("a stolen refresh token ends when its owner renews, and with it the grant", async () => {
  const page = await adaAt();
  const { grant } = await held(page);
  await changeGrant(page, { expiresMs: 0 });
  await page.reload();
  await settled(page);
  const form = { grant_type: "refresh_token", client_id: "console", refresh_token: grant.refreshToken };
  const stolen = await fetch(`${ISSUERS.issuer}/token`, { method: "POST", body: new URLSearchParams(form) });
  assert.equal(stolen.status, 400);
  await changeGrant(page, { expiresMs: 0 });
  await page.reload();
  await page.getByText("Your sign-in has ended").waitFor();
});

test("an issuer that is down ends no login", async () => {
  const page = await adaAt();
  await changeGrant(page, { expiresMs: 0 });
  await page.route(`${ISSUERS.issuer}/**`, (route) => route.abort());
  await page.reload();
  assert.match(await page.getByRole("alert").first().innerText(), /does not answer this page/);
  assert.ok(await held(page));
  await page.unroute(`${ISSUERS.issuer}/**`);
  await page.reload();
  await settled(page);
  assert.match(await heading(page), /sales/);
});

test("a token that still counts is used while its issuer is down", async () => {
  const page = await adaAt();
  await changeGrant(page, { expiresMs: Date.now() + 20_000 });
  await page.route(`${ISSUERS.issuer}/**`, (route) => route.abort());
  await page.reload();
  await settled(page);
  assert.match(await heading(page), /sales/);
});

test("who refuses at the issuer reads so", async () => {
  const page = await open();
  await show(page, DEEP);
  await goToIssuer(page);
  await page.getByRole("link", { name: "Cancel" }).click();
  await page.getByText("You were not signed in").waitFor();
  await assertRefused(page, /access_denied/);
  assert.equal(page.url(), `${UI}#${DEEP}`);
  assert.deepEqual(await axe(page), []);
});

test("an issuer whose tokens are for another service signs nobody in, and the server's reason is shown", async () => {
  const page = await open();
  await show(page, DEEP);
  await goToIssuer(page, ISSUERS.elsewhere);
  await agree(page);
  await page.getByText("Your sign-in has ended").waitFor();
  await assertRefused(page, /not for this server.*401/s);
});

test("an issuer that answers no page is named, and what to do", async () => {
  const page = await open();
  await show(page, DEEP);
  await goToIssuer(page, ISSUERS.closed);
  await agree(page);
  await page.getByText("You were not signed in").waitFor();
  await assertRefused(page, /does not answer this page.*CORS/s);
});

test("a clock that is wrong is named", async () => {
  const page = await open();
  await show(page, DEEP);
  const answer = await interceptedAnswer(page);
  await page.clock.setFixedTime(Date.now() + 86_400_000);
  await page.goto(answer);
  await assertRefused(page, /clock/);
});

test("signing out forgets the tokens, ends the refresh token, and leads to the issuer's own page", async () => {
  const page = await adaAt();
  const { grant } = await held(page);
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.waitForURL((url) => url.href.startsWith(ISSUERS.issuer));
  const form = { grant_type: "refresh_token", client_id: "console", refresh_token: grant.refreshToken };
  const late = await fetch(`${ISSUERS.issuer}/token`, { method: "POST", body: new URLSearchParams(form) });
  assert.equal(late.status, 400);
  await page.locator("button[name=logout]").click();
  await page.waitForURL(`${UI}*`);
  assert.equal(await heading(page), "Sign in");
  assert.equal(await page.evaluate(() => sessionStorage.length), 0);
});

test("signing out works while the issuer is down, and the page says what it could not do", async () => {
  const page = await adaAt();
  await page.route(`${ISSUERS.issuer}/**`, (route) => route.abort());
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByText("You are signed out here").waitFor();
  await assertRefused(page, /does not answer this page/);
});

test("an answer with another state signs nobody in", async () => {
  const page = await open();
  await show(page, DEEP);
  const answer = new URL(await interceptedAnswer(page));
  answer.searchParams.set("state", "x".repeat(43));
  await page.goto(answer.href);
  await assertRefused(page, /state/);
});

test("an answer of another issuer signs nobody in", async () => {
  for (const iss of [ISSUERS.elsewhere, "https://evil.example", `${ISSUERS.issuer}/`, null]) {
    const page = await open();
    await show(page, DEEP);
    const answer = new URL(await interceptedAnswer(page));
    answer.searchParams.set("iss", iss);
    if (iss === null) answer.searchParams.delete("iss");
    await page.goto(answer.href);
    await assertRefused(page, /iss/);
    await page.context().close();
  }
});

test("a sign-in that was begun at one issuer does not end at another", async () => {
  const page = await open();
  await show(page, DEEP);
  const answer = await interceptedAnswer(page, ISSUERS.elsewhere);
  await change(page, BEGUN, { issuer: ISSUERS.issuer });
  await page.goto(answer);
  await assertRefused(page, /iss/);
});

test("an ID token with another nonce signs nobody in", async () => {
  const page = await open();
  await show(page, DEEP);
  const answer = await interceptedAnswer(page);
  await change(page, BEGUN, { nonce: "x".repeat(43) });
  await page.goto(answer);
  await assertRefused(page, /nonce/);
});

test("a code is worth nothing without the verifier of its tab", async () => {
  const page = await open();
  await show(page, DEEP);
  const answer = await interceptedAnswer(page);
  await change(page, BEGUN, { verifier: "x".repeat(43) });
  await page.goto(answer);
  await assertRefused(page, /invalid_grant/);
});

test("a code that someone else got is not taken for this sign-in", async () => {
  const attacker = await open();
  await show(attacker, DEEP);
  const injected = new URL(await interceptedAnswer(attacker)).searchParams.get("code");
  const page = await open();
  await show(page, DEEP);
  const answer = new URL(await interceptedAnswer(page));
  answer.searchParams.set("code", injected);
  await page.goto(answer.href);
  await assertRefused(page, /invalid_grant/);
});

test("an answer counts once", async () => {
  const page = await open();
  await show(page, DEEP);
  const answer = await interceptedAnswer(page);
  const begun = await page.evaluate((key) => sessionStorage.getItem(key), BEGUN);
  await page.goto(answer);
  await page.getByRole("button", { name: "Sign out" }).waitFor();
  await page.goto("about:blank");
  await page.goto(answer);
  await page.getByText("This tab has not begun the sign-in").waitFor();
  const first = (await held(page)).token;
  await page.evaluate(([key, text]) => sessionStorage.setItem(key, text), [BEGUN, begun]);
  await page.goto("about:blank");
  await page.goto(answer);
  await page.getByText("invalid_grant").waitFor();
  assert.equal((await held(page)).token, first);
});

test("a notice stays when the server names who is signed in", async () => {
  const page = await open();
  await show(page, DEEP);
  const answer = await interceptedAnswer(page);
  await page.route("**/caller", (route) => route.abort());
  await page.goto(answer);
  await page.getByRole("button", { name: "Sign out" }).waitFor();
  await page.goto("about:blank");
  await page.unroute("**/caller");
  let release;
  const noticed = new Promise((resolve) => {
    release = resolve;
  });
  await page.route("**/caller", (route) => noticed.then(() => route.continue()));
  await page.goto(answer);
  const notice = page.getByText("This tab has not begun the sign-in");
  await notice.waitFor();
  const named = page.waitForResponse(/[/]caller$/);
  release();
  await named;
  await settled(page);
  assert.equal(await notice.count(), 1);
});

test("a change sends the code of the sign-in no second time", async () => {
  const grant = { type: "namespace", namespace: ["sales"], privilege: "CATALOG_MANAGE_ACCESS" };
  const root = await Api.login(ROOT);
  await root.must("PUT", `${MANAGEMENT}/catalogs/arco/catalog-roles/reader/grants`, { grant });
  const page = await open();
  const codes = [];
  page.on("request", (request) => request.postData()?.includes("authorization_code") && codes.push(request.url()));
  await show(page, `${DEEP}/access`);
  await signInAt(page);
  await settled(page);
  await page.getByText("Grant a privilege here").first().click();
  await settled(page);
  await page.getByLabel("To the catalog role").fill("reader");
  await page.getByRole("combobox", { name: "Privilege" }).selectOption({ index: 1 });
  await press(page, page.getByRole("button", { name: "Grant a privilege", exact: true }));
  await settled(page);
  await confirm(page, "Grant");
  await page.waitForLoadState("networkidle");
  assert.deepEqual(codes, [`${ISSUERS.issuer}/token`]);
  assert.equal(await page.getByText("You were not signed in").count(), 0);
});

test("an answer counts in no other tab", async () => {
  const page = await open();
  await show(page, DEEP);
  const answer = await interceptedAnswer(page);
  const other = await page.context().newPage();
  await other.goto(answer);
  await assertRefused(other, /has not begun the sign-in/);
});

test("a link signs nobody in, whoever made it, and replaces no login", async () => {
  const attacker = await open();
  await show(attacker, DEEP);
  const link = await interceptedAnswer(attacker);
  const site = createServer((_, response) => {
    response.setHeader("content-type", "text/html");
    response.end(`<a href="${link.replaceAll("&", "&amp;")}">prize</a>`);
  }).listen(0, "127.0.0.1");
  await once(site, "listening");
  const page = await open();
  await page.goto(`http://localhost:${site.address().port}/`);
  await page.getByText("prize").click();
  await assertRefused(page, /has not begun the sign-in/);

  const ada = await adaAt();
  const before = await held(ada);
  await ada.goto(`http://localhost:${site.address().port}/`);
  await ada.getByText("prize").click();
  await ada.getByText("This tab has not begun the sign-in").waitFor();
  assert.equal((await held(ada)).token, before.token);
  site.close();
});

test("a link can put no words of its own on the page, and lead nowhere else", async () => {
  const page = await open();
  for (const query of [
    "?error=access_denied&error_description=Call%20555-0100&state=x",
    "?error=%3Cscript%3Ealert(1)%3C/script%3E&error_description=%3Cimg%20src=x%20onerror=alert(1)%3E",
    "?error=x&error_uri=https://evil.example&state=",
    "?code=x&state=x&page=https://evil.example&redirect_uri=//evil.example&post_logout_redirect_uri=//evil.example",
    "?code=x&state=x&iss=javascript:alert(1)",
    "?code=x&code=y&state=x&state=y",
    "?code=",
  ]) {
    for (const hash of ["#//evil.example/", "#javascript:alert(1)", "#/c/arco", ""]) {
      await page.goto("about:blank");
      await page.goto(`${UI}${query}${hash}`);
      await assertRefused(page, /has not begun the sign-in/);
      assert.doesNotMatch(await page.locator("body").innerText(), /555|evil|alert/);
      assert.equal(page.url(), `${UI}${hash}`);
      assert.equal(await page.locator("main a").count(), 0);
    }
  }
});

test("the words of an issuer are text", async () => {
  const page = await open();
  await show(page, DEEP);
  await goToIssuer(page);
  await page.goto(UI);
  const { state } = await page.evaluate((key) => JSON.parse(sessionStorage.getItem(key)), BEGUN);
  const words = "<img src=x onerror=alert(1)>";
  const answer = new URLSearchParams({ error: words, error_description: words, state, iss: ISSUERS.issuer });
  await page.goto(`${UI}?${answer}`);
  await assertRefused(page, /<img src=x/);
  assert.equal(await page.locator("main img").count(), 0);
});

test("an issuer's document leads to no address but a page's", async () => {
  for (const address of ["javascript:alert(1)", "data:text/html,x", "http://evil.example/authorize", "file:///etc/x"]) {
    const page = await open();
    await altered(page, { authorization_endpoint: address });
    await show(page, DEEP);
    await page.getByRole("button", { name: ISSUERS.issuer.replace("http://", "") }).click();
    assert.match(await page.getByRole("alert").innerText(), /no address of a page/, address);
    assert.equal(page.url(), `${UI}#${DEEP}`);
    await page.context().close();
  }
});

test("an issuer's document ends no session at an address that is none of a page", async () => {
  for (const address of ["javascript:alert(1)", "data:text/html,x", "http://evil.example/logout"]) {
    const page = await adaAt();
    await altered(page, { end_session_endpoint: address });
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByText("You are signed out here").waitFor();
    await assertRefused(page, /no address of a page/);
    assert.equal(page.url(), `${UI}#${DEEP}`);
    await page.context().close();
  }
});

test("a document of another issuer is not taken for this one's", async () => {
  const page = await open();
  await altered(page, { issuer: ISSUERS.elsewhere });
  await show(page, DEEP);
  await page.getByRole("button", { name: ISSUERS.issuer.replace("http://", "") }).click();
  assert.match(await page.getByRole("alert").innerText(), /issuer/);
  assert.equal(page.url(), `${UI}#${DEEP}`);
});

test("another site gets no hold of a window of the console", async () => {
  const site = createServer((_, response) => {
    response.setHeader("content-type", "text/html");
    response.end('<title>evil</title><button onclick="window.w = window.open(target)">open</button>');
  }).listen(0, "127.0.0.1");
  await once(site, "listening");
  const page = await open();
  await page.goto(`http://localhost:${site.address().port}/`);
  await page.evaluate((target) => {
    globalThis.target = target;
  }, UI);
  const [popup] = await Promise.all([page.waitForEvent("popup"), page.getByText("open").click()]);
  await popup.getByRole("heading", { name: "Sign in", level: 1 }).waitFor();
  await page.waitForFunction(() => globalThis.w.closed);
  assert.equal(await popup.evaluate(() => window.opener), null);
  site.close();
});

test("no page caused an error or a report of the policy", () => {
  assert.deepEqual(faults, []);
});

test("a code goes to no origin that the server does not name, whatever the issuer's document has", async () => {
  const got = [];
  const site = createServer((request, response) => {
    got.push(request.url);
    response.setHeader("access-control-allow-origin", "*");
    response.end("{}");
  }).listen(0, "127.0.0.1");
  await once(site, "listening");
  const page = await open();
  await altered(page, { token_endpoint: `http://127.0.0.1:${site.address().port}/token` });
  await show(page, DEEP);
  await goToIssuer(page);
  await agree(page);
  await page.getByText("You were not signed in").waitFor();
  await assertRefused(page, /does not answer this page.*ARCO_CONSOLE_ORIGINS/s);
  assert.deepEqual(got, []);
  site.close();
});

test("a page can send a token nowhere but to the server and its issuers", async () => {
  const got = [];
  const site = createServer((request, response) => {
    got.push(request.url);
    response.setHeader("access-control-allow-origin", "*");
    response.end();
  }).listen(0, "127.0.0.1");
  await once(site, "listening");
  const page = await adaAt();
  const evil = `http://127.0.0.1:${site.address().port}`;
  const outcome = await page.evaluate(async (target) => {
    const { token } = JSON.parse(sessionStorage.getItem("arco-login"));
    const refused = [];
    const attempt = (name, work) => work().catch(() => refused.push(name));
    await attempt("fetch", () => fetch(`${target}/?${token}`));
    await attempt("no-cors", () => fetch(`${target}/?${token}`, { mode: "no-cors" }));
    navigator.sendBeacon(`${target}/?${token}`);
    new Image().src = `${target}/?${token}`;
    const socket = new WebSocket(`${target.replace("http", "ws")}/?${token}`);
    await new Promise((done) => socket.addEventListener("error", done));
    refused.push("socket");
    const form = document.createElement("form");
    form.action = `${target}/${token}`;
    document.body.append(form);
    form.submit();
    const frame = document.createElement("iframe");
    frame.src = `${target}/?${token}`;
    document.body.append(frame);
    return refused;
  }, evil);
  await page.waitForTimeout(500);
  assert.deepEqual(outcome, ["fetch", "no-cors", "socket"]);
  assert.deepEqual(got, []);
  assert.equal(page.url(), `${UI}#${DEEP}`);
  assert.ok(faults.length > 0);
  site.close();
});
