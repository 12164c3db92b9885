// Accessibility violations that axe reports for a page.
import { createRequire } from "node:module";

const source = createRequire(import.meta.url)("axe-core").source;

/** One line for every rule that is broken: its name, the first places, and what is wrong there. */
export const findViolations = async (page) => (await runAxe(page)).map(({ line }) => line);

/** Those of them that are serious or critical. */
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
