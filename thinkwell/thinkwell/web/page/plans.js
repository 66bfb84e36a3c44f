// @ts-check
/** The plans of a run. */

import { el, icon, meter, nothing } from "./elements.js";
import { plural } from "./numbers.js";
import { DRAWN, drawProse } from "./prose.js";
import { line, shortened, table } from "./text.js";

/** @import {Plan, State, Step} from "./state.js" */

/** @param {ReadonlyArray<Plan>} plans */
export function planCount(plans) {
  const steps = plans.flatMap((plan) => plan.entries);
  return steps.length ? `${steps.filter((step) => step.status === "completed").length}/${steps.length}` : "";
}

/** Steps of a plan that are shown. */
const PLANNED = 1000;

/** @param {HTMLElement} host @param {State} state */
export function drawPlans(host, state) {
  if (!state.plans.length) return host.replaceChildren(nothing("The agent has made no plan so far."));
  host.replaceChildren(
    ...state.plans.map((plan) => {
      const done = plan.entries.filter((step) => step.status === "completed").length;
      const title = plan.id === "main" ? "Plan" : line(plan.id, 100);
      const head = el(
        "h2",
        {},
        title,
        plan.entries.length ? ` ${done}/${plan.entries.length}` : "",
        plan.entries.length ? meter(done / plan.entries.length) : null,
      );
      const prose = el("div", { class: "prose" });
      if (plan.markdown) drawProse(prose, shortened(plan.markdown, DRAWN));
      const more = plan.entries.length - PLANNED;
      return el(
        "section",
        { class: "section" },
        head,
        el("ol", { class: "steps" }, ...plan.entries.slice(0, PLANNED).map(stepNode)),
        more > 0 ? el("p", { class: "dim" }, `… ${plural(more, "more step")}`) : null,
        plan.markdown ? prose : null,
        plan.uri ? el("p", { class: "mono dim" }, line(plan.uri, 1000)) : null,
      );
    }),
  );
}

/** @param {Step} step */
function stepNode(step) {
  const words = table({ completed: "done", in_progress: "being done", pending: "to do" });
  const shape = { completed: "done", in_progress: "running" }[String(step.status)] ?? "pending";
  const what = el("span", { class: "what" }, line(step.content, 1000));
  const first = shape === "running" ? icon("fold") : icon(shape);
  const high =
    step.priority === "high" && step.status !== "completed" ? el("span", { class: "badge" }, "high") : null;
  return el(
    "li",
    { class: step.status, "aria-current": step.status === "in_progress" ? "step" : null },
    el("span", { class: `mark ${shape}`, role: "img", "aria-label": words[step.status] ?? "" }, first),
    what,
    high,
  );
}
