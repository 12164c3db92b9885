// What axe finds serious or critical on a page.
import { createRequire } from "node:module";

const source = createRequire(import.meta.url)("axe-core").source;

/** One line for every rule that is broken: its name, the first places, and what is wrong there. */
export async function serious(page) {
  await page.evaluate(source);
  return page.evaluate(async () => {
    const { violations } = await window.axe.run(document, { resultTypes: ["violations"] });
    const bad = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
    const place = (node) => `${node.target} ${node.any.map((check) => check.message).join("; ")}`;
    return bad.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 4).map(place).join(" | ")}`);
  });
}
