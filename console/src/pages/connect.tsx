import type { Catalog } from "../catalog";
import { Code, Section } from "../parts/basics";
import { login, loginKinds } from "../session";
import { blocksFor, type CatalogTarget } from "../settings";

/** Returns what settings of a catalog on this server are filled with. Its address is the console's without the end. */
export function targetOf({ name, fileIo }: Catalog): CatalogTarget {
  const uri = `${location.origin}${location.pathname.replace(/\/ui\/.*$/, "")}`;
  return { uri, warehouse: name, realm: login.value?.realm ?? "", logins: loginKinds(), fileIo };
}

/** Settings of each engine for this server and table, ready to paste. */
export function Connect({
  catalog,
  namespace,
  table,
  location,
}: {
  catalog: Catalog;
  namespace: readonly string[];
  table: string;
  location: string;
}) {
  const target = { ...targetOf(catalog), namespace, table, location };
  return (
    <>
      <p>
        Engines read and write the files of the table themselves
        {target.logins.length > 0
          ? ", with credentials that the catalog gives them. Put your own login in the place of the words in capitals."
          : ", with the credentials of their environment. Region and endpoint are those of this server."}
      </p>
      {blocksFor(target).map(({ engine, where, text }) => (
        <Section key={engine} title={engine} aside={<span class="faint">{where}</span>}>
          <Code text={text} label={`settings for ${engine}`} />
        </Section>
      ))}
    </>
  );
}
