// What is wrong with what can be seen, for those who see little, or nothing: an expression with a list of it.
//
// Names (WCAG 2.2, 4.1.2), contrast of texts (1.4.3), roles with what belongs to them, ids that are unique, headings
// in their order, and sizes of what is pressed (2.5.8).

(() => {
  const found = [];
  const open = document.querySelector("dialog[open]");
  const root = open ?? document.body;
  const shown = (node) => {
    if (node.closest("[hidden], .unseen, noscript, script, style, dialog:not([open])"))
      return false;
    const box = node.getBoundingClientRect();
    return box.width > 0 && box.height > 0 && node.checkVisibility({ visibilityProperty: true });
  };
  const say = (what, node) => found.push(`${what}: ${node.outerHTML.slice(0, 120)}`);

  const texts = (ids) =>
    ids
      .split(/\s+/)
      .map((id) => document.getElementById(id)?.textContent ?? "")
      .join(" ");
  const nameOf = (node) =>
    node.getAttribute("aria-label") ||
    (node.hasAttribute("aria-labelledby") && texts(node.getAttribute("aria-labelledby"))) ||
    [...(node.labels ?? [])].map((label) => label.textContent).join(" ") ||
    node.querySelector(":scope > legend")?.textContent ||
    (/^(a|button|summary)$/.test(node.localName) || node.hasAttribute("role")
      ? node.textContent
      : "") ||
    node.getAttribute("alt") ||
    "";

  const named =
    "button, a[href], input, select, textarea, summary, dialog[open], fieldset, img, nav, [role]:not([role=alert], [role=status]), section";
  for (const node of root.querySelectorAll(named)) {
    if (
      shown(node) &&
      !nameOf(node).trim() &&
      !(node.localName === "section" && !node.hasAttribute("role") && !node.id)
    )
      say("no name", node);
  }

  const ids = [...document.querySelectorAll("[id]")].map((node) => node.id);
  for (const id of ids.filter((each, i) => ids.indexOf(each) !== i)) found.push(`twice: ${id}`);

  for (const node of root.querySelectorAll(
    "[aria-controls], [aria-labelledby], [aria-describedby], label[for]",
  )) {
    for (const name of ["aria-controls", "aria-labelledby", "aria-describedby", "for"]) {
      for (const id of (node.getAttribute(name) ?? "").split(/\s+/).filter(Boolean)) {
        if (!document.getElementById(id)) say(`${name} leads nowhere`, node);
      }
    }
  }
  for (const tab of root.querySelectorAll("[role=tab]"))
    if (!tab.hasAttribute("aria-selected")) say("not selected or not", tab);
  for (const node of root.querySelectorAll("[role=separator][tabindex]"))
    if (!node.hasAttribute("aria-valuenow")) say("no value", node);
  for (const node of root.querySelectorAll("[role=feed] > article"))
    if (!node.hasAttribute("aria-posinset")) say("no place", node);
  if (document.querySelectorAll("main:not([hidden])").length !== 1) found.push("not one main");
  if (document.documentElement.lang !== "en") found.push("no language");

  let level = 1;
  for (const node of root.querySelectorAll("h1, h2, h3, h4, h5, h6")) {
    if (!shown(node)) continue;
    const own = Number(node.localName[1]);
    if (own > level + 1 && !node.closest(".prose")) say(`after h${level}`, node);
    level = own;
  }

  for (const node of root.querySelectorAll(
    "button, a.button, select, summary, input[type=range]",
  )) {
    if (!shown(node)) continue;
    const box = node.getBoundingClientRect();
    if (box.width < 24 || (box.height < 24 && node.id !== "scrub"))
      say(`small, ${Math.round(box.width)}×${Math.round(box.height)}`, node);
  }

  // Contrast

  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgba = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    const [red, green, blue, alpha] = canvas.getImageData(0, 0, 1, 1).data;
    return [red, green, blue, alpha / 255];
  };
  const over = (top, below) =>
    top.slice(0, 3).map((each, i) => each * top[3] + below[i] * (1 - top[3]));
  const behind = (node) => {
    const layers = [];
    for (let each = node; each; each = each.parentElement) {
      const colour = rgba(getComputedStyle(each).backgroundColor);
      layers.push(colour);
      if (colour[3] === 1) break;
    }
    return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255]);
  };
  const light = (colour) => {
    const [red, green, blue] = colour.map((each) =>
      each / 255 <= 0.04045 ? each / 255 / 12.92 : ((each / 255 + 0.055) / 1.055) ** 2.4,
    );
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const seen = new Set();
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  for (let text = walker.nextNode(); text; text = walker.nextNode()) {
    const node = text.parentElement;
    if (!text.data.trim() || !node || !shown(node) || node.closest(":disabled, [aria-hidden=true]"))
      continue;
    const style = getComputedStyle(node);
    const below = behind(node);
    const front = over(rgba(style.color), below);
    let opacity = 1;
    for (let each = node; each; each = each.parentElement)
      opacity *= Number(getComputedStyle(each).opacity);
    if (opacity === 0) continue;
    const mixed = front.map((each, i) => each * opacity + below[i] * (1 - opacity));
    const [one, other] = [light(mixed), light(below)];
    const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    const key = `${style.color} on ${below}`;
    if (ratio < (large ? 3 : 4.5) && !seen.has(key)) {
      seen.add(key);
      say(`contrast ${ratio.toFixed(2)} of ${key}`, node);
    }
  }
  return found;
})();
