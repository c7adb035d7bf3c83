// Builds the console into the package of the server: files whose names have a hash of their content, and the page that
// names them. `--test` builds the tests of the logic instead, for `node --test`.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename } from "node:path";
import { build } from "esbuild";

const common = { bundle: true, format: "esm", jsx: "automatic", jsxImportSource: "preact", logLevel: "warning" };

async function buildTests() {
  rmSync("build/test", { recursive: true, force: true });
  const entryPoints = readdirSync("test").map((name) => `test/${name}`);
  await build({ ...common, entryPoints, outdir: "build/test", outExtension: { ".js": ".mjs" }, platform: "node" });
}

async function buildConsole(outdir) {
  const { metafile, outputFiles } = await build({
    ...common,
    entryPoints: { app: "src/main.tsx" },
    entryNames: "[name]-[hash]",
    chunkNames: "[name]-[hash]",
    legalComments: "none",
    metafile: true,
    minify: true,
    outdir,
    splitting: true,
    target: "es2022",
    write: false,
  });
  rmSync(outdir, { recursive: true, force: true });
  mkdirSync(outdir, { recursive: true });
  for (const { path, contents } of outputFiles) writeFileSync(`${outdir}/${basename(path)}`, contents);
  const [script, entry] = Object.entries(metafile.outputs).find(([, each]) => each.entryPoint === "src/main.tsx");
  const chunks = entry.imports.filter(({ kind }) => kind === "import-statement").map(({ path }) => basename(path));
  const preloads = chunks.map((name) => `<link rel="modulepreload" href="${name}">`).join("\n    ");
  const page = readFileSync("src/index.html", "utf8")
    .replace("<!-- chunks -->", preloads)
    .replace("app.js", basename(script))
    .replace("app.css", basename(entry.cssBundle));
  writeFileSync(`${outdir}/index.html`, page);
  writeFileSync(`${outdir}/licenses.txt`, licences(metafile));
}

/** The licences of all packages of which the files hold a part. */
function licences({ inputs }) {
  const folders = Object.keys(inputs).flatMap((path) => path.match(/^node_modules\/(?:@[^/]+\/)?[^/]+/) ?? []);
  return [...new Set(folders)]
    .sort()
    .map((folder) => {
      const { name, version } = JSON.parse(readFileSync(`${folder}/package.json`, "utf8"));
      const file = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each));
      return `${name} ${version}\n\n${readFileSync(`${folder}/${file}`, "utf8").trim()}\n`;
    })
    .join(`\n${"-".repeat(72)}\n\n`);
}

await (process.argv[2] === "--test" ? buildTests() : buildConsole("../arco_catalog/http/console/built"));
