// Loaded before a script of the tests: packages are found in the folder that THINKWELL_TEST_PACKAGES names,
// although the script lies elsewhere.

import { registerHooks } from "node:module";
import { pathToFileURL } from "node:url";

const packages = new URL("package.json", pathToFileURL(`${process.env.THINKWELL_TEST_PACKAGES}/`));

registerHooks({
  resolve(specifier, context, next) {
    const bare = !/^(\.|\/|[a-z]+:)/.test(specifier);
    const ours = context.parentURL === undefined || !context.parentURL.startsWith(new URL(".", packages).href);
    return bare && ours ? next(specifier, { ...context, parentURL: packages.href }) : next(specifier, context);
  },
});
