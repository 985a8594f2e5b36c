// An explanation under way: started, followed until it is done, cancelled if asked.

import { Gone, Refusal, api } from "./api.js";
import { make } from "./charts.js";
import { limitsToSend } from "./limits.js";
import { fromPlanes, toPlanes } from "./planes.js";
import { countText } from "./words.js";

/** How far the search is, with a button that ends it. */
export class Explanation {
  constructor(session, question) {
    this.session = session;
    this.question = question;
    this.run = 0;
    this.job = null;
    this.words = make("p", { role: "status" });
    this.bar = make("progress", { "aria-label": "Questions to the model" });
    this.stop = make("button", { type: "button", onclick: () => this.cancel() }, "Cancel");
    this.progress = make("div", { class: "progress", hidden: true }, this.bar, this.stop);
    this.box = make("div", {}, this.progress, this.words);
    session.on("instance", () => this.leave());
  }

  /** Ask about what is on the page. */
  async start() {
    const { session } = this;
    const { overview, instance, values, isEdited } = session;
    const { probabilities } = session.verdict ?? session.verdictBefore;
    const before = { values, probabilities };
    const { front } = this.question.choice;
    this.leave();
    const run = this.run;
    this.show({ state: "running", asked: 0, allowed: null });
    try {
      const { job } = await api.explain({
        ...this.question.toSend(),
        instance: instance.index,
        values: isEdited ? fromPlanes(values, overview.shape) : null,
        limits: limitsToSend(session),
      });
      if (run !== this.run) {
        await api.cancel(job);
        return;
      }
      this.job = job;
      await this.follow(job, run, { before, front });
    } catch (error) {
      if (run === this.run) this.fail(error);
    }
  }

  async follow(job, run, context) {
    let status = { version: -1, state: "running" };
    while (status.state === "running") {
      status = await api.job(job, status.version);
      if (run !== this.run) return;
      this.show(status);
      this.showGuide(status.preview);
    }
    this.job = null;
    if (status.state === "cancelled" && status.alternatives.length === 0) {
      // What was found until then may follow.
      status = await api.job(job, status.version);
      if (run !== this.run) return;
    }
    if (status.alternatives.length === 0) this.words.textContent = status.message;
    else this.session.setAnswer({ ...status, ...context, job });
  }

  /** Draw where the change leads, as long as nothing better is there. */
  showGuide(preview) {
    if (!preview || this.session.guide) return;
    const values = toPlanes(preview.values, this.session.overview.shape);
    this.session.setGuide({ values, words: preview.words });
  }

  show({ state, asked, allowed, message = "" }) {
    const isRunning = state === "running";
    this.progress.hidden = !isRunning;
    this.question.ask.setAttribute("aria-busy", String(isRunning));
    if (allowed) {
      this.bar.max = allowed;
      this.bar.value = asked;
    } else this.bar.removeAttribute("value");
    const asking = `Asked the model ${countText(asked, "time")} so far …`;
    const sofar = asked > 0 ? asking : message || "Searching …";
    const ended = state === "cancelled" ? message || "Cancelled." : "";
    this.words.textContent = isRunning ? sofar : ended;
  }

  fail(error) {
    this.progress.hidden = true;
    this.question.ask.setAttribute("aria-busy", "false");
    this.session.setGuide(null);
    if (error instanceof Refusal) this.words.textContent = error.message;
    else if (error instanceof Gone) {
      this.words.textContent = "The server was lost during the search; ask again once it is back.";
    } else throw error;
  }

  async cancel() {
    if (this.job === null) return;
    this.stop.disabled = true;
    try {
      await api.cancel(this.job);
    } catch (error) {
      this.fail(error);
    }
    this.stop.disabled = false;
  }

  /** Leave the search that is under way to itself: another question follows. */
  leave() {
    if (this.job !== null) api.cancel(this.job).catch(() => {});
    this.run++;
    this.job = null;
    this.progress.hidden = true;
    this.words.textContent = "";
    this.question.ask.setAttribute("aria-busy", "false");
    if (this.session.guide) this.session.setGuide(null);
    if (this.session.answer) this.session.setAnswer(null);
  }
}
