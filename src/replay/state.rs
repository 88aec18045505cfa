//! The replay as the named vectors of a checkpoint, and back.

use super::store::{BLOCK, Kind, Replay, Row, Shape};
use crate::data::Vectors;
use crate::error::{Error, Result};

const FLOATS: [&str; 4] = ["observations", "proposals", "actions", "rewards"];
const SMALL: [&str; 7] = ["kind", "at", "left", "option_prev", "codes", "age", "option"];
const OPTION: usize = 6;
const PRIORITIES: &str = "priorities";
const PLACES: &str = "places";

impl Replay {
    /// Everything that the draws to come hang on.
    pub fn save(&self) -> Vectors {
        let Shape { obs, action, .. } = self.shape;
        let used = &self.rows[..self.high];
        let mut saved = Vectors::default();
        let vectors = [&self.observations, &self.proposals, &self.actions, &self.rewards];
        for ((name, vector), width) in FLOATS.into_iter().zip(vectors).zip([obs, action, action, 1]) {
            saved.floats.insert(name.into(), vector[..self.high * width].to_vec());
        }
        for (index, name) in SMALL[..OPTION].iter().copied().enumerate() {
            saved.floats.insert(name.into(), used.iter().map(|row| small(row)[index] as f32).collect());
        }
        let options = self.options[..self.high].iter().map(|&option| f32::from(option)).collect();
        saved.floats.insert(SMALL[OPTION].into(), options);
        saved.doubles.insert(PRIORITIES.into(), self.priorities[..self.high].to_vec());
        saved.doubles.insert(PLACES.into(), vec![self.cursor as f64, self.high as f64, self.highest]);
        saved
    }

    /// Goes on from [`Self::save`]. Refuses what this replay could not have saved, and is then as it was.
    pub fn restore(&mut self, saved: &Vectors) -> Result<()> {
        let floats = |name: &str| saved.floats(name);
        let doubles = |name: &str| saved.doubles(name);
        let &[cursor, high, highest] = doubles(PLACES)? else { return Err(broken("it does not say where it stands")) };
        let most = self.rows.len();
        if !(0.0 <= cursor && cursor <= high && high <= most as f64 && highest.is_finite()) {
            return Err(broken(&format!("it stands at row {cursor} of {high}; this replay has {most}")));
        }
        let (cursor, high) = (cursor as usize, high as usize);
        let Shape { obs, action, options, .. } = self.shape;
        let sized = |name: &str, found: usize, want: usize| match found == want {
            true => Ok(()),
            false => Err(broken(&format!("its `{name}` has {found} numbers; this replay needs {want}"))),
        };
        for (name, width) in FLOATS.into_iter().zip([obs, action, action, 1]) {
            sized(name, floats(name)?.len(), high * width)?;
        }
        let mut columns = Vec::new();
        for name in SMALL {
            sized(name, floats(name)?.len(), high)?;
            columns.push(floats(name)?);
        }
        let priorities = doubles(PRIORITIES)?;
        sized(PRIORITIES, priorities.len(), high)?;
        let options_of: Vec<u8> = columns[OPTION].iter().map(|&option| option as u8).collect();
        let rows: Vec<Row> = (0..high).map(|row| large(|column| columns[column][row])).collect();
        let joined = |before: &Row, row: &Row| {
            before.kind == Kind::Step
                && u32::from(before.at) + 1 == u32::from(row.at)
                && u32::from(row.left) + 1 == u32::from(before.left)
        };
        let sound = |(at, row): (usize, &Row)| {
            let led_to = row.at == 0 || at.checked_sub(1).is_some_and(|before| joined(&rows[before], row));
            match row.kind {
                Kind::Free => priorities[at] == 0.0,
                Kind::Edge => led_to && 0 < row.at && row.left == 0 && priorities[at] == 0.0,
                Kind::Step => {
                    let leads = rows.get(at + 1).is_some_and(|next| next.kind != Kind::Free && 0 < next.at);
                    let (option, priority) = (usize::from(options_of[at]), priorities[at]);
                    led_to && leads && 0 < row.left && option < options && 0.0 < priority && priority <= highest
                }
            }
        };
        if let Some(at) = rows.iter().enumerate().position(|row| !sound(row)) {
            return Err(broken(&format!("its row {at} belongs to no fragment")));
        }

        *self = Self::new(self.shape, self.rows.len(), self.priority)?;
        (self.cursor, self.high, self.highest) = (cursor, high, highest);
        self.rows[..high].copy_from_slice(&rows);
        self.observations[..high * obs].copy_from_slice(floats(FLOATS[0])?);
        self.proposals[..high * action].copy_from_slice(floats(FLOATS[1])?);
        self.actions[..high * action].copy_from_slice(floats(FLOATS[2])?);
        self.rewards[..high].copy_from_slice(floats(FLOATS[3])?);
        self.priorities[..high].copy_from_slice(priorities);
        self.options[..high].copy_from_slice(&options_of);
        for (_, option) in rows.iter().zip(options_of).filter(|(row, _)| row.kind == Kind::Step) {
            self.counts[usize::from(option)] += 1;
        }
        for option in 0..options {
            (0..high).step_by(BLOCK).for_each(|row| self.sum_block(option, row));
        }
        Ok(())
    }
}

/// Says what can be done about a replay that cannot be used.
pub fn spoiled(error: &Error) -> Error {
    Error::invalid(format!("{error}; --without-replay goes on with the rest, and learns from new steps alone"))
}

fn small(row: &Row) -> [u32; OPTION] {
    let Row { at, left, option_prev, codes, age, kind, .. } = *row;
    let (at, left) = (u32::from(at), u32::from(left));
    [kind as u32, at, left, option_prev.into(), codes.into(), age]
}

fn large(column: impl Fn(usize) -> f32) -> Row {
    Row {
        kind: match column(0) as u32 {
            1 => Kind::Step,
            2 => Kind::Edge,
            _ => Kind::Free,
        },
        at: column(1) as u16,
        left: column(2) as u16,
        option_prev: column(3) as u8,
        codes: column(4) as u8,
        age: column(5) as u32,
        generation: 0,
    }
}

fn broken(what: &str) -> Error {
    Error::invalid(format!("the checkpoint's replay cannot be used: {what}"))
}
