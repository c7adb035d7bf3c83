/** JSON as Iceberg's API has it: ids of snapshots are whole numbers of 64 bits, which a JavaScript number rounds. */

const TEXT_OR_LONG = /"(?:[^"\\]|\\.)*"|(?<![\d.eE+-])-?\d{16,}(?![\d.eE])/g;

/** Parses JSON. Whole numbers of 16 digits and more become texts of these digits. Throws `SyntaxError`. */
export function parseExact(text: string): unknown {
  return JSON.parse(text.replace(TEXT_OR_LONG, (found) => (found.startsWith('"') ? found : `"${found}"`)));
}

const MARK = "\\u0001";
const MARKED = /"\\u0001(-?\d+)\\u0001"/g;

/** Returns a field of a JSON object as text of several lines, with every number as it was sent. */
export function prettyField(text: string, field: string): string {
  const marked = text.replace(TEXT_OR_LONG, (found) => (found.startsWith('"') ? found : `"${MARK}${found}${MARK}"`));
  return JSON.stringify(JSON.parse(marked)[field], null, 2).replace(MARKED, "$1");
}

/** An id of 64 bits as `parseExact` returns it. */
export type Long = string | number;
