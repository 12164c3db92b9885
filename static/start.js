// Starts the dashboard. The theme is set first, so that the page is never painted with the wrong one.
import init from "./planscope.js";
import { pageFiles } from "./page_files.js";

let chosen = null;
try {
  chosen = localStorage.getItem("planscope.theme");
} catch {
  // Without access to local storage, the theme is that of the system.
}
const dark = chosen === "dark" || (chosen !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
document.documentElement.dataset.theme = dark ? "dark" : "light";

// Every page has its own modules (frontend/src/lazy_pages.rs). The modules of the opened page are fetched together with the main
// module. The modules of pages that may be opened next are fetched when the network is idle.
const hintedFiles = new Set();
const addHints = (rel, path) => {
  const page = pageOf(path);
  for (const file of pageFiles[page] ?? []) {
    if (hintedFiles.has(file)) continue;
    hintedFiles.add(file);
    const link = document.createElement("link");
    link.rel = rel;
    link.as = "fetch";
    link.crossOrigin = "anonymous";
    link.href = new URL(file, import.meta.url);
    document.head.append(link);
  }
};

// Returns the name of the page of a path. Most names are the first segment. Unknown names have no modules.
const pageOf = (path) => {
  const [first, second] = path.split("/").slice(1);
  if (["new", "s", "c"].includes(first)) return "explore";
  return second && pageFiles[first.replace(/s$/, "")] ? first.replace(/s$/, "") : first;
};

addHints("preload", location.pathname);

// Prefetches the first responses that the page of a scenario needs, together with the main module
// (frontend/src/client/prefetch.rs).
const prefetched = new Map();
globalThis.planscopeAhead = prefetched;
const fetchJson = (path) => fetch(path, { headers: { accept: "application/json" } });
const opened = /^\/s\/([^/]+)$/.exec(location.pathname);
if (opened) {
  const scenario = `/api/v1/scenarios/${opened[1]}`;
  const engines = fetchJson(`${scenario}/engines`);
  // Without a stored outcome, a request for it would fail.
  const enginesJson = engines.then((answer) => answer.clone().json());
  const outcome = enginesJson.then(({ answers }) => (answers?.length ? fetchJson(`${scenario}/outcome`) : undefined));
  prefetched.set(scenario, fetchJson(scenario)).set(`${scenario}/engines`, engines).set(`${scenario}/outcome`, outcome);
  // Prevents unhandled rejections. The page reports a failed request when it uses the response.
  for (const answer of prefetched.values()) answer.catch(() => {});
}
// A scenario that is opened later needs current responses.
setTimeout(() => prefetched.clear(), 15_000);

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

// A link under the pointer, touched or focused is likely to be opened. Prefetching starts only then, so that a first visit is small.
for (const kind of ["pointerover", "pointerdown", "focusin"]) {
  document.addEventListener(kind, ({ target }) => {
    const link = target instanceof Element ? target.closest("a[href]") : null;
    if (link && link.origin === location.origin) addHints("prefetch", link.pathname);
  });
}
