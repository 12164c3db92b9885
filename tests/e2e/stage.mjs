// What a file of tests stands on: a server with a database of its own and a browser, put away when its tests are over.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { after, before } from "node:test";
import { openPage, startBrowser } from "./browser.mjs";
import { root, startServer } from "./server.mjs";

/** Where tests leave pictures for whoever wants to look. */
export const pictures = join(root, "target/e2e");
/** Where pictures of the README go; only on request, so that tests leave the source alone. */
export const readme = process.env.PLANSCOPE_PICTURES;

/**
 * Sets the stage before the tests of a file, then lets `prepare` add to it. `server` and `browser` are there from then on;
 * `open` opens a page in a context of its own, with the options of `openPage`.
 */
export function setStage(prepare = async () => {}) {
  const stage = {
    server: undefined,
    browser: undefined,
    open: (options) => openPage(stage.browser, stage.server, options),
  };
  before(async () => {
    for (const folder of [pictures, readme]) if (folder) mkdirSync(folder, { recursive: true });
    stage.server = await startServer();
    stage.browser = await startBrowser();
    await prepare(stage);
  });
  after(async () => {
    await stage.browser?.close();
    await stage.server?.stop();
  });
  return stage;
}
