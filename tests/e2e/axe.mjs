// Accessibility rules that a page violates, as axe reports them.
import { createRequire } from "node:module";

const source = createRequire(import.meta.url)("axe-core").source;

/** Returns one line for each violated rule: name, up to four elements, messages. */
export const findViolations = async (page) => (await runAxe(page)).map(({ line }) => line);

/** Returns the violations that are serious or critical. */
export const findSeriousViolations = async (page) =>
  (await runAxe(page)).filter(({ impact }) => impact === "serious" || impact === "critical").map(({ line }) => line);

async function runAxe(page) {
  await page.evaluate(source);
  return page.evaluate(async () => {
    const { violations } = await window.axe.run(document, { resultTypes: ["violations"] });
    const describe = (node) => `${node.target} ${node.any.map((check) => check.message).join("; ")}`;
    return violations.map(({ id, impact, nodes }) => ({ impact, line: `${id}: ${nodes.slice(0, 4).map(describe).join(" | ")}` }));
  });
}
