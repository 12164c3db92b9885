// Starts the dashboard. The theme is set first, so that the page never flashes in the wrong one.
import init from "./planscope.js";

let chosen = null;
try {
  chosen = localStorage.getItem("planscope.theme");
} catch {
  // A browser that refuses to remember gets the theme of the system.
}
const dark = chosen === "dark" || (chosen !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
document.documentElement.dataset.theme = dark ? "dark" : "light";

try {
  await init({ module_or_path: new URL("./planscope_bg.wasm", import.meta.url) });
} catch (error) {
  const notice = document.createElement("p");
  notice.className = "noscript";
  notice.setAttribute("role", "alert");
  notice.textContent = `The dashboard could not start: ${error}. Reload the page; an old browser may lack WebAssembly.`;
  document.body.append(notice);
  throw error;
}
