//! What is kept of one topic while a survey reads it.

use super::decode::{decode, stamp_ns};
use super::intervals::Intervals;
use super::message::JointNames;
use super::reader::Message;
use super::schema::{Schema, Schemas};
use super::storage::Topic;
use super::survey::{JOINT_STATE, TopicSurvey};
use serde::de::IgnoredAny;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Kinds of joint lists that are kept.
const MAX_LISTS: usize = 4;

/// What is kept of a topic while it is read.
pub(super) struct Track {
    pub(super) schema: Option<Arc<Schema>>,
    pub(super) survey: TopicSurvey,
    intervals: Intervals,
    pub(super) span_ns: Option<(i64, i64)>,
    /// Messages whose time counts.
    timed: u64,
    last_ns: Option<i64>,
    last_stamp_ns: Option<i64>,
    joints: BTreeSet<Vec<String>>,
}

pub(super) fn secs(nanoseconds: i64) -> f64 {
    nanoseconds as f64 * 1e-9
}

impl Track {
    pub(super) fn new(topic: &Topic, schemas: &mut Schemas<'_>) -> Self {
        let schema = schemas.of(topic);
        let survey = TopicSurvey {
            name: topic.name.clone(),
            type_name: topic.type_name.clone(),
            format: topic.format.clone(),
            offers: topic.offers.clone(),
            latched: topic.latched(),
            problem: schema.as_ref().err().map(ToString::to_string),
            ..TopicSurvey::default()
        };
        Self {
            schema: schema.ok(),
            survey,
            intervals: Intervals::default(),
            span_ns: None,
            timed: 0,
            last_ns: None,
            last_stamp_ns: None,
            joints: BTreeSet::new(),
        }
    }

    /// `timed`: its time counts.
    pub(super) fn add(&mut self, message: &Message, timed: bool) {
        let Message { time_ns, data, .. } = message;
        let survey = &mut self.survey;
        survey.messages += 1;
        survey.bytes += data.len() as u64;
        if timed {
            self.timed += 1;
            let (start, end) = self.span_ns.unwrap_or((*time_ns, *time_ns));
            self.span_ns = Some((start.min(*time_ns), end.max(*time_ns)));
            // a simulator's clock may stand while several come: what is told of intervals is told of those in which time went on
            if let Some(last) = self.last_ns.replace(*time_ns).filter(|last| last < time_ns) {
                self.intervals.add(last, *time_ns);
            }
        }
        let Some(schema) = &self.schema else { return };
        if let Err(error) = decode::<IgnoredAny>(schema, data) {
            survey.malformed += 1;
            survey.problem.get_or_insert(error.to_string());
            return;
        }
        if schema.stamped() {
            let stamp = stamp_ns(data);
            if let (Some(last), Some(stamp)) = (self.last_stamp_ns, stamp) {
                survey.repeated_stamps += u64::from(stamp == last);
                survey.stamps_back += u64::from(stamp < last);
            }
            self.last_stamp_ns = stamp;
        }
        if survey.type_name == JOINT_STATE
            && let Ok(JointNames { name }) = decode::<JointNames<'_>>(schema, data)
        {
            let known = self.joints.iter().any(|known| known.iter().eq(name.iter()));
            if !known && self.joints.len() < MAX_LISTS {
                self.joints.insert(name.into_iter().map(str::to_owned).collect());
            }
        }
    }

    pub(super) fn finish(self, since: impl Fn(i64) -> f64) -> TopicSurvey {
        let Self { mut survey, intervals, span_ns, timed, joints, .. } = self;
        let span = span_ns.map_or(0.0, |(start, end)| secs(end.saturating_sub(start)));
        survey.rate_hz = (1 < timed && 0.0 < span).then(|| (timed - 1) as f64 / span);
        let median = intervals.median_ns();
        survey.median_interval_secs = median.map(|median| median * 1e-9);
        survey.gaps = median.map_or(0, |median| intervals.longer_than(3.0 * median));
        let longest = intervals.longest();
        survey.longest_interval_secs = longest.map(|(interval, _)| secs(interval));
        survey.longest_interval_at_secs = longest.map(|(_, at)| since(at));
        survey.joints = joints.into_iter().collect();
        survey
    }
}
