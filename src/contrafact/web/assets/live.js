// The model's answer to what is on the page, asked again whenever that changes.

import { Refusal, api } from "./api.js";
import { showNotice } from "./notices.js";
import { fromPlanes } from "./planes.js";

/**
 * Ask about the newest values: at most one question is under way and the newest waits, so that
 * answers come in the order of the questions and a slow model is not asked about what has passed.
 */
export class LivePrediction {
  constructor(session) {
    this.session = session;
    this.tag = 0;
    this.waiting = null;
    this.newest = null;
    this.isBusy = false;
    session.on("values", () => this.follow());
  }

  follow() {
    const { session } = this;
    if (!session.isEdited) {
      this.waiting = null;
      this.newest = null;
      // Makes an answer that is still under way a stale one.
      this.tag++;
      session.setVerdict(session.verdictBefore);
      return;
    }
    // What rests where the pointer left it has been asked about.
    if (session.values === this.newest && session.verdict !== null) return;
    this.newest = session.values;
    this.waiting = session.values;
    this.tag++;
    if (!this.isBusy) this.work();
  }

  async work() {
    this.isBusy = true;
    while (this.waiting !== null) await this.askOnce();
    this.isBusy = false;
  }

  async askOnce() {
    const { session } = this;
    const { instance, overview } = session;
    const values = fromPlanes(this.waiting, overview.shape);
    const tag = this.tag;
    this.waiting = null;
    try {
      const answer = await api.predict(values, tag);
      const isStale = answer.tag !== tag || session.instance !== instance || !session.isEdited;
      if (!isStale) session.setVerdict(answer);
      showNotice("model", "");
    } catch (error) {
      this.newest = null;
      if (!(error instanceof Refusal)) return;
      showNotice("model", `The model gave no answer: ${error.message}`);
    }
  }
}
