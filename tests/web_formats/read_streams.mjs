// Reads streams with the official clients: {"ai-sdk" or "ag-ui": {name: text of server-sent events}} on stdin. Tells
// what each comes to, and what the clients had to say about it.

import { readFileSync } from "node:fs";
import { HttpAgent } from "@ag-ui/client";
import { parseJsonEventStream, readUIMessageStream, uiMessageChunkSchema } from "ai";

const said = [];
for (const level of ["log", "warn", "error"]) {
  console[level] = (...words) => said.push(words.map(String).join(" "));
}

async function aiSdk(text) {
  const errors = [];
  const chunks = parseJsonEventStream({ stream: new Response(text).body, schema: uiMessageChunkSchema }).pipeThrough(
    new TransformStream({
      transform(chunk, controller) {
        if (chunk.success) {
          controller.enqueue(chunk.value);
        } else {
          errors.push(String(chunk.error));
        }
      },
    }),
  );
  let last;
  for await (const message of readUIMessageStream({ stream: chunks, onError: (error) => errors.push(error.message) })) {
    last = message;
  }
  return { message: last, errors };
}

async function agUi(text) {
  const headers = { "content-type": "text/event-stream" };
  const agent = new HttpAgent({ url: "http://none.invalid", fetch: async () => new Response(text, { headers }) });
  const events = [];
  const errors = [];
  const result = await agent
    .runAgent({}, { onEvent: ({ event }) => void events.push(event) })
    .catch((error) => void errors.push(String(error)));
  errors.push(...said.splice(0));
  return { messages: agent.messages, state: agent.state, result, events, errors };
}

const wanted = JSON.parse(readFileSync(0, "utf8"));
const read = {};
for (const [format, streams] of Object.entries(wanted)) {
  read[format] = {};
  for (const [name, text] of Object.entries(streams)) {
    read[format][name] = await (format === "ai-sdk" ? aiSdk : agUi)(text);
  }
}
process.stdout.write(JSON.stringify(read));
