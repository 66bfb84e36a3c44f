// @ts-check
/** The places of items in the document, updated as items change. */

import { Shown } from "./items.js";
import { build, patch } from "./nodes.js";

/**
 * @import {Item, ItemNode} from "./items.js"
 * @import {Maker} from "./nodes.js"
 */

/**
 * Make nodes the contents of an element. Those that stay are not moved, so they keep selection and focus.
 * @param {Element} host
 * @param {ChildNode[]} nodes
 * @returns {ChildNode[]} The nodes that are gone.
 */
export function arrange(host, nodes) {
  const wanted = new Set(nodes);
  const gone = Array.from(host.childNodes).filter((node) => !wanted.has(node));
  for (const node of gone) node.remove();
  let next = host.firstChild;
  for (const node of nodes) {
    if (node === next) next = node.nextSibling;
    else host.insertBefore(node, next);
  }
  return gone;
}

/** A place of items: an element that contains nothing else. */
export class Place {
  /**
   * @param {HTMLElement} host
   * @param {Maker} maker
   * @param {(items: Item[]) => Item[]} [wanted] The items to show.
   */
  constructor(host, maker, wanted = (items) => items) {
    this.host = host;
    this.maker = maker;
    this.wanted = wanted;
    /** Its contents by the items' ids. @type {Map<string, {node: ItemNode, made: ChildNode}>} */
    this.made = new Map();
  }

  /** Show the current items. @param {Item[]} items */
  show(items) {
    this.made = new Map(this.wanted(items).map((item) => [item.id, this.make(item)]));
    arrange(
      this.host,
      Array.from(this.made.values(), ({ made }) => made),
    );
  }

  /** @param {Item} item */
  make({ id, node: given }) {
    const known = this.made.get(id);
    if (known?.node === given) return known;
    const node = /** @type {ItemNode} */ (given);
    const maker = { ...this.maker, id };
    const made = known ? patch(known.made, known.node, node, maker) : build(node, maker);
    return { node, made };
  }
}

/** All places of items in the document. */
export class Board {
  /** @param {Omit<Maker, "id" | "two" | "fill">} about */
  constructor(about) {
    /** @type {Maker} */
    this.maker = { ...about, id: "", two: false, fill: (...given) => this.fill(...given) };
    this.shown = new Shown();
    /** @type {Map<string, Set<Place>>} */
    this.places = new Map();
  }

  /**
   * Show the items of a place in an element, and update them while it is in the document.
   * @param {HTMLElement} host
   * @param {string} parent The id of its items' parent.
   * @param {Maker} [maker]
   * @param {(items: Item[]) => Item[]} [wanted] The items to show.
   */
  fill(host, parent, maker = this.maker, wanted) {
    const place = new Place(host, maker, wanted);
    const others = this.places.get(parent) ?? new Set();
    this.places.set(parent, others.add(place));
    place.show(this.shown.inside(parent));
    return host;
  }

  /**
   * Show the current items.
   * @param {Shown} shown
   * @param {Iterable<string>} parents The places with changes.
   */
  show(shown, parents) {
    this.shown = shown;
    for (const parent of parents) {
      for (const place of this.places.get(parent) ?? []) {
        if (place.host.isConnected) place.show(shown.inside(parent));
        else this.places.get(parent)?.delete(place);
      }
    }
  }

  /** Update which items are open. @param {string} id */
  refold(id) {
    for (const element of document.querySelectorAll(`details[data-key="${CSS.escape(id)}"]`))
      /** @type {HTMLDetailsElement} */ (element).open = this.maker.isOpen(id);
  }
}
