// @ts-check
/** The places of items in the document, updated as items change. */

import { Shown } from "./items.js";
import { build, patch, Slot } from "./nodes.js";

/**
 * @import {Item} from "./items.js"
 * @import {Maker} from "./nodes.js"
 */

/** All places of items in the document. */
export class Board {
  /** @param {Omit<Maker, "id" | "two" | "slot">} about */
  constructor(about) {
    this.about = about;
    this.shown = new Shown();
    /** @type {Map<string, Set<Slot>>} */
    this.slots = new Map();
  }

  /**
   * Show the items of a place in an element.
   * @param {Element} host
   * @param {string} parent The id of its items' parent.
   * @param {{two?: boolean, only?: string | null, most?: number}} [how] `two`: both sides of a
   * change side by side. `only`: the only item to show. `most`: how many of the last items to show.
   */
  mount(host, parent, { two = false, only = null, most = Infinity } = {}) {
    const slot = new Slot(parent, { ...this.maker(parent), two });
    [slot.only, slot.most] = [only, most];
    this.fill(slot);
    host.replaceChildren(...slot.nodes);
  }

  /** The maker of an item's nodes. @param {string} id @returns {Maker} */
  maker(id) {
    return {
      ...this.about,
      id,
      two: false,
      slot: (parent, maker) => this.fill(new Slot(parent, maker)),
    };
  }

  /** Fill a place that is not in the document yet. @param {Slot} slot */
  fill(slot) {
    const others = this.slots.get(slot.parent);
    if (others === undefined) this.slots.set(slot.parent, new Set([slot]));
    else others.add(slot);
    for (const item of slot.wanted(this.shown.inside(slot.parent))) this.make(slot, item);
    return slot;
  }

  /** @param {Slot} slot @param {Item} item */
  make(slot, item) {
    const node = /** @type {import("./items.js").ItemNode} */ (item.node);
    const made = build(node, { ...slot.maker, id: item.id });
    slot.made.set(item.id, { node, made });
    return made;
  }

  /**
   * Show the current items.
   * @param {Shown} shown
   * @param {Iterable<string>} parents The places with changes.
   */
  show(shown, parents) {
    this.shown = shown;
    for (const parent of parents) {
      for (const slot of this.slots.get(parent) ?? []) {
        if (slot.mark.isConnected) this.sync(slot, slot.wanted(shown.inside(parent)));
        else this.slots.get(parent)?.delete(slot);
      }
    }
  }

  /** @param {Slot} slot @param {Item[]} items */
  sync(slot, items) {
    const wanted = new Set(items.map(({ id }) => id));
    for (const [id, { made }] of slot.made) {
      if (wanted.has(id)) continue;
      made.remove();
      slot.made.delete(id);
    }
    /** @type {ChildNode} */
    let place = slot.mark;
    for (const item of items) {
      const known = slot.made.get(item.id);
      /** @type {ChildNode} */
      let node;
      if (known === undefined) node = this.make(slot, item);
      else {
        if (known.node !== item.node && item.node !== null) {
          known.made = patch(known.made, known.node, item.node, { ...slot.maker, id: item.id });
          known.node = item.node;
        }
        node = known.made;
      }
      if (place.nextSibling !== node) place.after(node);
      place = node;
    }
  }

  /** Update which items are open. @param {string} id */
  refold(id) {
    for (const element of document.querySelectorAll(`details[data-key="${CSS.escape(id)}"]`))
      /** @type {HTMLDetailsElement} */ (element).open = this.about.isOpen(id);
  }
}
