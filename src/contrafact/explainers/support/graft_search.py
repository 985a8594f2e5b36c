"""Search for the smallest graft that is accepted, by predictions that learn from every answer."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from ...engine import Tasks
from .graft_predictions import LEAST_SPREAD, LeadPredictions
from .graft_tests import LooksReal, SurvivesNoise, log_lead
from .graft_trials import Answers, Effort, Grafts, Trial, smallest, softmax_scores, store

#: standard deviations of the lead under noise that a lead has to be above 0
NOISE_MARGIN = 0.8
#: exponent of the softmax that draws questions by their expected improvement
GREED = 3.0
#: candidates that questions are drawn from
N_LEADERS = 64
#: streams of random numbers
SINGLE_STREAM, PAIR_STREAM = 11, 13


class GraftSearch:
    """Look for the smallest accepted graft of every task.

    In each round the model is asked about grafts with a large expected improvement

        P(accepted) · (size of the best − size)

    drawn by a softmax. P comes from `LeadPredictions`, which learn from the answers.

    Parameters
    ----------
    tasks : Tasks
        What to find grafts for.
    grafts : Grafts
        The grafts to choose from.
    gains : Tensor of shape (n, v, w)
        First-order prediction of what each graft adds to the lead.
    donor_lead : Tensor of shape (n, v)
        Lead of the target in the donor of each variant.
    effort : Effort
        How much to ask.
    looks_real : LooksReal or None
        Test that joins have to pass, besides those that the tasks carry.
    survives_noise : SurvivesNoise or None
        Test of the best grafts, see `settle`.

    Attributes
    ----------
    found : Tensor of bool, shape (n,)
        Tasks with an accepted graft.
    best : Trial
        The smallest accepted one of each task; the instance itself where there is none.
    noise_survival : Tensor of float64, shape (n,)
        Share of the noisy copies of the best that stay in the class; NaN without the test.
    refused_by_rule, refused_by_noise : Tensor of int, shape (n,)
        Candidates in the target class that the acceptance rule, or noise, refused.
    """

    def __init__(
        self,
        tasks: Tasks,
        grafts: Grafts,
        gains: Tensor,
        donor_lead: Tensor,
        effort: Effort,
        looks_real: LooksReal | None,
        survives_noise: SurvivesNoise | None,
    ) -> None:
        self.tasks = tasks
        self.grafts = grafts
        self.effort = effort
        self.looks_real = looks_real
        self.survives_noise = survives_noise
        self.before = log_lead(tasks.before, tasks.target)
        self.leads = LeadPredictions(grafts, self.before, gains, donor_lead)
        self.size = grafts.sizes().to(gains)
        self.open = grafts.hidden.clone()
        self.answered = torch.zeros_like(self.open)
        #: values changed by earlier answers
        self.taken: list[Tensor] = []
        self.too_similar = 1.0
        #: cuts similar to those of earlier answers, and numbers of the pairs asked about
        self.closed = torch.zeros_like(self.open[:, 0])
        self.pairs_asked = torch.empty(0, dtype=torch.long, device=tasks.row.device)
        #: lead that a candidate needs to survive noise
        self.need = torch.zeros_like(self.before)
        #: tasks that are not searched for now
        self.resting = torch.zeros_like(tasks.row, dtype=torch.bool)
        self.spent = torch.zeros_like(tasks.row)
        self.refused_by_rule = torch.zeros_like(tasks.row)
        self.refused_by_noise = torch.zeros_like(tasks.row)
        self.noise_survival = torch.full_like(self.before, torch.nan)
        self.best = Trial.unchanged(self.tasks.x)
        self.best_lead = torch.zeros_like(self.before)
        self.settled = Trial.unchanged(self.tasks.x)

    @property
    def found(self) -> Tensor:
        """Tasks with an accepted graft, (n,)."""
        return self.best.size.isfinite()

    @property
    def size_to_beat(self) -> Tensor:
        """Size of the best graft of each task, (n,); 1 before there is one."""
        return self.best.size.clamp(max=1.0)

    # --- the search

    def start_over(self, too_similar: float) -> None:
        """Look for another graft of every task: what is similar to the best so far is closed.

        Parameters
        ----------
        too_similar : float
            Shared values over all values, above which a cut or a candidate is closed.
        """
        for cut in (self.best.cut, self.best.second_cut):
            has_cut = cut >= 0
            similar = self.grafts.similarity(cut[has_cut]) > too_similar
            self.open[has_cut] &= ~similar[:, None]
            self.closed[has_cut] |= similar
        self.taken.append(self.best.x_cf != self.tasks.x)
        self.too_similar = too_similar
        self.best = Trial.unchanged(self.tasks.x)
        self.settled = Trial.unchanged(self.tasks.x)
        self.spent = torch.zeros_like(self.spent)

    def try_cut(self, cut: int, n_variants: int, step: int) -> None:
        """Ask about one cut of some variants, for tasks that have found nothing.

        Parameters
        ----------
        cut : int
            The cut.
        n_variants, step : int
            The variants 0, step, 2 * step, ... below n_variants.
        """
        missing = (~self.found).nonzero().flatten()
        last = min(n_variants, self.open.shape[1])
        variant = torch.arange(0, last, step, device=missing.device)
        missing = missing[self.tasks.take(missing).affords(len(variant))]
        if len(missing) == 0:
            return
        chosen = variant * self.open.shape[2] + cut
        self.ask_about(missing, chosen.expand(len(missing), -1))

    def run(self, rounds: int) -> None:
        """Ask about single grafts, round by round, until nothing better is expected."""
        running = torch.arange(len(self.tasks), device=self.tasks.row.device)
        for turn in range(rounds):
            predicted = self.leads.of(running)
            improvement = self.expected_improvement(running, predicted, self.size)
            improvement *= self.open[running]
            running, chosen = self.draw(running, improvement.flatten(1), turn, SINGLE_STREAM)
            if len(running) == 0:
                return
            self.ask_about(running, chosen)

    def expected_improvement(
        self,
        task: Tensor,
        prediction: Tensor,
        size: Tensor,
        share: float = 1.0,
    ) -> Tensor:
        """Compute P(accepted) · (share of the best's size − size), or 0 where that is negative.

        Parameters
        ----------
        task : Tensor of int, shape (a,)
            The tasks.
        prediction : Tensor of shape (a, b, c)
            Lead expected after each candidate.
        size : Tensor that broadcasts to it
            Share of values that each changes.
        share : float, default=1.0
            Count only what is below this share of the best.

        Returns
        -------
        Tensor of shape (a, b, c)
            The improvement in size.
        """
        need = self.need[task].to(prediction)
        spread = self.leads.spread[task].to(prediction)
        margin = (prediction - need[:, None, None]) / spread[:, None, None]
        # the logistic function of 1.7 z is close to the normal distribution function of z
        probability = torch.sigmoid(1.7 * margin)
        to_beat = share * self.size_to_beat[task].to(prediction)
        smaller = to_beat[:, None, None] - size
        return probability * smaller.clamp(min=0)

    def draw(
        self,
        task: Tensor,
        improvement: Tensor,
        turn: int,
        stream: int,
        identity: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Draw candidates by a softmax of their expected improvement, without replacement.

        Parameters
        ----------
        task : Tensor of int, shape (a,)
            The tasks.
        improvement : Tensor of shape (a, m)
            Expected improvement of each candidate.
        turn : int
            Number of the round.
        stream : int
            Stream of random numbers.
        identity : Tensor of int, shape (a, m), optional
            Numbers that name the candidates, for their random numbers; default: their places.

        Returns
        -------
        active : Tensor of int, shape (b,)
            Tasks for which something is worthwhile and affordable.
        chosen : Tensor of int, shape (b, per_round)
            Candidates of each; some may have no expected improvement.
        """
        worthwhile = improvement.amax(1) > self.effort.worthwhile
        affordable = self.spent[task] + self.effort.per_round <= self.effort.max_rows
        keep = worthwhile & affordable & ~self.resting[task]
        keep &= self.tasks.take(task).affords(self.effort.per_round)
        active = task[keep]
        leaders = improvement[keep].topk(min(N_LEADERS, improvement.shape[1]), dim=1)
        name = leaders.indices
        if identity is not None:
            name = identity[keep].gather(1, leaders.indices)
        seeds = self.tasks.take(active).seeds(turn)
        score = softmax_scores(leaders.values.double() ** GREED, seeds, name, stream)
        count = min(self.effort.per_round, score.shape[1])
        place = score.topk(count, dim=1).indices
        return active, leaders.indices.gather(1, place)

    def ask_about(self, active: Tensor, chosen: Tensor) -> None:
        """Ask about single grafts and learn from the answers.

        Parameters
        ----------
        active : Tensor of int, shape (a,)
            The tasks.
        chosen : Tensor of int, shape (a, k)
            Numbers of grafts, variant · w + cut; those that are closed are passed over.
        """
        n_cuts = self.open.shape[2]
        variant = chosen // n_cuts
        cut = chosen % n_cuts
        task = active[:, None].expand_as(chosen)
        usable = self.open[task, variant, cut]
        self.open[task, variant, cut] = False
        nothing = torch.full_like(task[usable], -1)
        trial = Trial(
            task[usable],
            self.grafts.make(self.tasks.x, task[usable], variant[usable], cut[usable]),
            self.size[variant[usable], cut[usable]],
            variant[usable],
            cut[usable],
            nothing,
            nothing,
        )
        answers = self.ask(trial)
        answered = torch.zeros_like(usable)
        answered[usable] = answers.asked
        self.answered[task, variant, cut] |= answered
        lead = torch.zeros_like(chosen, dtype=self.size.dtype)
        lead[answered] = answers.lead.to(lead)
        self.leads.learn(active, variant, cut, answered, lead)

    # --- answers

    def ask(self, trial: Trial) -> Answers:
        """Ask the model about candidates and keep those that are better than the best.

        Parameters
        ----------
        trial : Trial
            The candidates, not yet within the constraints.

        Returns
        -------
        Answers
            What the model and the acceptance rule say.
        """
        answers = self.judge(trial)
        trial = answers.trial
        improves = answers.accepted & (trial.size < self.best.size[trial.task])
        winners = smallest(trial, answers.lead, improves, len(self.tasks))
        self.keep(trial.take(winners), answers.lead[winners])
        return answers

    def judge(self, trial: Trial) -> Answers:
        """Ask the model about candidates that look real.

        Parameters
        ----------
        trial : Trial
            The candidates, not yet within the constraints.

        Returns
        -------
        Answers
            What the model and the acceptance rule say.
        """
        tasks = self.tasks.take(trial.task)
        x_cf = tasks.project(trial.x_cf)
        changed = (x_cf != tasks.x).flatten(1)
        asked = changed.any(1)
        for taken in self.taken:
            own = taken[trial.task].flatten(1)
            shared = (own & changed).sum(1) / (own | changed).sum(1).clamp(min=1)
            asked &= shared <= self.too_similar
        if self.looks_real is not None:
            asked &= self.looks_real.passes(tasks, x_cf)
        trial = replace(trial, x_cf=x_cf).take(asked)
        tasks = tasks.take(asked)
        verdict = tasks.ask(trial.x_cf)
        self._count(trial.task)
        lead = log_lead(verdict, tasks.target)
        accepted = tasks.accepts(trial.x_cf, verdict)
        refused = (verdict.label == tasks.target) & ~accepted
        self.refused_by_rule.index_add_(0, trial.task, refused.long())
        accepted &= lead >= self.need[trial.task]
        return Answers(trial, asked, lead, accepted)

    def keep(self, trial: Trial, lead: Tensor) -> None:
        """Make accepted candidates the best of their tasks.

        The first of a task has to survive noise, which also tells what lead others need to survive
        it; those are checked by `settle`.

        Parameters
        ----------
        trial : Trial
            At most one candidate per task.
        lead : Tensor of float64, shape (m,)
            Lead of the target in each.
        """
        if self.survives_noise is not None:
            fresh = ~self.settled.size[trial.task].isfinite()
            survived = torch.ones_like(fresh)
            survived[fresh] = self._probe(trial.take(fresh), lead[fresh])
            store(self.settled, trial.take(fresh & survived))
            trial = trial.take(survived)
            lead = lead[survived]
        store(self.best, trial)
        self.best_lead[trial.task] = lead

    def settle(self) -> Tensor:
        """Check that the best grafts survive noise; go back to the last that did where not.

        Returns
        -------
        Tensor of bool, shape (n,)
            Tasks that went back.
        """
        went_back = torch.zeros_like(self.found)
        if self.survives_noise is None:
            return went_back
        task = (self.best.size < self.settled.size).nonzero().flatten()
        best = self.best.take(task)
        survived = self._probe(best, self.best_lead[task])
        store(self.settled, best.take(survived))
        went_back[task[~survived]] = True
        store(self.best, self.settled.take(task[~survived]))
        return went_back

    def _probe(self, trial: Trial, lead: Tensor) -> Tensor:
        """Return which candidates survive noise, and set the lead that others need."""
        assert self.survives_noise is not None
        tasks = self.tasks.take(trial.task)
        survived = tasks.affords(self.survives_noise.draws)
        able = survived.nonzero().flatten()
        if len(able) == 0:
            return survived
        task = trial.task[able]
        probe = self.survives_noise.probe(tasks.take(able), trial.x_cf[able])
        self._count(task.repeat_interleave(self.survives_noise.draws))
        deviation = probe.lead.std(1)
        more = lead[able] + 0.5 * deviation.clamp_min(LEAST_SPREAD / 3)
        enough = torch.where(probe.survived, NOISE_MARGIN * deviation, more)
        self.need[task] = torch.maximum(self.need[task], enough)
        self.refused_by_noise[task[~probe.survived]] += 1
        self.noise_survival[task[probe.survived]] = probe.share[probe.survived]
        survived[able] = probe.survived
        return survived

    def _count(self, task: Tensor) -> None:
        """Count one model row for every entry."""
        self.spent.index_add_(0, task, torch.ones_like(task))
