/** What a part of a page loads, and how far that is. Parts load beside each other, so none waits for a slow one. */
import { signal } from "@preact/signals";
import { useCallback, useEffect, useRef, useState } from "preact/hooks";

export type Result<T> = { state: "loading" } | { state: "loaded"; value: T } | { state: "failed"; error: Error };

/** The number of changes that were sent from this tab. After each, the page reads what it shows once more. */
export const sentChanges = signal(0);

/** Loads a value each time `keys` change, and forgets a request that is no longer of use. After a change the value before
 * it is shown until the new one is there. */
export function useLoad<T>(load: (signal: AbortSignal) => Promise<T>, keys: readonly unknown[]): Result<T> {
  const [result, setResult] = useState<Result<T>>({ state: "loading" });
  const loadedAfter = useRef(-1);
  const changes = sentChanges.value;
  useEffect(() => {
    const aborting = new AbortController();
    if (loadedAfter.current === changes) setResult({ state: "loading" });
    loadedAfter.current = changes;
    load(aborting.signal).then(
      (value) => aborting.signal.aborted || setResult({ state: "loaded", value }),
      (error) => aborting.signal.aborted || setResult({ state: "failed", error }),
    );
    return () => aborting.abort();
  }, [...keys, changes]);
  return result;
}

/** Loads a part of the console that is in a file of its own. Throws an error that describes what to do. */
export async function loadPart<T>(part: Promise<T>): Promise<T> {
  try {
    return await part;
  } catch (error) {
    const cause = error instanceof Error ? error.message : String(error);
    throw new Error(
      `A part of the console did not load. Load this page again: the server may have a newer version, or be down. (${cause})`,
    );
  }
}

/** A page of a list, and the token of the next one, null at the end. */
export interface Page<T> {
  items: T[];
  next: string | null;
}

/** A list as far as it is loaded. */
export interface Pages<T> {
  items: T[];
  loading: boolean;
  error: Error | null;
  done: boolean;
  more: () => void;
}

/** The number of empty pages in a row after which the user decides whether to look further. */
const EMPTY_PAGES = 5;

/** Loads the first page of a list each time `keys` change, and each further one by `more`. After a change it loads as many
 * items as it had, which it shows until then. */
export function usePages<T>(
  load: (token: string | null, signal: AbortSignal) => Promise<Page<T>>,
  keys: readonly unknown[],
): Pages<T> {
  const [held, setHeld] = useState<Omit<Pages<T>, "more">>(NOTHING);
  const aborting = useRef(new AbortController());
  const token = useRef<string | null>(null);
  const busy = useRef(false);
  /** How many items are to be loaded from the start in place of all that is held; null once they are. */
  const anew = useRef<number | null>(1);
  const loadedAfter = useRef(-1);
  const changes = sentChanges.value;

  const next = useCallback(async () => {
    if (busy.current) return;
    busy.current = true;
    const { signal } = aborting.current;
    setHeld((before) => ({ ...before, loading: true, error: null }));
    try {
      const page = await untilFilled(load, token.current, signal, anew.current ?? 1);
      if (signal.aborted) return;
      const isFirst = anew.current !== null;
      anew.current = null;
      token.current = page.next;
      const held = (before: T[]) => (isFirst ? page.items : [...before, ...page.items]);
      setHeld(({ items }) => ({ items: held(items), loading: false, error: null, done: page.next === null }));
    } catch (error) {
      if (!signal.aborted) setHeld((before) => ({ ...before, loading: false, error: error as Error, done: false }));
    } finally {
      if (!signal.aborted) busy.current = false;
    }
  }, keys);

  useEffect(() => {
    aborting.current = new AbortController();
    token.current = null;
    busy.current = false;
    const changed = loadedAfter.current !== changes && loadedAfter.current >= 0;
    loadedAfter.current = changes;
    if (!changed) setHeld(NOTHING);
    anew.current = changed ? Math.max(1, held.items.length) : 1;
    void next();
    return () => aborting.current.abort();
  }, [...keys, changes]);
  return { ...held, more: next };
}

const NOTHING = { items: [], loading: true, error: null, done: false };

/** Returns the next pages as one, until it has so many items or several pages had none: a page may be empty and still
 * have a next one. */
async function untilFilled<T>(
  load: (token: string | null, signal: AbortSignal) => Promise<Page<T>>,
  token: string | null,
  signal: AbortSignal,
  size: number,
): Promise<Page<T>> {
  let { items, next } = await load(token, signal);
  for (let empty = items.length === 0 ? 1 : 0; items.length < size && next !== null && empty < EMPTY_PAGES; ) {
    const page = await load(next, signal);
    empty = page.items.length === 0 ? empty + 1 : 0;
    items = [...items, ...page.items];
    next = page.next;
  }
  return { items, next };
}
