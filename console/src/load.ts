/** What a part of a page loads, and how far that is. Parts load beside each other, so none waits for a slow one. */
import { useCallback, useEffect, useRef, useState } from "preact/hooks";

export type Result<T> = { state: "loading" } | { state: "loaded"; value: T } | { state: "failed"; error: Error };

/** Loads a value each time `keys` change, and forgets a request that is no longer of use. */
export function useLoad<T>(load: (signal: AbortSignal) => Promise<T>, keys: readonly unknown[]): Result<T> {
  const [result, setResult] = useState<Result<T>>({ state: "loading" });
  useEffect(() => {
    const aborting = new AbortController();
    setResult({ state: "loading" });
    load(aborting.signal).then(
      (value) => aborting.signal.aborted || setResult({ state: "loaded", value }),
      (error) => aborting.signal.aborted || setResult({ state: "failed", error }),
    );
    return () => aborting.abort();
  }, keys);
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

/** Loads the first page of a list each time `keys` change, and each further one by `more`. */
export function usePages<T>(
  load: (token: string | null, signal: AbortSignal) => Promise<Page<T>>,
  keys: readonly unknown[],
): Pages<T> {
  const [held, setHeld] = useState<Omit<Pages<T>, "more">>(NOTHING);
  const aborting = useRef(new AbortController());
  const token = useRef<string | null>(null);
  const busy = useRef(false);

  const more = useCallback(async () => {
    if (busy.current) return;
    busy.current = true;
    const { signal } = aborting.current;
    setHeld((before) => ({ ...before, loading: true, error: null }));
    try {
      const { items, next } = await untilFilled(load, token.current, signal);
      if (signal.aborted) return;
      token.current = next;
      setHeld((before) => ({ items: [...before.items, ...items], loading: false, error: null, done: next === null }));
    } catch (error) {
      if (!signal.aborted) setHeld((before) => ({ ...before, loading: false, error: error as Error }));
    } finally {
      if (!signal.aborted) busy.current = false;
    }
  }, keys);

  useEffect(() => {
    aborting.current = new AbortController();
    token.current = null;
    busy.current = false;
    setHeld(NOTHING);
    void more();
    return () => aborting.current.abort();
  }, keys);
  return { ...held, more };
}

const NOTHING = { items: [], loading: true, error: null, done: false };

/** Returns the first page that has items, of the next few: a page may be empty and still have a next one. */
async function untilFilled<T>(
  load: (token: string | null, signal: AbortSignal) => Promise<Page<T>>,
  token: string | null,
  signal: AbortSignal,
): Promise<Page<T>> {
  let page = await load(token, signal);
  for (let empty = 1; page.items.length === 0 && page.next !== null && empty < EMPTY_PAGES; empty++) {
    page = await load(page.next, signal);
  }
  return page;
}
