// Starts a server on a free port with its own database.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = join(dirname(fileURLToPath(import.meta.url)), "../..");
const program = process.env.PLANSCOPE_PROGRAM ?? join(root, "target/debug/planscope");
const web = process.env.PLANSCOPE_WEB ?? join(root, "target/web");
const READY = /Planscope is at (http:\/\/[^\s"]+)/;
const START_TIMEOUT_MS = 20_000;

/** Returns the environment without PLANSCOPE variables. For example, PLANSCOPE_TOKEN would make the server reject the requests of tests. */
function environment() {
  const foreign = Object.entries(process.env).filter(([name]) => !name.startsWith("PLANSCOPE_"));
  return { ...Object.fromEntries(foreign), NO_COLOR: "1", RUST_LOG: "info" };
}

/** Starts a server. `url` is its address. `stop` ends it, removes its database and returns its log. */
export async function startServer() {
  const folder = mkdtempSync(join(tmpdir(), "planscope-e2e-"));
  const child = spawn(program, ["serve", "--address", "127.0.0.1:0", "--database", join(folder, "e2e.db"), "--web", web], {
    env: environment(),
    stdio: ["ignore", "pipe", "pipe"],
  });
  let log = "";
  const ended = new Promise((resolve) => child.once("close", resolve));
  const stop = async (signal) => {
    child.kill(signal);
    await ended;
    rmSync(folder, { recursive: true, force: true });
  };
  let timeout;
  const starting = new Promise((resolve, reject) => {
    timeout = setTimeout(() => reject(new Error(`the server did not start in time:\n${log}`)), START_TIMEOUT_MS);
    const read = (chunk) => {
      log += chunk;
      const ready = READY.exec(log.replace(/\x1b\[[0-9;]*m/g, ""));
      if (ready) resolve(ready[1]);
    };
    child.stdout.on("data", read);
    child.stderr.on("data", read);
    child.on("error", reject);
    child.on("exit", (code) => reject(new Error(`the server exited with ${code}:\n${log}`)));
  });
  const url = await starting
    .catch(async (error) => {
      await stop("SIGKILL");
      throw error;
    })
    .finally(() => clearTimeout(timeout));
  return {
    url,
    pid: child.pid,
    /** Fetches the JSON of an API path. */
    async get(path) {
      const response = await fetch(`${url}/api/v1${path}`);
      if (!response.ok) throw new Error(`GET ${path}: ${response.status} ${await response.text()}`);
      return response.json();
    },
    async stop() {
      await stop("SIGTERM");
      return log;
    },
  };
}
