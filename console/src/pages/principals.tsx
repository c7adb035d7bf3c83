import { useState } from "preact/hooks";
import { read } from "../api";
import { useLoad } from "../load";
import { managementPath, pages } from "../names";
import { Empty, Heading, Loaded, Section } from "../parts/basics";

interface Named {
  name: string;
  clientId?: string;
}

/** The principals and principal roles of the realm, for those who may list them. */
export function PrincipalsPage() {
  return (
    <>
      <Heading title="Principals and principal roles" crumbs={[["Catalogs", pages.home()]]} />
      <div class="halves">
        <Section title="Principals">
          <List
            path="principals"
            field="principals"
            inner="principal-roles"
            innerField="roles"
            what="principal roles"
          />
        </Section>
        <Section title="Principal roles">
          <List path="principal-roles" field="roles" inner="principals" innerField="principals" what="principals" />
        </Section>
      </div>
    </>
  );
}

interface ListProps {
  path: string;
  field: string;
  inner: string;
  innerField: string;
  what: string;
}

function List({ path, field, inner, innerField, what }: ListProps) {
  const loaded = useLoad((signal) => read<Record<string, Named[]>>(managementPath(path), { signal }), [path]);
  return (
    <Loaded of={loaded}>
      {(found) => (
        <ul class="lines">
          {(found[field] ?? []).map((each) => (
            <li key={each.name}>
              <Opened
                summary={each.name}
                aside={each.clientId ?? ""}
                path={managementPath(path, each.name, inner)}
                field={innerField}
                what={what}
              />
            </li>
          ))}
        </ul>
      )}
    </Loaded>
  );
}

function Opened({
  summary,
  aside,
  path,
  field,
  what,
}: {
  summary: string;
  aside: string;
  path: string;
  field: string;
  what: string;
}) {
  const [open, setOpen] = useState(false);
  return (
    <details onToggle={(event) => setOpen((event.currentTarget as HTMLDetailsElement).open)}>
      <summary>
        <bdi>{summary}</bdi> <span class="faint">{aside}</span>
      </summary>
      {open && <Inner path={path} field={field} what={what} />}
    </details>
  );
}

function Inner({ path, field, what }: { path: string; field: string; what: string }) {
  const loaded = useLoad((signal) => read<Record<string, Named[]>>(path, { signal }), [path]);
  return (
    <Loaded of={loaded}>
      {(found) => {
        const names = found[field] ?? [];
        if (names.length === 0) return <Empty>No {what}.</Empty>;
        return (
          <ul class="lines">
            {names.map(({ name }) => (
              <li key={name}>
                <bdi>{name}</bdi>
              </li>
            ))}
          </ul>
        );
      }}
    </Loaded>
  );
}
