// An old address may name a part that now stands on another page. The page that it was on links to it: follow that link.
const renamed = {
  "a-question_1": "../paths/#a-question",
  connections: "clients/",
  "opt-in-questions": "questions/",
  "opt-in-the-run": "run/",
  "opt-in-the-session": "session/",
  "opt-in-what-a-listener-hears": "run/#what-a-listener-hears",
  "tasks-and-runs": "tasks/",
  "thinkwell.frozen": "tools/#frozen-programs",
  "thinkwell.mcp_servers": "mcp-servers/",
  "thinkwell.permissions": "permissions/",
  "thinkwell.questions": "questions/",
  "thinkwell.skills": "skills/",
  "thinkwell.supervision": "supervision/",
  "thinkwell.workspace": "workspace/",
  thinkwellchannelstelegram: "telegram/",
  "what-a-channel-is": "protocols/",
  "what-can-go-wrong-with-telegram": "telegram-api/#errors-of-telegram",
  "what-events-are-made-of": "parts/",
  "what-is-refused": "errors/",
  "what-it-is-given-and-tells": "protocols/#what-a-channel-is-given-and-reports",
};

/** Where a part stands now that was on this page, or nothing where it still is, or never was. */
function movedTo(id) {
  if (!id || document.getElementById(id)) return;
  if (Object.hasOwn(renamed, id)) return new URL(renamed[id], location).href;
  const links = [...document.querySelectorAll("article a[href*='#']")];
  // A member, such as `thinkwell.Agent.close`, is where its class is.
  for (let part = id; part; part = part.slice(0, Math.max(part.lastIndexOf("."), 0))) {
    const link = links.find((each) => each.pathname !== location.pathname && each.hash === `#${part}`);
    if (link) return new URL(`#${id}`, link).href;
  }
}

function follow() {
  const place = movedTo(decodeURIComponent(location.hash.slice(1)));
  if (place) location.replace(place);
}

addEventListener("hashchange", follow);
follow();
