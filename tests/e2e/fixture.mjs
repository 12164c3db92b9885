// Fixture of a test file: a server with its own database, and a browser. Both are stopped after the tests.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { after, before } from "node:test";
import { openPage, startBrowser } from "./browser.mjs";
import { root, startServer } from "./server.mjs";

/** Folder of screenshots. */
export const screenshots = join(root, "target/e2e");
/** Folder for the screenshots of the README. Undefined unless `cargo xtask test --update-screenshots` sets it. */
export const readmeScreenshots = process.env.PLANSCOPE_PICTURES;

/**
 * Starts server and browser before the tests of a file and calls `prepare`. `open` opens a page in a new
 * context, with the options of `openPage`.
 */
export function useFixture(prepare = async () => {}) {
  const fixture = {
    server: undefined,
    browser: undefined,
    open: (options) => openPage(fixture.browser, fixture.server, options),
  };
  before(async () => {
    for (const folder of [screenshots, readmeScreenshots]) if (folder) mkdirSync(folder, { recursive: true });
    fixture.server = await startServer();
    fixture.browser = await startBrowser();
    await prepare(fixture);
  });
  after(async () => {
    await fixture.browser?.close();
    await fixture.server?.stop();
  });
  return fixture;
}
