import { Code, Section } from "../parts/basics";
import { login, loginKinds } from "../session";
import { blocksFor, type CatalogTarget } from "../settings";

/** Returns what settings of a catalog on this server are filled with. Its address is the console's without the end. */
export function targetOf(warehouse: string): CatalogTarget {
  const uri = `${location.origin}${location.pathname.replace(/\/ui\/.*$/, "")}`;
  return { uri, warehouse, realm: login.value?.realm ?? "", logins: loginKinds() };
}

/** Settings of each engine for this server and table, ready to paste. */
export function Connect({
  warehouse,
  namespace,
  table,
  location,
}: {
  warehouse: string;
  namespace: readonly string[];
  table: string;
  location: string;
}) {
  const target = { ...targetOf(warehouse), namespace, table, location };
  return (
    <>
      <p>
        Engines read and write the files of the table themselves: on S3, Google Cloud and Azure also set the region, the
        endpoint or the account that your store needs.
        {target.logins.length > 0 && " Put your own credentials in the place of the words in capitals."}
      </p>
      {blocksFor(target).map(({ engine, where, text }) => (
        <Section key={engine} title={engine} aside={<span class="faint">{where}</span>}>
          <Code text={text} label={`settings for ${engine}`} />
        </Section>
      ))}
    </>
  );
}
