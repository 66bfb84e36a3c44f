// @ts-check
/** Addresses that agents send: where they lead, and whether they may be followed. */

/**
 * The host that a browser goes to; empty where that is not certain. Names with letters beyond ASCII appear as
 * ``xn--…``, since letters of different scripts look alike.
 * @param {string} url
 */
export function hostOf(url) {
  if (!/^[a-z][a-z0-9+.-]*:\/\/[^/?#\\]+(?:[/?#]|$)/i.test(url)) return "";
  try {
    return new URL(url).hostname;
  } catch {
    return "";
  }
}

/** An address that may be followed; null: it may not. @param {string} url */
export function safeLink(url) {
  if (url.length > 4000 || /[\x00-\x20\x7f-\x9f]/.test(url)) return null;
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(url)?.[1].toLowerCase();
  if (scheme === "mailto") return url;
  return (scheme === "http" || scheme === "https") && hostOf(url) ? url : null;
}
