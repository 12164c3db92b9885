// Starts the dashboard. The theme is set first, so that the page never flashes in the wrong one.
import init from "./planscope.js";
import { pageFiles } from "./page_files.js";

let chosen = null;
try {
  chosen = localStorage.getItem("planscope.theme");
} catch {
  // A browser that refuses to remember gets the theme of the system.
}
const dark = chosen === "dark" || (chosen !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
document.documentElement.dataset.theme = dark ? "dark" : "light";

// Every page has modules of its own (frontend/src/lazy_pages.rs). The modules of the opened page are fetched with the program,
// those of pages that may be opened next when nothing else is loading.
const hinted = new Set();
const hint = (how, path) => {
  const page = pageOf(path);
  for (const file of pageFiles[page] ?? []) {
    if (hinted.has(file)) continue;
    hinted.add(file);
    const link = document.createElement("link");
    link.rel = how;
    link.as = "fetch";
    link.crossOrigin = "anonymous";
    link.href = new URL(file, import.meta.url);
    document.head.append(link);
  }
};

// Name of the page of a path. Other paths have no module, or a module with their first segment as name.
const pageOf = (path) => {
  const [first, second] = path.split("/").slice(1);
  if (["new", "s", "c"].includes(first)) return "explore";
  return second && pageFiles[first.replace(/s$/, "")] ? first.replace(/s$/, "") : first;
};

hint("preload", location.pathname);

// Responses that the page of a scenario needs first are requested with the program (frontend/src/client/prefetch.rs).
const ahead = new Map();
globalThis.planscopeAhead = ahead;
const ask = (path) => fetch(path, { headers: { accept: "application/json" } });
const opened = /^\/s\/([^/]+)$/.exec(location.pathname);
if (opened) {
  const scenario = `/api/v1/scenarios/${opened[1]}`;
  const engines = ask(`${scenario}/engines`);
  // Nobody is refused: where no engine has answered there is no outcome to ask for.
  const known = engines.then((answer) => answer.clone().json());
  const outcome = known.then(({ answers }) => (answers?.length ? ask(`${scenario}/outcome`) : undefined));
  ahead.set(scenario, ask(scenario)).set(`${scenario}/engines`, engines).set(`${scenario}/outcome`, outcome);
  // A server that is gone is noticed by the program.
  for (const answer of ahead.values()) answer.catch(() => {});
}
// Who opens a scenario later asks anew.
setTimeout(() => ahead.clear(), 15_000);

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

// A link under the pointer, a finger or the focus is likely to be followed. Nothing is fetched before: a first visit stays small.
for (const kind of ["pointerover", "pointerdown", "focusin"]) {
  document.addEventListener(kind, ({ target }) => {
    const link = target instanceof Element ? target.closest("a[href]") : null;
    if (link && link.origin === location.origin) hint("prefetch", link.pathname);
  });
}
