//! What the learner's front says of itself.

use super::Learner;
use crate::data::LearnerStatus;
use crate::data::audit::Note;
use crate::node::Report;

impl Learner {
    /// The last notes of the audit; at their end the counters, by which the ids are checked.
    pub fn last_notes(&mut self) -> Vec<Note> {
        let (mut notes, totals) = (self.notes(), self.admission.totals());
        notes.push(Note::Totals { admitted: totals.admitted, refused: totals.refused.total(), lost: totals.lost });
        notes
    }

    /// What it says to whoever looks after it. `pulse`: moves on while the trainer works.
    pub fn report(&self, pulse: u64) -> Report {
        let (totals, gathered, status) = (self.admission.totals(), self.gather.counters(), self.status());
        Report {
            phase: status.activity,
            waits: !self.busy,
            progress: pulse + status.updates + totals.admitted,
            waits_for: self.coordinator.laggards(),
            counts: vec![
                ("version", status.version),
                ("updates", status.updates),
                ("env_steps", status.env_steps),
                ("admitted", totals.admitted),
                ("lost", totals.lost),
                ("refused_malformed", totals.refused.malformed),
                ("refused_nonfinite", totals.refused.nonfinite),
                ("refused_stale", totals.refused.stale),
                ("refused_contract", totals.refused.contract),
                ("suspect_batches", totals.suspect),
                ("duplicate_batches", totals.duplicates),
                ("ignored_batches", totals.ignored),
                ("dropped_over_lag", gathered.dropped_lag),
                ("dropped_out_of_phase", gathered.dropped_out),
                ("queue_batches", self.gather.waiting() as u64),
                ("gathered_steps", self.gather.stored()),
                ("phase", status.phase),
                ("members", status.members.len() as u64),
            ],
        }
    }

    /// What it tells rollouts and people.
    pub fn status(&self) -> LearnerStatus {
        let totals = self.admission.totals();
        let gathered = self.gather.counters();
        let phase = self.coordinator.phase();
        LearnerStatus {
            run: self.run,
            life: self.life,
            version: self.newest.0,
            hash: self.newest.1,
            update_mode: self.mode,
            phase,
            quota: self.coordinator.quota(),
            members: self.coordinator.members(),
            paused: self.paused,
            activity: match (self.busy, self.gather.stored()) {
                (true, _) => "learning",
                (false, 0) => "waiting",
                (false, _) => "gathering",
            }
            .into(),
            updates: self.updates,
            env_steps: self.env_steps,
            admitted: totals.admitted,
            lost: totals.lost,
            refused: totals.refused.total(),
            dropped: gathered.dropped_lag + gathered.dropped_out,
            queue_batches: self.gather.waiting() as u32,
            gathered_steps: self.gather.stored().min(u64::from(u32::MAX)) as u32,
        }
    }
}
