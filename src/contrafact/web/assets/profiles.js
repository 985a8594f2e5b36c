// The probability of the wanted class along every column in sight, asked when the values rest.

import { Gone, Refusal, api } from "./api.js";
import { fromPlanes } from "./planes.js";

const REST = 250;

export class Profiles {
  constructor(session, cards) {
    this.session = session;
    this.cards = cards.filter((card) => !card.isFixed);
    this.round = 0;
    this.visible = new Set();
    this.stale = new Set();
    this.answers = new Map();
    this.isBusy = false;
    const onSight = (entries) => this.onSight(entries);
    this.observer = new IntersectionObserver(onSight, { rootMargin: "100px" });
    session.on("values", () => this.restart());
    session.on("target", () => this.redraw());
  }

  watch(grid) {
    this.observer.disconnect();
    this.visible.clear();
    for (const card of this.cards) {
      if (grid.contains(card.box)) this.observer.observe(card.box);
    }
  }

  onSight(entries) {
    for (const { target, isIntersecting } of entries) {
      const card = this.cards.find((each) => each.box === target);
      if (isIntersecting) this.visible.add(card);
      else this.visible.delete(card);
    }
    this.work();
  }

  /** The values changed: once they rest, every profile is asked for anew. */
  restart() {
    this.round++;
    this.stale.clear();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.stale = new Set(this.cards);
      this.work();
    }, REST);
  }

  async work() {
    if (this.isBusy) return;
    this.isBusy = true;
    const next = () => [...this.stale].find((card) => this.visible.has(card));
    for (let card = next(); card !== undefined; card = next()) {
      this.stale.delete(card);
      await this.ask(card);
    }
    this.isBusy = false;
  }

  async ask(card) {
    const { session, round } = this;
    try {
      const answer = await api.profile(fromPlanes(session.values, session.overview.shape), card.j);
      if (round !== this.round) return;
      this.answers.set(card, answer);
      this.draw(card);
    } catch (error) {
      // Without the curve the control works as before; the live answer tells what is wrong.
      if (!(error instanceof Refusal || error instanceof Gone)) throw error;
    }
  }

  draw(card) {
    const { at, probabilities } = this.answers.get(card);
    card.showProfile(at.map((value, i) => [value, probabilities[i][this.session.wanted]]));
  }

  redraw() {
    for (const card of this.answers.keys()) this.draw(card);
  }
}
