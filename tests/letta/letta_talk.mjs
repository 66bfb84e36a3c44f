// The client that Letta publishes for TypeScript, unmodified: what it makes of a server, as JSON on stdout.

import Letta, { APIError, BadRequestError, ConflictError, NotFoundError } from "@letta-ai/letta-client";

const [baseURL, apiKey] = process.argv.slice(2);
let posts = 0;
const counted = (url, options) => {
  posts += options?.method?.toUpperCase() === "POST" ? 1 : 0;
  return fetch(url, options);
};
const client = new Letta({ baseURL, apiKey, fetch: counted });
const told = {};

async function all(list) {
  const found = [];
  for await (const item of list) {
    found.push(item);
  }
  return found;
}

const agent = await client.agents.create({ name: "Ada", model: "openai/gpt-5" });
told.agent = [agent.name, (await client.agents.retrieve(agent.id)).id === agent.id];
told.health = (await client.health()).status;

// A stream by tokens, in the background, with a question at its end
const stream = await client.agents.messages.create(agent.id, {
  messages: [{ role: "user", content: "Go.", otid: "o1" }],
  streaming: true,
  stream_tokens: true,
  background: true,
});
const frames = await all(stream);
told.frames = frames.map((frame) => [frame.message_type, frame.seq_id ?? null]);
const request = frames.find((frame) => frame.message_type === "approval_request_message");
told.call = [request.tool_call.name, JSON.parse(request.tool_call.arguments)];
const run = frames[0].run_id;

// Something else meanwhile is a conflict, and is not tried again
posts = 0;
try {
  await client.agents.messages.create(agent.id, { input: "And now?" });
} catch (error) {
  told.conflict = [error instanceof ConflictError, error.error.detail, posts];
}

// The answer, and how it goes on
const rest = await client.agents.messages.create(agent.id, {
  messages: [
    {
      type: "approval",
      approvals: [
        { type: "approval", tool_call_id: request.tool_call.tool_call_id, approve: false, reason: "Not here" },
      ],
    },
  ],
  streaming: true,
});
told.rest = (await all(rest)).map((frame) => frame.content ?? frame.stop_reason ?? frame.message_type);

// Taken up again, sent again
const resumed = await all(await client.runs.messages.stream(run, { starting_after: 3 }));
told.resumed = resumed.map((frame) => [frame.message_type, frame.seq_id ?? null]);
const again = await all(
  await client.agents.messages.create(agent.id, {
    messages: [{ role: "user", content: "Go.", otid: "o1" }],
    streaming: true,
    background: true,
  }),
);
told.again = again.map((frame) => frame.run_id).filter((id) => id !== undefined && id !== run);

// Lists, page by page
const messages = await all(client.agents.messages.list(agent.id, { limit: 2 }));
told.messages = messages.map((message) => message.message_type);
told.runs = (await all(client.runs.list({ agent_id: agent.id }))).map((one) => [one.id === run, one.status]);
told.agents = (await all(client.agents.list({ limit: 1 }))).length;

// Errors
try {
  await client.agents.messages.create(agent.id, { messages: [{ type: "approval", approve: true }] });
} catch (error) {
  told.nothing = [error instanceof BadRequestError, error.error.detail];
}
try {
  await client.agents.retrieve("agent-none");
} catch (error) {
  told.unknown = error instanceof NotFoundError;
}
const failing = await client.agents.messages.create(agent.id, { input: "Fail.", streaming: true });
const seen = [];
try {
  for await (const frame of failing) {
    seen.push(frame.content ?? frame.stop_reason ?? frame.message_type);
  }
} catch (error) {
  told.failed = [seen, error instanceof APIError, error.error.error_type];
}

// A complete answer, a conversation, and cancelling
const answer = await client.agents.messages.create(agent.id, { input: "Hello." });
told.answer = [answer.messages.at(-1).content, answer.stop_reason.stop_reason];
const conversation = await client.conversations.create({ agent_id: agent.id });
const talk = await client.conversations.messages.create(conversation.id, { input: "Hello." });
told.talk = (await all(talk)).map((frame) => frame.message_type);
told.cancelled = await client.agents.messages.cancel(agent.id).catch((error) => error.status);

console.log(JSON.stringify(told));
