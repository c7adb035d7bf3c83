/** The frame around every page: where one can go, who one is, and the page that the address names. */
import { useEffect, useRef } from "preact/hooks";
import { readCaller, readServerConfig } from "./api";
import { completeSignIn, signOutOfAll } from "./issuers";
import { useLoad } from "./load";
import { pages } from "./names";
import { CatalogPages } from "./pages/catalog-pages";
import { HomePage } from "./pages/home";
import { NotFound } from "./pages/not-found";
import { PrincipalsPage } from "./pages/principals";
import { Noticed, SignInPage } from "./pages/sign-in";
import { Loaded } from "./parts/basics";
import { Changes } from "./parts/change";
import { SearchBox } from "./parts/search-box";
import type { Redirect } from "./redirect";
import { type Route, route } from "./router";
import { type Login, login, mustSignIn, notice, serverConfig } from "./session";

/** `redirect` is the answer of an issuer that the page was opened with. */
export function App({ redirect }: { redirect: Redirect | null }) {
  const starting = useRef<Promise<void> | null>(null);
  const started = useLoad(() => {
    starting.current ??= start(redirect); // once, not again after each change: an issuer takes a code one time
    return starting.current;
  }, []);
  const main = useRef<HTMLElement>(null);
  const page = route.value.path.join("/");
  const first = useRef(true);
  useEffect(() => {
    if (first.current) {
      first.current = false;
      return;
    }
    notice.value = null;
    scrollTo(0, 0);
    main.current?.querySelector<HTMLElement>("h1")?.focus({ preventScroll: true });
  }, [page]);
  return (
    <>
      <button type="button" class="skip" onClick={() => main.current?.focus()}>
        Skip to the page
      </button>
      <TopBar route={route.value} />
      <main id="main" ref={main} tabIndex={-1}>
        <Loaded of={started}>{() => <CurrentPage route={route.value} />}</Loaded>
      </main>
      <Changes />
      <footer>
        <span>Arco {serverConfig.value?.version}</span>
        <a href="../openapi.json">API</a>
      </footer>
    </>
  );
}

async function start(redirect: Redirect | null): Promise<void> {
  await readServerConfig();
  if (redirect !== null) await completeSignIn(redirect);
}

function CurrentPage({ route: { path, query } }: { route: Route }) {
  if (mustSignIn()) return <SignInPage />;
  return (
    <>
      <Noticed />
      <NamedPage path={path} query={query} />
    </>
  );
}

function NamedPage({ path, query }: Route) {
  const [kind, catalog, ...rest] = path;
  if (kind === undefined) return <HomePage />;
  if (kind === "principals") return <PrincipalsPage />;
  if (kind === "c" && catalog) return <CatalogPages key={catalog} name={catalog} rest={rest} query={query} />;
  return <NotFound />;
}

function TopBar({ route: { path, query } }: { route: Route }) {
  const catalog = path[0] === "c" ? path[1] : undefined;
  const shown = mustSignIn() ? undefined : catalog;
  return (
    <header class="top">
      <a class="brand" href={pages.home()}>
        <svg viewBox="0 0 32 32" aria-hidden="true">
          <path d="M4 28V18a12 12 0 0 1 24 0v10h-6V18a6 6 0 0 0-12 0v10z" />
        </svg>
        Arco
      </a>
      {shown && <CatalogLinks catalog={shown} current={path[2] ?? ""} />}
      {shown && <SearchBox key={query.q ?? ""} catalog={shown} words={query.q ?? ""} label="Search names" />}
      <Session />
    </header>
  );
}

function CatalogLinks({ catalog, current }: { catalog: string; current: string }) {
  const links: [string, string, string][] = [
    ["", catalog, pages.catalog(catalog)],
    ["namespaces", "Namespaces", pages.namespaces(catalog)],
    ["history", "History", pages.history(catalog)],
    ["tasks", "Tasks", pages.tasks(catalog)],
    ["policies", "Policies", pages.policies(catalog)],
    ["roles", "Roles", pages.roles(catalog)],
  ];
  return (
    <nav class="links" aria-label="Catalog">
      <ul>
        {links.map(([key, name, target]) => (
          <li key={key}>
            <a href={target} aria-current={key === current ? "page" : undefined} title={name}>
              <bdi>{name}</bdi>
            </a>
          </li>
        ))}
      </ul>
    </nav>
  );
}

function Session() {
  const config = serverConfig.value;
  if (config === null) return null;
  if (config.logins.length === 0) return <span class="who faint">No login</span>;
  const held = login.value;
  return held && <Who held={held} />;
}

function Who({ held }: { held: Login }) {
  useLoad(readCaller, []); // if it fails, the requests of the page do, too, and show why
  return (
    <span class="who">
      <span role="group" aria-label="Signed in as">
        <bdi title={held.realm ? `Signed in, realm ${held.realm}` : "Signed in"}>{held.name}</bdi>
      </span>
      <button type="button" class="quiet" onClick={signOutOfAll}>
        Sign out
      </button>
    </span>
  );
}
