// What is on the page: the instance, the edits of it, the limits and the model's latest answer.

import { copyPlanes, filledPlanes, samePlanes, toPlanes } from "./planes.js";

const MOST_STEPS = 200;

/** The versions of one instance that a person made, and which of them is shown. */
export class Edits {
  constructor(original) {
    this.original = original;
    this.steps = [original];
    this.at = 0;
  }

  get current() {
    return this.steps[this.at];
  }

  get canUndo() {
    return this.at > 0;
  }

  get canRedo() {
    return this.at < this.steps.length - 1;
  }

  /** Add a version after the one that is shown; those after it are forgotten. */
  add(values) {
    this.steps = [...this.steps.slice(0, this.at + 1), values].slice(-MOST_STEPS);
    this.at = this.steps.length - 1;
  }

  move(by) {
    this.at = Math.min(Math.max(this.at + by, 0), this.steps.length - 1);
  }
}

/** Nothing is kept, nothing is bounded. */
export function freeLimits(overview) {
  const parts = overview.names.length;
  return {
    frozen: filledPlanes(overview.shape, false),
    lower: Array(parts).fill(null),
    upper: Array(parts).fill(null),
    maxStep: Array(parts).fill(null),
    increasing: new Set(),
    decreasing: new Set(),
    maxChanged: null,
  };
}

/**
 * The state that the parts of the page share. Parts change it through its methods and hear of it:
 * "instance" (another one), "values" (edited, also while the pointer moves), "verdict" (the
 * model's answer), "limits", "target", "guide" and "answer" (of an explanation).
 */
export class Session {
  constructor(overview) {
    this.overview = overview;
    this.limits = freeLimits(overview);
    this.target = null;
    this.listeners = {};
    this.kept = new Map();
    this.instance = null;
    this.edits = null;
    this.draft = null;
    this.verdict = null;
    this.guide = null;
    this.answer = null;
  }

  on(name, listener) {
    (this.listeners[name] ??= []).push(listener);
  }

  emit(name) {
    for (const listener of this.listeners[name] ?? []) listener();
  }

  /** Show an instance; edits of it that were made before are still there. */
  open(instance) {
    if (this.instance !== null) this.kept.set(this.instance.index, this.edits);
    this.instance = instance;
    const original = toPlanes(instance.values, this.overview.shape);
    const known = this.kept.get(instance.index);
    this.edits = known && samePlanes(known.original, original) ? known : new Edits(original);
    this.draft = null;
    this.guide = null;
    this.answer = null;
    this.verdict = this.isEdited ? null : this.verdictBefore;
    if (this.target === instance.label) this.target = null;
    for (const name of ["instance", "guide", "answer", "values"]) this.emit(name);
  }

  get verdictBefore() {
    return { probabilities: this.instance.probabilities, label: this.instance.label };
  }

  get original() {
    return this.edits.original;
  }

  /** What is shown: the version under the pointer while it moves, else the latest. */
  get values() {
    return this.draft ?? this.edits.current;
  }

  get isEdited() {
    return this.values !== this.original && !samePlanes(this.values, this.original);
  }

  /** The class that is asked for: the chosen one, or the likeliest other class. */
  get wanted() {
    const { probabilities, label } = this.verdict ?? this.verdictBefore;
    if (this.target !== null && this.target !== label) return this.target;
    const others = probabilities.map((p, c) => (c === label ? -1 : p));
    return others.indexOf(Math.max(...others));
  }

  /** Show values that are not yet a version, as while a pointer moves. */
  sketch(values) {
    this.draft = values;
    this.emit("values");
  }

  /** Make what is sketched a version. */
  settle() {
    if (this.draft === null) return;
    this.edits.add(this.draft);
    this.draft = null;
    this.emit("values");
  }

  /** Change a copy of the values by a function, as one step that can be undone. */
  edit(change) {
    const values = copyPlanes(this.values);
    change(values);
    this.draft = null;
    this.edits.add(values);
    this.emit("values");
  }

  undo() {
    this.draft = null;
    this.edits.move(-1);
    this.emit("values");
  }

  redo() {
    this.draft = null;
    this.edits.move(1);
    this.emit("values");
  }

  reset() {
    if (this.isEdited) this.edit((values) => values.splice(0, values.length, ...this.original));
  }

  setVerdict(verdict) {
    this.verdict = verdict;
    this.emit("verdict");
  }

  setTarget(target) {
    this.target = target;
    this.emit("target");
  }

  setGuide(guide) {
    this.guide = guide;
    this.emit("guide");
  }

  setAnswer(answer) {
    this.answer = answer;
    this.emit("answer");
  }

  /** Change the limits by a function. */
  limit(change) {
    change(this.limits);
    this.emit("limits");
  }
}
