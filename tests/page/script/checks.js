// What is wrong with the page for those who see little, or nothing: an expression with a list of it.
//
// Most of it is found by axe-core, which was evaluated before. What it calls incomplete are texts whose contrast it
// cannot measure, since something overlaps them or they are a single sign, and names and roles that are wrong
// according to the standard.

(async () => {
  const options = { rules: { "target-size": { enabled: true } } };
  const { violations, incomplete } = await axe.run(options);
  const wrong = [...violations, ...incomplete.filter(({ id }) => id.startsWith("aria-"))];
  const found = wrong.flatMap(({ id, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${id}: ${html.slice(0, 120)} ${failureSummary}`),
  );

  // What axe-core does not look at
  const ids = [...document.querySelectorAll("[id]")].map((node) => node.id);
  for (const id of ids.filter((each, i) => ids.indexOf(each) !== i)) found.push(`twice: ${id}`);
  const say = (what, node) => found.push(`${what}: ${node.outerHTML.slice(0, 120)}`);
  for (const node of document.querySelectorAll("[aria-controls]"))
    if (!document.getElementById(node.getAttribute("aria-controls"))) say("controls nothing", node);
  for (const tab of document.querySelectorAll("[role=tab]:not([aria-selected])"))
    say("not selected or not", tab);
  for (const row of document.querySelectorAll("[role=feed] > article:not([aria-posinset])"))
    say("no place", row);
  return found;
})();
