// @ts-check
/** Buttons, fields and tabs, and their actions. */

import { byId, icon } from "./elements.js";
import { draftChanged, start, wireForm } from "./form.js";
import { notify } from "./notices.js";
import { page } from "./screen.js";

/** Listen to the controls of the page. */
export function wireControls() {
  byId("notice-close").onclick = () => notify("");
  byId("skip").onclick = () => byId(page.run ? "timeline" : "prompt").focus();
  wireRun();
  wireHome();
}

/** Seconds by which a slider may miss a moment: its values are rounded. */
const SLACK = 0.0005;

function wireRun() {
  byId("stop").onclick = () => page.run?.stop();
  byId("latest").onclick = () => page.run?.timeline.toLatest();
  byId("details").onclick = () => page.run?.panels.showBeside();
  byId("unroll").onclick = () => page.run?.replay.open(!page.run.replay.isOpen);
  byId("unroll").append(icon("fold"));
  byId("plan-strip").onclick = () => page.run?.panels.show("plan");
  byId("back").onclick = () => page.run?.playback.seek(null);
  byId("play").onclick = () => page.run?.playback.playOrPause();
  byId("speed").onchange = () =>
    page.run && (page.run.playback.speed = Number(byId("speed").value));
  byId("scrub").oninput = () => {
    if (page.run) page.run.playback.playing = false;
    page.run?.playback.seek(Number(byId("scrub").value) + SLACK);
  };
  byId("tabs").onkeydown = tabKeys;
  for (const tab of byId("tabs").children)
    tab.onclick = () => page.run?.panels.show(tab.id.replace("tab-", ""));
  wireForm(byId("further"), byId("more"), sendFurther);
  window.addEventListener("resize", () => page.run?.panels.resized());
  new ResizeObserver(() => {
    if (byId("run").dataset.tab === "changes") page.run?.panels.redraw();
  }).observe(byId("panel"));
}

/** @param {KeyboardEvent} event */
function tabKeys(event) {
  const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (by === undefined) return;
  event.preventDefault();
  page.run?.panels.turn(by);
  byId("tabs").querySelector('[aria-selected="true"]')?.focus();
}

async function sendFurther() {
  const field = byId("more");
  const text = field.value;
  if (!text.trim() || page.run === null) return field.focus();
  await page.run.conversation.further(text);
  if (field.value === text) field.value = "";
}

function wireHome() {
  byId("filter").onchange = () => page.home?.look();
  byId("older").onclick = () => {
    if (page.home) page.home.pages++;
    page.home?.look();
  };
  byId("prompt").oninput = byId("schema").oninput = draftChanged;
  window.addEventListener("resize", () => page.run && page.home?.look());
  wireForm(byId("start"), byId("prompt"), start);
}
