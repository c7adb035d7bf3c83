/** Hash routes: the part of the address after `#` names a page, so that every page has a link and the server none. */
import { signal } from "@preact/signals";

/** What the address names: decoded parts of the path, and the values after `?`. */
export interface Route {
  path: string[];
  query: Readonly<Record<string, string>>;
}

/** Parses the part of an address from `#` on. What does not decode stays as it is. */
export function parseRoute(hash: string): Route {
  const [path = "", query = ""] = split(hash.replace(/^#\/?/, ""), "?");
  return {
    path: path.split("/").filter(Boolean).map(decode),
    query: Object.fromEntries(new URLSearchParams(query)),
  };
}

/** Returns the part of an address from `#` on for a page. Values that are empty or missing are left out. */
export function href(path: readonly string[], query: Readonly<Record<string, string | undefined>> = {}): string {
  const given = Object.entries(query).filter((each): each is [string, string] => Boolean(each[1]));
  const search = given.length > 0 ? `?${new URLSearchParams(given)}` : "";
  return `#/${path.map(encodeURIComponent).join("/")}${search}`;
}

/** Goes to another page, as a link does. */
export function navigate(target: string): void {
  location.hash = target;
}

/** The page that the address names now. */
export const route = signal<Route>({ path: [], query: {} });

/** Keeps `route` at what the address names, from now on. */
export function followAddress(): void {
  const read = () => {
    route.value = parseRoute(location.hash);
  };
  addEventListener("hashchange", read);
  read();
}

function split(text: string, separator: string): string[] {
  const at = text.indexOf(separator);
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)];
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
