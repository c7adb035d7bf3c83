// How scenarios change something: they press a button, read the dialog, confirm it, and look at what was sent.
import { Api } from "./api.mjs";
import { PLAIN_URI, settled } from "./harness.mjs";

export const dialogOf = (at) => at.getByRole("dialog");
export const historyOf = (namespace, table) =>
  `/c/arco/history?namespace=${namespace}&table=${encodeURIComponent(table)}`;
export const undoButton = (at) => at.getByRole("button", { name: /^Undo the drop/ });

/** Presses a button that asks, and returns what the dialog says. */
export async function press(at, button) {
  await button.click();
  const dialog = dialogOf(at);
  await dialog.waitFor();
  return dialog;
}

/** Confirms what a dialog asks, and waits until it is done and the page was read again. */
export async function confirm(at, name) {
  await dialogOf(at).getByRole("button", { name, exact: true }).click();
  await dialogOf(at).waitFor({ state: "detached" });
  await settled(at);
}

/** The requests of a page that change something, from now on. */
export function changesSent(at) {
  const sent = [];
  at.on("request", (request) => {
    const reads = /\/(check|oauth\/tokens)$/.test(new URL(request.url()).pathname);
    if (request.method() !== "GET" && !reads) {
      sent.push({ url: request.url(), body: request.postData(), key: request.headers()["idempotency-key"] });
    }
  });
  return sent;
}

/** Opens a principal or a role of the list on the page of principals. */
export async function openLine(at, region, name) {
  const line = at
    .getByRole("region", { name: region, exact: true })
    .getByRole("listitem")
    .filter({ has: at.locator("summary bdi", { hasText: new RegExp(`^${name}$`) }) });
  await line.locator("summary").click();
  await settled(at);
  return line;
}

/** A server without logins, on which a table of a new namespace was dropped. */
export async function plainWithDrop(namespace) {
  const plain = new Api(null, PLAIN_URI);
  const { overrides } = await plain.must("GET", "v1/config");
  const base = `v1/${overrides.prefix}/namespaces`;
  await plain.must("POST", base, { namespace: [namespace] });
  const schema = { type: "struct", fields: [{ id: 1, name: "x", type: "long", required: false }] };
  await plain.must("POST", `${base}/${namespace}/tables`, { name: "t", schema });
  await plain.must("DELETE", `${base}/${namespace}/tables/t`);
  return { plain, prefix: overrides.prefix };
}
