/** The small parts that pages are made of. */
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ApiError } from "../api";
import { age, isTime, localTime, utcTime } from "../format";
import type { Result } from "../load";
import { SignInError } from "../sign-in-errors";

/** The heading of a page: where one is, what it is about, and its title in the browser's tab. */
export function Heading({
  title,
  kind,
  crumbs,
  children,
}: {
  title: string;
  kind?: string;
  crumbs?: [string, string][];
  children?: ComponentChildren;
}) {
  useEffect(() => {
    document.title = `${title} – Arco`;
  }, [title]);
  return (
    <header class="heading">
      {crumbs && (
        <nav aria-label="Where this is">
          <ol class="crumbs">
            {crumbs.map(([name, target]) => (
              <li key={target}>
                <a href={target}>
                  <bdi>{name}</bdi>
                </a>
              </li>
            ))}
          </ol>
        </nav>
      )}
      <h1 tabIndex={-1}>
        {kind && <span class="kind">{kind}</span>} <bdi>{title}</bdi>
      </h1>
      {children}
    </header>
  );
}

/** A part of a page with a heading of its own. */
export function Section({
  title,
  aside,
  children,
}: {
  title: string;
  aside?: ComponentChildren;
  children: ComponentChildren;
}) {
  return (
    <section class="section" aria-label={title}>
      <div class="section-head">
        <h2>{title}</h2>
        {aside && <div class="aside">{aside}</div>}
      </div>
      {children}
    </section>
  );
}

/** What was loaded, or that it is loading, or the error as it came. */
export function Loaded<T>({ of, children }: { of: Result<T>; children: (value: T) => ComponentChildren }) {
  if (of.state === "loading") return <Loading />;
  if (of.state === "failed") return <Failure error={of.error} />;
  return <>{children(of.value)}</>;
}

export function Loading() {
  return (
    <p class="loading" role="status">
      Loading
    </p>
  );
}

/** An error as the API or an issuer sent it, with what helps to find it in a log, or what to do. */
export function Failure({ error }: { error: Error }) {
  const details = detailsOf(error);
  return (
    <div class="failure" role="alert">
      <p>
        <bdi>{error.message}</bdi>
      </p>
      {error instanceof SignInError && <p>{error.advice}</p>}
      {details && (
        <p class="faint">
          <bdi>{details}</bdi>
        </p>
      )}
    </div>
  );
}

function detailsOf(error: Error): string {
  if (error instanceof SignInError) return error.code;
  if (!(error instanceof ApiError)) return "";
  return [error.status, error.type, error.requestId && `request ${error.requestId}`].filter(Boolean).join(" · ");
}

/** What to say, and what to do next, where there is nothing to show. */
export function Empty({ children }: { children: ComponentChildren }) {
  return <div class="empty">{children}</div>;
}

/** A time on this machine's clock, with its age; the time in UTC is at hand. What is no time is shown as it is. */
export function Time({ ms, aged = true }: { ms: number | string; aged?: boolean }) {
  const at = Number(ms);
  if (!isTime(at)) return <bdi>{String(ms)}</bdi>;
  return (
    <time dateTime={new Date(at).toISOString()} title={utcTime(at)}>
      <span class="nowrap">{localTime(at)}</span>
      {aged && <span class="faint"> ({age(at, Date.now())})</span>}
    </time>
  );
}

/** A short word about something, in a colour of its kind. */
export function Chip({
  kind = "plain",
  title,
  children,
}: {
  kind?: "plain" | "good" | "warn" | "bad" | "accent";
  title?: string;
  children: ComponentChildren;
}) {
  return (
    <span class={`chip ${kind}`} title={title}>
      {children}
    </span>
  );
}

/** A text in a fixed width, to be copied. */
export function Code({ text, label }: { text: string; label: string }) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), 2000);
  };
  return (
    <div class="code">
      <pre tabIndex={0} role="region" aria-label={label}>
        <code>{text}</code>
      </pre>
      {navigator.clipboard && (
        <button type="button" class="quiet copy" onClick={copy} aria-label={`Copy ${label}`}>
          {copied ? "Copied" : "Copy"}
        </button>
      )}
    </div>
  );
}

/** Names with values, as a list of terms. A value that is null or empty is left out. */
export function Facts({ of }: { of: [string, ComponentChildren][] }) {
  return (
    <dl class="facts">
      {of
        .filter(([, value]) => value !== null && value !== undefined && value !== "")
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}

/** A table that scrolls sideways by itself where it is wider than the window. */
export function DataTable({
  label,
  columns,
  children,
}: {
  label: string;
  columns: (string | [string, "number"])[];
  children: ComponentChildren;
}) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={`Table: ${label}`}>
      <table>
        <thead>
          <tr>
            {columns.map((column) => {
              const [name, kind] = typeof column === "string" ? [column, ""] : column;
              return (
                <th key={name} scope="col" class={kind}>
                  {name}
                </th>
              );
            })}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}

/** Links between the pages of one thing. */
export function Tabs({ label, tabs, current }: { label: string; tabs: [string, string, string][]; current: string }) {
  return (
    <nav class="tabs" aria-label={label}>
      <ul>
        {tabs.map(([key, name, target]) => (
          <li key={key}>
            <a href={target} aria-current={key === current ? "page" : undefined}>
              {name}
            </a>
          </li>
        ))}
      </ul>
    </nav>
  );
}

/** A form whose sending the page handles itself. */
export function Form({ onSend, ...rest }: JSX.HTMLAttributes<HTMLFormElement> & { onSend: (data: FormData) => void }) {
  const send = (event: SubmitEvent) => {
    event.preventDefault();
    onSend(new FormData(event.currentTarget as HTMLFormElement));
  };
  return <form {...rest} onSubmit={send} />;
}
