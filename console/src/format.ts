/** Numbers, sizes and times as people read them. */

const GROUPS = new Intl.NumberFormat("en");
const UNITS = ["bytes", "KB", "MB", "GB", "TB", "PB"];

/** A whole number with separators; a dash if it is not known. What an engine wrote as one and is none stays as it is. */
export function count(value: number | string | null | undefined): string {
  if (value === null || value === undefined) return "–";
  return /^-?\d{1,30}$/.test(String(value)) ? GROUPS.format(BigInt(value)) : String(value);
}

/** A size in bytes, with three digits; a dash if it is not known. What is no number stays as it is. */
export function bytes(value: number | string | null | undefined): string {
  if (value === null || value === undefined) return "–";
  let size = Number(value);
  if (!Number.isFinite(size)) return String(value);
  let unit = 0;
  for (; size >= 1000 && unit < UNITS.length - 1; unit++) size /= 1000;
  return `${unit === 0 ? size : Number(size.toPrecision(3))} ${UNITS[unit]}`;
}

/** A number with its sign, for changes; empty if it is zero or not known. */
export function signed(value: number | null | undefined, sign: "+" | "−"): string {
  return value ? `${sign}${count(value)}` : "";
}

/** A time on this machine's clock, to the second. */
export function localTime(ms: number): string {
  const at = new Date(ms);
  const two = (value: number) => String(value).padStart(2, "0");
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  return `${day} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

/** Whether a number of milliseconds since 1970 is a time that JavaScript can show. */
export function isTime(ms: number): boolean {
  return !Number.isNaN(new Date(ms).getTime());
}

/** A time in UTC, to the millisecond. */
export function utcTime(ms: number): string {
  return new Date(ms).toISOString().replace("T", " ").replace("Z", " UTC");
}

const AGES: [number, string][] = [
  [60, "second"],
  [60, "minute"],
  [24, "hour"],
  [30, "day"],
  [12, "month"],
  [Number.POSITIVE_INFINITY, "year"],
];

/** How long ago a time was, in its largest unit. */
export function age(ms: number, nowMs: number): string {
  let value = Math.max(0, Math.floor((nowMs - ms) / 1000));
  for (const [size, unit] of AGES) {
    if (value < size) return value === 0 ? "now" : `${value} ${unit}${value === 1 ? "" : "s"} ago`;
    value = Math.floor(value / size);
  }
  return "now";
}

/** A word of a POSIX shell, in quotes unless it needs none. */
export function shellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/** A constant of an API, such as a privilege or a status, as people read it. */
export function words(constant: string): string {
  return constant.toLowerCase().replaceAll("_", " ");
}

/** One of a word, or several of them. */
export function plural(number: number, word: string): string {
  return `${count(number)} ${word}${number === 1 ? "" : "s"}`;
}
