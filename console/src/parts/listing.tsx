/** Lists that load as one reads on. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Pages } from "../load";
import { Empty, Failure, Loading } from "./basics";

/** In pixels, as the style of these lists has it. */
const ROW_HEIGHT = 36;
/** The number of rows that are rendered above and below those in view. */
const OVERSCAN = 10;

/** What a list has so far, and a button for more. */
export function PagedList<T>({
  of,
  empty,
  children,
}: {
  of: Pages<T>;
  empty: ComponentChildren;
  children: (items: T[]) => ComponentChildren;
}) {
  return (
    <>
      {of.items.length > 0 && children(of.items)}
      {of.done && of.items.length === 0 && <Empty>{empty}</Empty>}
      {of.error && <Failure error={of.error} />}
      {of.loading && <Loading />}
      {!of.loading && !of.done && (
        <button type="button" class="more" onClick={of.more}>
          {of.error ? "Try again" : of.items.length === 0 ? "Nothing so far: look further" : "Show more"}
        </button>
      )}
    </>
  );
}

/** A long list of rows of one height, of which the page holds those in view. It loads on when its end comes near. */
export function VirtualList<T>({
  label,
  of,
  row,
  keyOf,
}: {
  label: string;
  of: Pages<T>;
  row: (item: T) => ComponentChildren;
  keyOf: (item: T) => string;
}) {
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 600 });
  const look = () => {
    if (box.current) setView({ top: box.current.scrollTop, height: box.current.clientHeight });
  };
  useEffect(() => {
    const resizing = new ResizeObserver(look); // also when the first rows give the box its height
    if (box.current) resizing.observe(box.current);
    return () => resizing.disconnect();
  }, []);

  const first = Math.max(0, Math.floor(view.top / ROW_HEIGHT) - OVERSCAN);
  const last = Math.min(of.items.length, Math.ceil((view.top + view.height) / ROW_HEIGHT) + OVERSCAN);
  useEffect(() => {
    if (last >= of.items.length - OVERSCAN && !of.done && !of.loading && !of.error) of.more();
  }, [last, of.items.length, of.done, of.loading, of.error]);
  const space = useRef<HTMLUListElement>(null);
  useEffect(() => {
    // by CSSOM, since the policy of the page takes no style in markup
    if (space.current) space.current.style.height = `${of.items.length * ROW_HEIGHT}px`;
  }, [of.items.length]);

  return (
    <div class="long" ref={box} onScroll={look} tabIndex={0} role="region" aria-label={label}>
      <ul ref={space}>
        {of.items.slice(first, last).map((item, index) => (
          <Row key={keyOf(item)} at={first + index} size={of.items.length} open={!of.done}>
            {row(item)}
          </Row>
        ))}
      </ul>
    </div>
  );
}

function Row({ at, size, open, children }: { at: number; size: number; open: boolean; children: ComponentChildren }) {
  const line = useRef<HTMLLIElement>(null);
  useEffect(() => {
    if (line.current) line.current.style.top = `${at * ROW_HEIGHT}px`;
  }, [at]);
  return (
    <li ref={line} aria-posinset={at + 1} aria-setsize={open ? -1 : size}>
      {children}
    </li>
  );
}
