import { useMemo } from "preact/hooks";
import { Code, Section } from "../parts/basics";
import { login, loginKinds } from "../session";
import { blocksFor } from "../settings";

/** The address of this server for engines: that of the console without its own last part. */
export function serverUri(): string {
  return `${location.origin}${location.pathname.replace(/\/ui\/.*$/, "")}`;
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
  const logins = loginKinds();
  const realm = login.value?.realm ?? "";
  const blocks = useMemo(
    () => blocksFor({ uri: serverUri(), warehouse, realm, logins, namespace, table, location }),
    [warehouse, realm, logins, namespace, table, location],
  );
  return (
    <>
      <p>
        Engines read and write the files of the table themselves: on S3, Google Cloud and Azure also set the region, the
        endpoint or the account that your store needs.
        {logins.length > 0 && " Put your own credentials in the place of the words in capitals."}
      </p>
      {blocks.map(({ engine, where, text }) => (
        <Section key={engine} title={engine} aside={<span class="faint">{where}</span>}>
          <Code text={text} label={`settings for ${engine}`} />
        </Section>
      ))}
    </>
  );
}
