/** JSON as Iceberg's API has it: ids of snapshots are whole numbers of 64 bits, which a JavaScript number rounds. */

const TEXT_OR_LONG = /"(?:[^"\\]|\\.)*"|(?<![\d.eE+-])-?\d{16,}(?![\d.eE])/g;

/** Parses JSON. Whole numbers of 16 digits and more become texts of these digits. Throws `SyntaxError`. */
export function parseExact(text: string): unknown {
  return JSON.parse(text.replace(TEXT_OR_LONG, (found) => (found.startsWith('"') ? found : `"${found}"`)));
}

/** An id of 64 bits as `parseExact` returns it. */
export type Long = string | number;
