// @ts-check
/**
 * The page of a server of runs: it shows all runs, or one, as its address says.
 *
 * `home.js` is the list of runs, and `form.js` the form that starts one. `run.js` is the run that is open. Its parts
 * are `header.js`, `timeline.js`, `dock.js` (the open questions), `panels.js`, `conversation.js` and `scrub.js` (the
 * replay). They ask the server by `requests.js`; `watch.js` receives a run's items, which the server makes, and
 * `items.js` keeps them. In a file the run stands in the page itself: `server.js`.
 *
 * Nothing that an agent has sent becomes anything but text nodes, and attributes whose values were checked.
 */

import { wireControls } from "./controls.js";
import { byId } from "./elements.js";
import { Home } from "./home.js";
import { wireKeys } from "./keys.js";
import { enter, lookAgain, wireLogin } from "./login.js";
import { RunView } from "./run.js";
import { page } from "./screen.js";
import { saved } from "./server.js";
import { wireSettings } from "./settings.js";

/** Seconds in the background after which a connection may be dead. */
const ASLEEP = 30;

/**
 * Reconnect at once if a connection may have died unnoticed: after sleep, or on another network.
 */
function watchSleep() {
  let hidden = Infinity;
  const again = () => {
    const { run } = page;
    if (run?.watch && !run.watch.over) run.watch.open();
    page.home?.look();
  };
  window.addEventListener("online", again);
  document.addEventListener("visibilitychange", () => {
    const { run } = page;
    if (!document.hidden) lookAgain();
    if (document.hidden) {
      hidden = performance.now();
      run?.keep();
    } else if (performance.now() - hidden > ASLEEP * 1000) again();
    run?.reschedule();
  });
  window.addEventListener("pagehide", () => page.run?.keep());
}

/** The route of the address. A token in it is removed at once. */
function takeAddress() {
  const asked = new URLSearchParams(location.hash.slice(1));
  const token = asked.get("secret");
  if (token !== null) {
    asked.delete("secret");
    history.replaceState(
      null,
      "",
      `${location.pathname}${location.search}${asked.size ? `#${asked}` : ""}`,
    );
  }
  return { run: asked.get("run"), token };
}

/** The number of changes of the address. */
let routes = 0;

async function route() {
  const { run, token } = saved ? { run: saved.run.id, token: null } : takeAddress();
  const route = (routes += 1);
  if (token !== null) await enter(token);
  if (route !== routes) return; // the address has changed meanwhile
  if (run === null || page.run?.id !== run) {
    page.run?.close();
    for (const id of ["state", "stop", "save", "link"]) byId(id).hidden = true;
    document.body.classList.toggle("of-run", run !== null);
    byId("run").hidden = run === null;
    page.run = run === null ? null : new RunView(run);
  }
  if (saved) return;
  page.home ??= new Home();
  page.home.open(run);
}

wireLogin();
wireControls();
wireKeys();
wireSettings();
watchSleep();
window.addEventListener("hashchange", route);
route();
