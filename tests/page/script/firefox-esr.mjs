// Drives a real Firefox by WebDriver BiDi: Playwright's needs a later one than Debian has.
//
// It knows as many of chromium.mjs's commands as its tests need.

import { spawn } from "node:child_process";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout } from "node:timers/promises";
import { answerCommands } from "./commands.mjs";

const PATIENCE = 15000;

const profile = await mkdtemp(join(tmpdir(), "firefox-"));
const options = ["--headless", "--profile", profile, "--remote-debugging-port=0"];
const firefox = spawn(process.argv[2], options, { stdio: ["ignore", "ignore", "pipe"] });
const ended = new Promise((done) => firefox.on("exit", done));
const address = await new Promise((found, failed) => {
  createInterface({ input: firefox.stderr }).on("line", (line) => {
    const said = /listening on (ws:.*)/.exec(line);
    if (said) found(said[1]);
  });
  ended.then((code) => failed(new Error(`Firefox has ended with ${code}`)));
});

const socket = new WebSocket(`${address}/session`);
/** What waits for an answer, by number. */
const asked = new Map();
/** What went wrong, by browsing context. */
const problems = new Map();
let last = 0;

socket.onmessage = ({ data }) => {
  const { type, id, method, params, result, message } = JSON.parse(data);
  if (type === "success") asked.get(id).resolve(result);
  else if (type === "error") asked.get(id).reject(new Error(message));
  else if (method === "log.entryAdded" && ["error", "warn"].includes(params.level))
    problems.get(params.source.context)?.push(`${params.level}: ${params.text}`);
};
await new Promise((opened) => (socket.onopen = opened));

function ask(method, params = {}) {
  const answer = Promise.withResolvers();
  asked.set(++last, answer);
  socket.send(JSON.stringify({ id: last, method, params }));
  return answer.promise;
}

await ask("session.new", { capabilities: {} });
await ask("session.subscribe", { events: ["log.entryAdded"] });
await ask("script.addPreloadScript", {
  functionDeclaration: String(() => {
    addEventListener("securitypolicyviolation", (event) =>
      console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`),
    );
  }),
});

/** The value of an expression in the page, which may be a promise. */
async function value(context, expression) {
  const { exceptionDetails, result } = await ask("script.evaluate", {
    expression: `(async () => JSON.stringify((await (${expression})) ?? null))()`,
    target: { context },
    awaitPromise: true,
  });
  if (exceptionDetails) throw new Error(exceptionDetails.text);
  return JSON.parse(result.value);
}

/** Browsing contexts by number. */
const tabs = new Map();

const calls = {
  /** Open a tab that shares nothing with others. */
  async open(_, { viewport }) {
    const { userContext } = await ask("browser.createUserContext");
    const { context } = await ask("browsingContext.create", { type: "tab", userContext });
    await ask("browsingContext.setViewport", { context, viewport });
    problems.set(context, []);
    tabs.set(tabs.size + 1, context);
    return tabs.size;
  },
  close: (context) => ask("browsingContext.close", { context }),
  goto: (context, url) => ask("browsingContext.navigate", { context, url, wait: "complete" }),
  problems: (context) => problems.get(context).splice(0),
  value,
  /** Wait until an expression is true in the page. */
  async until(context, expression) {
    const end = Date.now() + PATIENCE;
    while (!(await value(context, expression))) {
      if (Date.now() > end) throw new Error(`not within ${PATIENCE} ms`);
      await setTimeout(50);
    }
  },
};

await answerCommands((number, call, given) => calls[call](tabs.get(number), ...given));
await ask("browser.close");
await ended;
