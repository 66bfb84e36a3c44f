// A chat of the Vercel AI SDK, as `useChat` has one, that does what it is told on stdin, a JSON object a line, and
// tells on stdout what came of it.

import { createInterface } from "node:readline";
import {
  AbstractChat,
  DefaultChatTransport,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  lastAssistantMessageIsCompleteWithToolCalls,
} from "ai";

const [api, id, automatic] = process.argv.slice(2);

let posts = 0;
let cut;

class Chat extends AbstractChat {
  constructor(messages, watched) {
    const state = {
      status: "ready",
      error: undefined,
      messages,
      pushMessage: (message) => (state.messages = [...state.messages, message]),
      popMessage: () => (state.messages = state.messages.slice(0, -1)),
      replaceMessage: (at, message) => (state.messages = state.messages.with(at, structuredClone(message))),
      snapshot: (value) => structuredClone(value),
    };
    super({
      id,
      state,
      transport: new DefaultChatTransport({
        api,
        prepareReconnectToStreamRequest: watched && (() => ({ api: watched })),
        fetch: async (...request) => {
          posts += 1;
          const response = await fetch(...request);
          tell({ header: response.headers.get("x-vercel-ai-ui-message-stream"), status: response.status });
          return cut === undefined ? response : broken(response);
        },
      }),
      sendAutomaticallyWhen: automatic
        ? (options) =>
            lastAssistantMessageIsCompleteWithApprovalResponses(options) ||
            lastAssistantMessageIsCompleteWithToolCalls(options)
        : undefined,
      onData: (data) => tell({ data }),
      onFinish: ({ isAbort, isDisconnect, isError, finishReason }) =>
        tell({ finished: { isAbort, isDisconnect, isError, finishReason } }),
      onError: (error) => tell({ error: error.message }),
    });
  }
}

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
          controller.error(new TypeError("network error"));
        }
      },
    }),
  );
  return new Response(body, response);
}

function tell(what) {
  process.stdout.write(`${JSON.stringify(what)}\n`);
}

let chat = new Chat([]);

const deeds = {
  send: ({ message, ...options }) => chat.sendMessage(message, options),
  approve: (response) => chat.addToolApprovalResponse(response),
  output: (output) => chat.addToolOutput(output),
  resume: () => chat.resumeStream(),
  regenerate: (options) => chat.regenerate(options),
  stop: () => chat.stop(),
  reload: ({ messages, watched }) => {
    chat = new Chat(messages, watched);
  },
  cut: ({ bytes }) => {
    cut = bytes;
  },
  settle: async () => {
    while (chat.status === "streaming" || chat.status === "submitted") {
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  },
  look: () => {},
};

for await (const line of createInterface({ input: process.stdin })) {
  const { do: deed, wait = true, ...options } = JSON.parse(line);
  const doing = Promise.resolve(deeds[deed](options)).catch((error) => tell({ raised: String(error) }));
  if (wait) {
    await doing;
  }
  tell({ done: deed, status: chat.status, posts, messages: chat.messages });
}
