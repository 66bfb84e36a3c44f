// An agent of AG-UI, as front ends have one, that does what it is told on stdin, a JSON object a line, and tells
// on stdout what came of it. Its client checks the order of all events.

import { createInterface } from "node:readline";
import { HttpAgent } from "@ag-ui/client";

const [url, threadId] = process.argv.slice(2);

function tell(what) {
  process.stdout.write(`${JSON.stringify(what)}\n`);
}

for (const level of ["log", "warn", "error"]) {
  console[level] = (...words) => tell({ [level]: words.map(String).join(" ") });
}

// The client closes what has broken off already, and that fails.
process.on("unhandledRejection", (error) => tell({ rejected: String(error) }));

let cut;

const agent = new HttpAgent({
  url,
  threadId,
  fetch: async (...request) => {
    const response = await fetch(...request);
    tell({ status: response.status });
    return cut === undefined ? response : broken(response);
  },
});

// The connection breaks off behind so many bytes.
function broken(response) {
  let left = cut;
  cut = undefined;
  const body = response.body.pipeThrough(
    new TransformStream({
      transform(chunk, controller) {
        controller.enqueue(chunk.subarray(0, left));
        left -= chunk.length;
        if (left <= 0) {
          controller.error(new Error("cut off"));
        }
      },
    }),
  );
  return new Response(body, response);
}

const deeds = {
  run: ({ options, message, state }) => {
    if (message !== undefined) {
      agent.addMessage(message);
    }
    if (state !== undefined) {
      agent.setState(state);
    }
    return agent.runAgent(options, { onEvent: ({ event }) => tell({ event }) });
  },
  watch: ({ url }) => {
    const watching = new HttpAgent({ url, fetch: (address) => fetch(address) });
    return watching
      .runAgent({}, { onEvent: ({ event }) => tell({ event }) })
      .then((result) => ({ ...result, messages: watching.messages, state: watching.state }));
  },
  add: ({ message }) => agent.addMessage(message),
  cut: ({ bytes }) => {
    cut = bytes;
  },
  stop: () => agent.abortRun(),
  settle: () => running,
  look: () => {},
};

let running;

for await (const line of createInterface({ input: process.stdin })) {
  const { do: deed, wait = true, ...options } = JSON.parse(line);
  const doing = Promise.resolve()
    .then(() => deeds[deed](options))
    .then((result) => result !== undefined && tell({ result }))
    .catch((error) => tell({ raised: String(error) }));
  if (wait) {
    await doing;
  } else {
    running = doing.then(() => undefined);
  }
  tell({ done: deed, messages: agent.messages, state: agent.state, interrupts: agent.pendingInterrupts });
}
