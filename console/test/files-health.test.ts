import assert from "node:assert/strict";
import { test } from "node:test";
import { countFiles, findingsOf, type PlannedFiles } from "../src/files-health";

const TARGET = 100;
const task = (size: number) => ({ "data-file": { "file-path": `f${size}`, "file-size-in-bytes": size } });
const deletes = { "file-path": "d", "file-size-in-bytes": 1 };
const states = (parts: PlannedFiles[], partial = false) =>
  Object.fromEntries(
    findingsOf(countFiles(parts, TARGET, partial), TARGET).map(({ about, state, text }) => [about, `${state} ${text}`]),
  );

test("files of all parts are counted, and a delete file once", () => {
  const part = { "file-scan-tasks": [task(90), task(74)], "delete-files": [deletes] };
  assert.deepEqual(countFiles([part, part], TARGET, false), {
    data: 4,
    bytes: 328,
    largest: 90,
    small: 2,
    deletes: 1,
    partial: false,
  });
});

test("few small files are well, many are not", () => {
  const few = states([{ "file-scan-tasks": [task(1), task(1)] }]);
  assert.equal(few["Small files"], "good 2 files of 2 below 75 bytes");
  const many = states([{ "file-scan-tasks": Array.from({ length: 5 }, () => task(1)), "delete-files": [deletes] }]);
  assert.equal(many["Small files"], "warn 5 files of 5 below 75 bytes");
  assert.equal(many["Delete files in use"], "warn 1");
});

test("a table without files is well, and one with more than were read is not known", () => {
  assert.equal(states([{}])["Data files read"], "good 0 files, 0 bytes, the largest 0 bytes");
  assert.match(states([{}], true)["Data files read"] ?? "", /^unknown .*there are more$/);
});
