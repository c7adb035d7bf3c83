// Prints the settings of each engine for a target, which is the first argument as JSON (tests/console/test_settings.py).
import { build } from "esbuild";

const { outputFiles } = await build({ entryPoints: ["src/settings.ts"], bundle: true, format: "esm", write: false });
const code = Buffer.from(outputFiles[0].contents).toString("base64");
const { blocksFor } = await import(`data:text/javascript;base64,${code}`);
const texts = blocksFor(JSON.parse(process.argv[2])).map(({ engine, text }) => [engine, text]);
process.stdout.write(JSON.stringify(Object.fromEntries(texts)));
