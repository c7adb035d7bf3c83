import { useState } from "preact/hooks";
import { read } from "../api";
import { isTime, plural, signed } from "../format";
import type { Long } from "../json";
import { usePages } from "../load";
import { Chip, Form, Time } from "../parts/basics";
import { PagedList } from "../parts/listing";
import { navigate } from "../router";
import { type Entity, entityPage, entityPath } from "./table-pages";

interface SnapshotSummary {
  "snapshot-id": Long;
  known: boolean;
  operation: string | null;
  "added-records": number | null;
  "deleted-records": number | null;
  "added-data-files": number | null;
  "deleted-data-files": number | null;
}

export interface Version {
  version: number | null;
  id: string;
  current: boolean;
  "metadata-location": string;
  "at-ms": number;
  "at-by": "catalog" | "writer";
  receipt: "committed" | "pending" | "missing" | "none";
  source: string;
  external: boolean | null;
  claimed: boolean;
  client: string | null;
  engine: string | null;
  principal: string | null;
  "run-id": string | null;
  "task-id": string | null;
  "user-id": string | null;
  application: string | null;
  lineage: string | null;
  changes: Record<string, number>;
  "snapshot-id": Long | null;
  "added-snapshots": number;
  snapshots: SnapshotSummary[];
}

interface TimelinePage {
  quality: string | null;
  versions: Version[];
  "next-page-token": string | null;
  end: { reason: string; message: string } | null;
}

/** Who changed a table or view, when, from where, and how far that can be trusted: version by version, newest first. */
export function Timeline({ entity, at, from }: { entity: Entity; at: string; from: string }) {
  const [end, setEnd] = useState<string | null>(null);
  const path = entityPath(entity, "timeline");
  const found = usePages<Version>(
    async (token, signal) => {
      const page = await read<TimelinePage>(path, { query: { pageToken: token, at: at || null }, signal });
      setEnd(page.end?.message ?? null);
      return { items: page.versions, next: page["next-page-token"] };
    },
    [path, at],
  );
  return (
    <>
      <AtTime entity={entity} at={at} />
      {from && <p class="notice">Choose the version to compare version {from.split("-")[0]} with.</p>}
      <PagedList of={found} empty="No versions.">
        {(items) => (
          <ol class="timeline">
            {items.map((each, at) => (
              <Entry key={each.id} entity={entity} version={each} from={from} before={items[at + 1]} />
            ))}
          </ol>
        )}
      </PagedList>
      {found.done && end && <p class="faint">{end}</p>}
    </>
  );
}

/** What was it at a time: a form that leads to the version that was current then. */
function AtTime({ entity, at }: { entity: Entity; at: string }) {
  const target = (ms?: string) => entityPage(entity, ["timeline"], { at: ms });
  const local = Number(at) - new Date().getTimezoneOffset() * 60_000;
  const value = at && isTime(local) ? new Date(local).toISOString().slice(0, 23) : "";
  return (
    <Form
      class="row"
      aria-label="Go to a time"
      onSend={(data) => navigate(target(String(new Date(String(data.get("at"))).getTime())))}
    >
      <label>
        What was it at
        <input type="datetime-local" name="at" step="any" defaultValue={value} required />
      </label>
      <button type="submit">Show</button>
      {at && <a href={target()}>Newest</a>}
    </Form>
  );
}

const SOURCES: Record<string, string> = {
  pipeline: "pipeline run",
  engine: "engine",
  admin: "administrator",
  command: "command",
  task: "task",
  unknown: "source unknown",
};

function Entry({
  entity,
  version,
  from,
  before,
}: {
  entity: Entity;
  version: Version;
  from: string;
  before: Version | undefined;
}) {
  return (
    <li class={version.external ? "external" : ""}>
      <div class="entry-head">
        <h2>
          <a href={entityPage(entity, ["timeline", version.id])}>Version {version.version ?? "without a number"}</a>
        </h2>
        {version.current && <Chip kind="accent">current</Chip>}
        <Chip kind={version.source === "pipeline" ? "good" : "plain"}>{SOURCES[version.source] ?? version.source}</Chip>
        {version.external && (
          <Chip kind="warn" title="Neither a run of the pipeline nor the catalog itself wrote it">
            external write
          </Chip>
        )}
        {version.claimed && <Chip kind="warn">claimed, not proven</Chip>}
        <ReceiptChip version={version} />
        <span class="when">
          <Time ms={version["at-ms"]} />
          {version["at-by"] === "writer" && <span class="faint">, by the writer's clock</span>}
        </span>
      </div>
      <p class="who-line">
        <Who version={version} />
      </p>
      <Changes version={version} />
      <p class="actions">
        {from ? (
          <a href={entityPage(entity, ["compare"], { from, to: version.id })}>Compare with this</a>
        ) : (
          <>
            {before && <a href={entityPage(entity, ["compare"], { from: before.id, to: version.id })}>What changed</a>}
            <a href={entityPage(entity, ["timeline"], { from: version.id })}>Compare with another</a>
          </>
        )}
        <a href={entityPage(entity, ["timeline", version.id])}>Receipt</a>
      </p>
    </li>
  );
}

/** Whether the receipt that proves this version is there. */
function ReceiptChip({ version: { receipt } }: { version: Version }) {
  if (receipt === "committed") return null;
  const why = {
    pending: "The receipt is not written yet: arco reconcile writes it",
    missing: "There is no receipt: who made this version is not known",
    none: "Another catalog wrote this version",
  }[receipt];
  return (
    <Chip kind={receipt === "missing" ? "bad" : "plain"} title={why}>
      {receipt === "none" ? "of another catalog" : `receipt ${receipt}`}
    </Chip>
  );
}

/** Who made a version, and through what. */
export function Who({ version }: { version: Version }) {
  const through = [version.engine, version.client].filter(Boolean).join(" through ");
  const run = version["run-id"] ?? version.application;
  return (
    <>
      {version.principal === null ? (
        <span class="faint">by someone unknown</span>
      ) : (
        <>
          by <bdi>{version["user-id"] ?? version.principal}</bdi>
        </>
      )}
      {through && <span> with {through}</span>}
      {run && (
        <span>
          , run <code>{run}</code>
        </span>
      )}
      {version.lineage && (
        <span class="faint"> · lineage {version.lineage === "Verified" ? "verified" : "declared, not verified"}</span>
      )}
    </>
  );
}

function Changes({ version }: { version: Version }) {
  const kinds = Object.entries(version.changes).map(([kind, times]) => (times > 1 ? `${kind} × ${times}` : kind));
  return (
    <ul class="changes">
      {version.snapshots.map((each) => (
        <li key={String(each["snapshot-id"])}>
          <SnapshotChange snapshot={each} />
        </li>
      ))}
      {version["added-snapshots"] > version.snapshots.length && (
        <li class="faint">and {plural(version["added-snapshots"] - version.snapshots.length, "more snapshot")}</li>
      )}
      {kinds.length > 0 && <li class="faint">{kinds.join(", ")}</li>}
    </ul>
  );
}

function SnapshotChange({ snapshot }: { snapshot: SnapshotSummary }) {
  if (!snapshot.known) return <span class="faint">snapshot {String(snapshot["snapshot-id"])}, expired since</span>;
  const rows = [signed(snapshot["added-records"], "+"), signed(snapshot["deleted-records"], "−")].filter(Boolean);
  const files = [signed(snapshot["added-data-files"], "+"), signed(snapshot["deleted-data-files"], "−")].filter(
    Boolean,
  );
  return (
    <>
      <strong>{snapshot.operation}</strong>
      {rows.length > 0 && ` ${rows.join(" ")} rows`}
      {files.length > 0 && `, ${files.join(" ")} files`}
    </>
  );
}
