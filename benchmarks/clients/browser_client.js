// Notes when the updates of an agent come to a page: in an EventSource, or as text in the document.
//
// It is a function of what `browser_client.py` gives. The page then has `watched`: promises of the first words,
// and of all updates with the time in each and the times, in milliseconds since 1970, at which it was there
// (`late`) and in a frame (`drawn`).

({ url, isPage, place, count, ready, stamp }) => {
  const stamps = new RegExp(`${stamp}([0-9]+)${stamp}`, "g");
  const clock = () => performance.timeOrigin + performance.now();
  const [begun, over] = [Promise.withResolvers(), Promise.withResolvers()];
  const came = new Map();
  let undrawn = [];

  const note = (late, text) => {
    for (const [, written] of text.matchAll(stamps)) {
      if (came.has(written)) continue;
      const update = { written, late };
      came.set(written, update);
      undrawn.push(update);
    }
    if (text.includes(ready)) begun.resolve();
    if (!isPage) finish();
  };

  const finish = () => {
    if (came.size >= count) over.resolve([...came.values()].slice(0, count));
  };

  const drawn = () => {
    const now = clock();
    for (const update of undrawn) update.drawn = now;
    undrawn = [];
    finish();
  };

  if (isPage) {
    const found = document.querySelector(place);
    const look = () => note(clock(), found.textContent);
    new MutationObserver(look).observe(found, { childList: true, characterData: true, subtree: true });
    look();
    // What the document has when the callbacks of a frame are over is in that frame; a task of this priority
    // comes right behind it.
    const frame = () => {
      scheduler.postTask(drawn, { priority: "user-blocking" });
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  }

  if (url) {
    const source = new EventSource(url);
    let last = 0;
    const take = ({ data, lastEventId }) => {
      const when = clock();
      if (Number(lastEventId) !== ++last) over.reject(new Error(`event ${lastEventId} came as number ${last}`));
      if (isPage) document.querySelector(place).append(JSON.parse(data).text ?? "");
      else note(when, data);
    };
    source.onmessage = take;
    source.addEventListener("end", (event) => {
      take(event);
      source.close();
    });
    source.onerror = () => over.reject(new Error("the stream broke off"));
  }

  window.watched = { begun: begun.promise, over: over.promise };
};
