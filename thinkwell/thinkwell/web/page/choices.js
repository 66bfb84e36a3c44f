// @ts-check
/** What may be answered to a question, and words for what became of it. */

import { line, table } from "./text.js";

/**
 * @import {QuestionItem} from "./state.js"
 * @import {Json} from "./text.js"
 */

const KEYS = table({
  allow_once: "y",
  allow_always: "a",
  reject_once: "n",
  reject_always: "d",
});

const LABELS = table({
  allow_once: "Allow once",
  allow_always: "Always allow",
  reject_once: "Deny",
  reject_always: "Always deny",
});

const PLAIN_NAMES =
  /^((allow|accept|approve|yes|reject|deny|decline|no|always|never)( once| always| allow| reject| deny| it| this time)?|always (allow|reject|deny)|just once|once)[.!]*$/i;

/**
 * A button of a question.
 * @typedef {{key: string, label: string, answer: Json, kind: "allow" | "deny" | "other"}} Choice
 */

/**
 * What may be answered, with the keys for it. They follow from what an option means, not from its name.
 * @param {QuestionItem} question
 * @returns {Choice[]}
 */
export function choicesOf(question) {
  if (question.asks === "url") {
    return [
      { key: "y", label: "I have opened it", answer: "accept", kind: "allow" },
      { key: "n", label: "No", answer: "decline", kind: "deny" },
    ];
  }
  if (question.asks === "form") return [{ key: "n", label: "Decline", answer: "decline", kind: "deny" }];
  /** @type {Choice[]} */
  const choices = [];
  const taken = new Set();
  for (const option of question.options.slice(0, 50)) {
    let key = KEYS[option.kind] ?? "";
    if (!key || taken.has(key)) key = [..."123456789"].find((digit) => !taken.has(digit)) ?? "";
    taken.add(key);
    choices.push({
      key,
      label: optionLabel(option),
      answer: { option: option.id },
      kind: optionKind(option.kind),
    });
  }
  if (!question.options.some((option) => option.kind.startsWith("reject"))) {
    choices.push({ key: "n", label: "Deny", answer: "deny", kind: "deny" }); // nobody has to allow what he is asked
  }
  return choices;
}

/** @param {string} kind @returns {Choice["kind"]} */
function optionKind(kind) {
  return kind.startsWith("allow") ? "allow" : kind.startsWith("reject") ? "deny" : "other";
}

/** @param {{name: string, kind: string}} option */
function optionLabel({ name, kind }) {
  const told = line(name, 60);
  const label = LABELS[kind];
  if (label === undefined) return told || line(kind, 60);
  return !told || PLAIN_NAMES.test(told) ? label : `${label}: ${told}`;
}

const OUTCOMES = table({
  allow_once: "allowed",
  allow_always: "allowed for good",
  reject_once: "denied",
  reject_always: "denied for good",
  accept: "accepted",
  decline: "declined",
});

/** Who decides, as people call it. Where nobody is named, the reason says enough. */
const DECIDERS = table({
  human: "elsewhere",
  policy: "by the permission policy",
  remembered: "",
  handler: "by the server's program",
  listener: "by the server's program",
  supervisor: "by the supervisor",
  deadline: "",
  cancel: "",
  letta: "in a Letta client",
});

/** What reasons mean that tell nobody anything as they are. */
const REASONS = table({
  "answered from outside": "",
  'permissions="deny"': "it denies all that is asked",
  'permissions="allow"': "it allows all that is asked",
  "no rule fits; otherwise: deny": "no rule allows it",
  "no rule fits; otherwise: allow": "no rule forbids it",
  "no one who was asked answered it": "nobody is there who may answer",
  "it was answered for the whole session": "it was answered before, for the whole session",
});

/**
 * What became of a question: ``denied by the supervisor: it deletes files``.
 * @param {QuestionItem} question
 * @param {{here?: boolean, caller?: string}} [about] `here`: it was answered in this window. `caller`: whom the
 *   server takes this browser for.
 */
export function outcome({ answer }, { here = false, caller = "" } = {}) {
  if (answer === null) return "";
  const what = answer.choice === null ? "withdrawn" : (OUTCOMES[answer.choice] ?? line(answer.choice, 60));
  const by = line(answer.by, 60);
  const who = here ? "by you" : by && by === caller ? "elsewhere" : (DECIDERS[by] ?? (by && `by ${by}`));
  const why = REASONS[answer.why] ?? line(answer.why, 500);
  return `${what}${who ? ` ${who}` : ""}${why ? `: ${why}` : ""}`;
}

/** Whether the agent got what it asked for; null where the question was withdrawn. @param {QuestionItem} question */
export function wasAllowed({ answer }) {
  const choice = answer?.choice ?? null;
  return choice === null ? null : choice.startsWith("allow") || choice === "accept";
}

/** @param {{verdict: string | null, by: string, why: string}} verdict */
export function verdictWords({ verdict, by, why }) {
  const said = verdict === null ? "no answer" : line(verdict, 60).replaceAll("_", " ");
  return `${line(by, 60)}: ${said}${why ? ` (${line(why, 500)})` : ""}`;
}
