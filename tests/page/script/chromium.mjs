// Drives a real Chromium.
//
// `{"id": 1, "tab": 1, "call": "click", "given": ["#stop"]}` calls the method of a Playwright page, or of an
// object of it (`keyboard.press`), or one of those below.

import { chromium } from "playwright-core";
import { answerCommands } from "./commands.mjs";

const PATIENCE = 15000;

const browser = await chromium.launch({
  executablePath: process.argv[2],
  args: [
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--host-resolver-rules=MAP think.test 127.0.0.1",
    ...process.argv.slice(3),
  ],
});

/** Tabs by number, each in a browser context of its own. */
const tabs = new Map();

const calls = {
  /** Open a tab in a context of its own, or of another tab; `hurry`: what waits for seconds waits for tenths. */
  async open(_, { of = null, hurry = false, ...options }) {
    const context = of === null ? await browser.newContext(options) : tabs.get(of).page.context();
    const page = await context.newPage();
    page.setDefaultTimeout(PATIENCE);
    const tab = { page, problems: [], requests: [], popups: [] };
    tabs.set(tabs.size + 1, tab);
    page.on("pageerror", (error) => tab.problems.push(`error: ${error.stack}`));
    page.on("console", (message) => {
      if (["error", "warning"].includes(message.type()))
        tab.problems.push(`${message.type()}: ${message.text()}`);
    });
    page.on("dialog", async (dialog) => {
      tab.problems.push(`dialog: ${dialog.message()}`);
      await dialog.dismiss();
    });
    page.on("request", (request) => tab.requests.push(`${request.method()} ${request.url()}`));
    page.on("popup", (popup) => tab.popups.push(popup));
    await page.addInitScript(() => {
      addEventListener("securitypolicyviolation", (event) =>
        console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`),
      );
    });
    if (hurry) {
      await page.addInitScript(() => {
        const later = setTimeout;
        window.setTimeout = (does, wait, ...given) =>
          later(does, wait < 1000 ? wait : wait / 10, ...given);
      });
    }
    return tabs.size;
  },
  async close({ page }) {
    const context = page.context();
    await page.close();
    if (!context.pages().length) await context.close();
  },
  problems: ({ problems }) => problems.splice(0),
  requests: ({ requests }) => requests.splice(0),
  /** The pages that were opened, and what they know of who has. */
  popups: ({ popups }) => Promise.all(popups.splice(0).map(about)),
  /** The texts of all elements that a selector finds. */
  texts: ({ page }, selector) => page.locator(selector).allInnerTexts(),
  count: ({ page }, selector) => page.locator(selector).count(),
  /** Wait until an expression is true in the page. */
  async until({ page }, expression) {
    await page.waitForFunction(new Function(`return ${expression}`), null, { polling: 50 });
  },
  value: ({ page }, expression) => page.evaluate(expression),
  async shot({ page }, path) {
    await page.screenshot({ path });
  },
  offline: ({ page }, is) => page.context().setOffline(is),
  grant: ({ page }, names) => page.context().grantPermissions(names),
};

await answerCommands(async (number, call, given) => {
  const tab = tabs.get(number);
  return call in calls ? calls[call](tab, ...given) : called(tab.page, call, given);
});
await browser.close();

async function about(popup) {
  await popup.waitForLoadState();
  return {
    url: popup.url(),
    ...(await popup.evaluate(() => ({ referrer: document.referrer, opener: opener !== null }))),
  };
}

async function called(page, call, given) {
  const names = call.split(".");
  const method = names.pop();
  const object = names.reduce((each, name) => each[name], page);
  const value = await object[method](...given);
  return ["string", "number", "boolean"].includes(typeof value) || Array.isArray(value)
    ? value
    : null;
}
