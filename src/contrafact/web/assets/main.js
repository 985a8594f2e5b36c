// The start: fetch the overview, put the parts of the page together, and keep them in step.

import { Refusal, api } from "./api.js";
import { Alternatives } from "./alternatives.js";
import { make, makeThemeButton } from "./charts.js";
import { ColumnsEditor } from "./columns.js";
import { Decision } from "./decision.js";
import { Explanation } from "./explain.js";
import { ImageEditor } from "./image_editor.js";
import { ImagePictures } from "./image_pictures.js";
import { Limits } from "./limits.js";
import { InstanceList } from "./list.js";
import { LivePrediction } from "./live.js";
import { showNotice, watchServer } from "./notices.js";
import { Prototypes } from "./prototypes.js";
import { Question } from "./question.js";
import { RowPictures } from "./row_pictures.js";
import { SeriesEditor } from "./series.js";
import { SeriesPictures } from "./series_pictures.js";
import { Session } from "./state.js";
import { articleOf, nameOf, nounOf } from "./words.js";

const KINDS = {
  series: { Editor: SeriesEditor, Pictures: SeriesPictures },
  image: { Editor: ImageEditor, Pictures: ImagePictures },
  row: { Editor: ColumnsEditor, Pictures: RowPictures },
  table: { Editor: ColumnsEditor, Pictures: RowPictures },
};
const PAUSE = 700;

/** The whole page. */
class Page {
  constructor(overview) {
    this.session = new Session(overview);
    const { session } = this;
    const { Editor, Pictures } = KINDS[overview.kind];
    this.list = new InstanceList(overview, (index) => this.open(index));
    this.editor = new Editor(session);
    this.live = new LivePrediction(session);
    this.decision = new Decision(session);
    this.question = new Question(session, () => this.explanation.start());
    this.explanation = new Explanation(session, this.question);
    this.limits = new Limits(session, this.editor);
    this.question.box.append(this.explanation.box, this.limits.box, this.question.details);
    const askForFront = () => {
      this.question.wantFront();
      this.explanation.start();
    };
    const hasFront = overview.methods.some((method) => method.default && method.levels);
    this.answer = new Alternatives(session, new Pictures(session), hasFront ? askForFront : null);
    this.prototypes = new Prototypes(session);
    this.heading = make("h2");
    this.place();
    session.on("instance", () => this.name());
    session.on("values", () => this.enableSteps());
    addEventListener("keydown", (event) => this.onKey(event));
    addEventListener("hashchange", () => this.openLinked());
    this.showScope();
    this.openLinked();
    this.fillUp();
  }

  showScope() {
    const { model, data } = this.session.overview;
    const noun = nounOf(this.session.overview);
    document.getElementById("scope").textContent = `${model}, ${data}. Choose ${articleOf(noun)}, `
      + "see what the model decides, change it by hand, or ask what would change the decision.";
  }

  place() {
    const { session, list } = this;
    const button = (words, onclick, label = null) =>
      make("button", { type: "button", "aria-label": label, title: label, onclick }, words);
    this.undo = button("↶ Undo", () => session.undo());
    this.redo = button("↷ Redo", () => session.redo());
    this.reset = button("Reset", () => session.reset());
    const stage = make("article", { class: "stage", "aria-label": "The chosen instance" },
      make("header", {}, this.heading,
        make("div", { class: "steps" },
          this.undo, this.redo, this.reset,
          button("←", () => list.step(-1), "previous"),
          button("→", () => list.step(1), "next"))),
      this.editor.box);
    const side = make("aside", { class: "side" }, this.decision.box, this.question.box);
    const body = make("div", { class: "body" }, stage, side, this.answer.box, this.prototypes.box);
    document.getElementById("desk").replaceChildren(list.box, body);
  }

  name() {
    const { overview, instance } = this.session;
    this.heading.textContent = nameOf(overview, instance.index);
    document.title = `${nameOf(overview, instance.index)}: what would change the decision?`;
    history.replaceState(null, "", `#${nounOf(overview)}=${instance.index}`);
  }

  enableSteps() {
    const { edits, isEdited } = this.session;
    this.undo.disabled = !edits.canUndo;
    this.redo.disabled = !edits.canRedo;
    this.reset.disabled = !isEdited;
  }

  onKey(event) {
    const isText = event.target.matches("input[type=search], input[type=number]");
    if (!(event.ctrlKey || event.metaKey) || event.altKey || isText || !this.session.edits) return;
    const key = event.key.toLowerCase();
    if (key === "z" && !event.shiftKey) this.session.undo();
    else if (key === "y" || key === "z") this.session.redo();
    else return;
    event.preventDefault();
  }

  /** A link may name the instance, as #series=12. */
  openLinked() {
    const { overview } = this.session;
    const asked = Number(new URLSearchParams(location.hash.slice(1)).get(nounOf(overview)));
    const isThere = Number.isInteger(asked) && asked >= 0 && asked < overview.instances.count;
    this.list.choose(isThere ? asked : 0);
  }

  async open(index) {
    try {
      const instance = await api.instance(index);
      // Another one may have been chosen meanwhile.
      if (this.list.at === index) this.session.open(instance);
      showNotice("instance", "");
    } catch (error) {
      if (!(error instanceof Refusal)) return;
      showNotice("instance", `This one cannot be shown: ${error.message}`);
    }
  }

  /** Fetch the overview again until the model has told its verdict of every instance. */
  async fillUp() {
    let { overview } = this.session;
    while (overview.instances.complete === false) {
      await new Promise((resume) => setTimeout(resume, PAUSE));
      try {
        overview = await api.overview();
      } catch {
        return;
      }
      this.session.overview.instances = overview.instances;
      this.list.load(this.session.overview);
    }
  }

  /** The server is back, maybe as another process: fetch what it knows and keep the edits. */
  async goOn(started) {
    const { session } = this;
    if (started !== session.overview.started) {
      const overview = await api.overview();
      const subject = ({ kind, shape, classes }) => JSON.stringify([kind, shape, classes]);
      if (subject(overview) !== subject(session.overview)) {
        // Edits of other data mean nothing here.
        location.reload();
        return;
      }
      session.overview = overview;
      this.list.load(overview);
      this.showScope();
      this.fillUp();
      session.setAnswer(null);
    }
    if (session.instance === null) this.openLinked();
    else this.live.follow();
  }
}

async function start() {
  document.querySelector("header").append(makeThemeButton());
  let page = null;
  const build = async () => {
    try {
      page = new Page(await api.overview());
    } catch (error) {
      if (!(error instanceof Refusal)) return;
      showNotice("start", error.message);
    }
  };
  watchServer((started) => (page === null ? build() : page.goOn(started)));
  await build();
}

start();
