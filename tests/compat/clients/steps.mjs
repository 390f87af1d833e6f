// Steps of a real client: each result, or the error, is printed by name at the end.
import { createRequire } from "node:module";
import path from "node:path";

const [, , modules, ...given] = process.argv;
const found = {};
export const args = given;

export async function load(name) {
  const require = createRequire(path.join(modules, "noop.js"));
  return import(require.resolve(name));
}

export async function loadFile(file) {
  return import(path.join(modules, file));
}

export async function step(name, run) {
  try {
    found[name] = (await run()) ?? null;
  } catch (error) {
    found[name] = { failed: { ...error, message: String(error?.message ?? error) } };
  }
  return found[name];
}

export function finish() {
  process.stdout.write(JSON.stringify(found));
}
