// Starts the dashboard. The theme is set first, so that the page never flashes in the wrong one.
import init from "./planscope.js";
import { rooms } from "./rooms.js";

let chosen = null;
try {
  chosen = localStorage.getItem("planscope.theme");
} catch {
  // A browser that refuses to remember gets the theme of the system.
}
const dark = chosen === "dark" || (chosen !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
document.documentElement.dataset.theme = dark ? "dark" : "light";

// The code of a page comes in parts of its own (frontend/src/rooms.rs). Those of the page that is opened are asked for at once,
// beside the program; those of pages that may come next, when nothing else is loading.
const hinted = new Set();
const hint = (how, path) => {
  const room = roomOf(path);
  for (const file of rooms[room] ?? []) {
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

// A path that is none of these has no code of its own, or a room that is named like it.
const roomOf = (path) => {
  const [first, second] = path.split("/").slice(1);
  if (["new", "s", "c"].includes(first)) return "explore";
  return second && rooms[first.replace(/s$/, "")] ? first.replace(/s$/, "") : first;
};

hint("preload", location.pathname);

// What the page of a scenario begins with is asked for beside the program, which takes these answers as its own
// (frontend/src/client/ahead.rs). What it does not find here it asks for itself.
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
