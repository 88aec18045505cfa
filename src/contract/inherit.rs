//! What a new run takes over of another run's checkpoint: parameters that have the same name, shape and meaning.

use super::{Architecture, Contract, Group, Layout, Segment};
use std::ops::Range;

/// Where a piece lies there, and where it goes here.
type Piece = (Range<usize>, Range<usize>);

/// What fits of one contract's networks in another's.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inheritance {
    policy: Vec<Piece>,
    /// The on-policy critic: whole or not at all, since its values are in the scale of one return.
    critic: Vec<Piece>,
    critics: Vec<Piece>,
    /// The statistics of the observation.
    pub normaliser: bool,
    /// What does not fit, a sentence each.
    pub left: Vec<String>,
}

impl Inheritance {
    /// Of `from` in `to`.
    pub fn new(from: &Contract, to: &Contract) -> Self {
        let mut new = Self { normaliser: from.observation == to.observation, ..Self::default() };
        if !new.normaliser {
            new.left.push("the observation has another layout: neither its statistics nor the first layers fit".into());
        }
        let acts_alike = from.joints == to.joints && from.action == to.action;
        if !acts_alike {
            new.left.push("joints or the meaning of an action differ: no head of an action fits, and no critic".into());
        }
        let architecture = |contract: &Contract| contract.network.architecture;
        if architecture(from) != architecture(to) {
            let name = |contract: &Contract| match architecture(contract) {
                Architecture::OnPolicy => "on-policy (tanh, values of states)",
                Architecture::OffPolicy => "off-policy (ReLU, values of actions)",
            };
            let (there, here) = (name(from), name(to));
            new.left.push(format!("its networks are {there}, these are {here}: none of their parameters fits"));
            return new;
        }
        let sees =
            |segment: &Segment| new.normaliser || !segment.name.contains(".0.") || segment.name.contains("option");
        let means_the_same = |segment: &Segment| match segment.group {
            Group::Option(_) => acts_alike && sees(segment),
            Group::Critic => acts_alike && new.normaliser,
            _ => sees(segment),
        };
        let options = (from.options.count, to.options.count);
        let (layout, mut left) = (to.layout(), Vec::new());
        let all = pieces(&from.layout(), &layout, options, means_the_same, &mut left);
        let of_critic = |segment: &&Segment| segment.group == Group::Critic;
        let places: Vec<Range<usize>> = layout.segments.iter().filter(of_critic).map(Segment::range).collect();
        let (critic, policy) =
            all.into_iter().partition(|(_, to)| places.iter().any(|place| place.contains(&to.start)));
        let critics = if architecture(to) == Architecture::OffPolicy && acts_alike {
            pieces(&critics(from), &critics(to), options, sees, &mut left)
        } else {
            Vec::new()
        };
        new.left.append(&mut left);
        let mut new = Self { policy, critic, critics, ..new };
        let fits: usize = new.critic.iter().map(|(_, to)| to.len()).sum();
        if fits < places.iter().map(Range::len).sum() {
            new.leave_critic();
            new.left.push("not all of the critic fits: it starts as drawn".into());
        }
        new
    }

    /// Leaves an on-policy critic as drawn.
    pub fn leave_critic(&mut self) {
        self.critic.clear();
    }

    /// Whether an on-policy critic is taken over: with it goes the scale that it learned in.
    pub fn critic(&self) -> bool {
        !self.critic.is_empty()
    }

    /// Puts what fits of the policy's flat parameters `from` in their place in `to`.
    pub fn take_policy(&self, from: &[f32], to: &mut [f32]) {
        take(&self.policy, from, to);
        take(&self.critic, from, to);
    }

    /// The same of the twin critics; `from` must be of the contract that was told.
    pub fn take_critics(&self, from: &[f32], to: &mut [f32]) {
        take(&self.critics, from, to);
    }

    /// Parameters of the policy that fit.
    pub fn fitting(&self) -> usize {
        self.policy.iter().chain(&self.critic).map(|(from, _)| from.len()).sum()
    }
}

fn critics(contract: &Contract) -> Layout {
    let inputs = contract.obs_size() + contract.action_size();
    Layout::twin_critics(inputs, &contract.network.hidden, contract.options.count)
}

fn take(pieces: &[Piece], from: &[f32], to: &mut [f32]) {
    for (there, here) in pieces {
        to[here.clone()].copy_from_slice(&from[there.clone()]);
    }
}

/// Of segments with the same name: all where the shapes are the same, the options that both have where only K differs.
/// Those that do not mean the same are passed over; of others that do not fit, `left` is told in a sentence for each reason.
fn pieces(
    from: &Layout,
    to: &Layout,
    options: (usize, usize),
    same_meaning: impl Fn(&Segment) -> bool,
    left: &mut Vec<String>,
) -> Vec<Piece> {
    let (mut pieces, mut new, mut reshaped) = (Vec::new(), Vec::new(), Vec::new());
    let find = |layout: &Layout, name: &str| layout.segments.iter().find(|segment| segment.name == name).cloned();
    for here in to.segments.iter().filter(|here| same_meaning(here)) {
        let Some(there) = find(from, &here.name) else {
            new.push(here.name.clone());
            continue;
        };
        if there.shape == here.shape {
            pieces.push((there.range(), here.range()));
        } else if let Some(some) = options_of(&there, here, options) {
            pieces.extend(some);
        } else {
            reshaped.push(format!("{} ({:?}, here {:?})", here.name, there.shape, here.shape));
        }
    }
    let gone = from.segments.iter().filter(|there| find(to, &there.name).is_none());
    let gone: Vec<String> = gone.map(|there| there.name.clone()).collect();
    for (what, names) in
        [("new, as drawn", new), ("of another shape, as drawn", reshaped), ("without a place here", gone)]
    {
        if !names.is_empty() {
            left.push(format!("{what}: {}", names.join(", ")));
        }
    }
    pieces
}

/// Where two shapes differ in one axis, which is the options': the pieces of those that both have.
fn options_of(there: &Segment, here: &Segment, (old, new): (usize, usize)) -> Option<Vec<Piece>> {
    let axis = there.shape.iter().zip(&here.shape).position(|(a, b)| a != b)?;
    let same_rest = there.shape.len() == here.shape.len() && there.shape[axis + 1..] == here.shape[axis + 1..];
    if !same_rest || (there.shape[axis], here.shape[axis]) != (old, new) {
        return None;
    }
    let inner: usize = here.shape[axis + 1..].iter().product();
    let outer: usize = here.shape[..axis].iter().product();
    let piece = |segment: &Segment, block: usize, count: usize| {
        let start = segment.offset + block * count * inner;
        start..start + old.min(new) * inner
    };
    Some((0..outer).map(|block| (piece(there, block, old), piece(here, block, new))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::{ActionMeaning, Field, Network, Options, Told};
    use crate::robot::Robot;

    fn contract() -> Contract {
        Contract {
            robot: Robot::Panda,
            joints: Robot::Panda.joint_names().to_vec(),
            task: "reach".into(),
            observation: vec![
                Field { name: "joint_position_rad".into(), len: 7 },
                Field { name: "goal_m".into(), len: 3 },
            ],
            action: ActionMeaning::JointDelta { scale_rad: 0.08 },
            control_period_secs: 0.05,
            options: Options { count: 2, min_steps: 2, max_steps: 50 },
            network: Network { architecture: Architecture::OnPolicy, hidden: vec![6, 5] },
            told: Told::default(),
        }
    }

    fn off_policy(options: usize, hidden: &[usize]) -> Contract {
        let network = Network { architecture: Architecture::OffPolicy, hidden: hidden.to_vec() };
        Contract { network, options: Options { count: options, ..contract().options }, ..contract() }
    }

    /// Segment by segment, what lies in `to` after `from` = 1, 2, 3, ... was taken over into zeros.
    fn taken(from: &Contract, to: &Contract) -> (Inheritance, Vec<(String, Vec<f32>)>) {
        let inheritance = Inheritance::new(from, to);
        let old: Vec<f32> = (1..=from.layout().len()).map(|at| at as f32).collect();
        let mut new = vec![0.0; to.layout().len()];
        inheritance.take_policy(&old, &mut new);
        let segments = to.layout().segments;
        (inheritance, segments.iter().map(|segment| (segment.name.clone(), new[segment.range()].to_vec())).collect())
    }

    fn of(contract: &Contract, name: &str) -> Vec<f32> {
        let segment = contract.layout().segments.into_iter().find(|segment| segment.name == name).unwrap();
        segment.range().map(|at| (at + 1) as f32).collect()
    }

    #[test]
    fn the_same_networks_are_taken_over_whole() {
        for contract in [contract(), off_policy(3, &[6, 5])] {
            let (inheritance, taken) = taken(&contract, &contract);
            assert!(inheritance.normaliser && inheritance.left.is_empty(), "{:?}", inheritance.left);
            assert_eq!(inheritance.fitting(), contract.layout().len());
            assert!(taken.iter().all(|(name, floats)| *floats == of(&contract, name)));
        }
    }

    #[test]
    fn fewer_options_are_the_first_ones_and_new_ones_start_as_drawn() {
        let (four, two) = (off_policy(4, &[6, 5]), off_policy(2, &[6, 5]));
        let (fewer, floats) = taken(&four, &two);
        for (name, floats) in floats {
            let whole = of(&four, &name);
            assert_eq!(floats, whole[..floats.len()], "{name}: rows of options come one behind the other");
        }
        // Mean and log std, weight and bias, of options 2 and 3.
        let names =
            |left: &[String]| left.iter().map(|sentence| sentence.matches("option.").count()).collect::<Vec<_>>();
        assert_eq!(names(&fewer.left), [8], "{:?}", fewer.left);
        assert!(fewer.left[0].starts_with("without a place here: option.2.mean.weight, "), "{:?}", fewer.left);

        let (more, floats) = taken(&two, &four);
        let rows =
            floats.iter().find(|(name, _)| name == "termination.weight").map(|(_, floats)| floats.clone()).unwrap();
        assert_eq!(rows, [of(&two, "termination.weight"), vec![0.0; 10]].concat());
        assert_eq!(names(&more.left), [8], "{:?}", more.left);
        assert!(more.left[0].starts_with("new, as drawn: option.2.mean.weight, "), "{:?}", more.left);

        // The last layer of the twins is [2, K, 5]: of each twin the first two options.
        let critics = |options: usize| Layout::twin_critics(17, &[6, 5], options);
        let old: Vec<f32> = (0..critics(4).len()).map(|at| at as f32).collect();
        let mut new = vec![-1.0; critics(2).len()];
        fewer.take_critics(&old, &mut new);
        let at = |options: usize| critics(options).segments[4].clone();
        let (there, here) = (&old[at(4).range()], &new[at(2).range()]);
        assert_eq!((&here[..10], &here[10..]), (&there[..10], &there[20..30]));
        assert!(!new.contains(&-1.0), "all of the critics is taken over");
    }

    /// What a critic says hangs on what an action does, and on the scale of the return that it learned in.
    #[test]
    fn an_on_policy_critic_is_taken_over_whole_or_not_at_all() {
        let old = contract();
        let mut scaled = contract();
        scaled.action = ActionMeaning::JointDelta { scale_rad: 0.04 };
        let mut reversed = contract();
        reversed.joints.reverse();
        let mut blind = contract();
        blind.observation[1].name = "goal_of_another_kind_m".into();
        let more = Contract { options: Options { count: 3, ..old.options }, ..contract() };
        let fewer = Contract { options: Options { count: 1, ..old.options }, ..contract() };
        let whole = |floats: &[(String, Vec<f32>)]| {
            let critic = floats.iter().filter(|(name, _)| name.starts_with("critic."));
            let taken: Vec<bool> =
                critic.map(|(name, floats)| of(&old, name).get(..floats.len()) == Some(floats)).collect();
            assert_eq!(taken.len(), 6);
            taken.iter().all(|taken| *taken)
        };
        let none = |floats: &[(String, Vec<f32>)]| {
            let mut critic = floats.iter().filter(|(name, _)| name.starts_with("critic."));
            critic.all(|(_, floats)| floats.iter().all(|float| *float == 0.0))
        };
        for (name, new, fits) in [
            ("same", &old, true),
            ("fewer options", &fewer, true),
            ("more options", &more, false),
            ("another scale", &scaled, false),
            ("other joints", &reversed, false),
            ("another observation", &blind, false),
        ] {
            let (inheritance, floats) = taken(&old, new);
            assert_eq!((inheritance.critic(), whole(&floats), none(&floats)), (fits, fits, !fits), "{name}");
            let told =
                inheritance.left.iter().any(|sentence| sentence == "not all of the critic fits: it starts as drawn");
            assert_eq!(told, !fits, "{name}: {:?}", inheritance.left);
        }
        let actions = taken(&old, &scaled).1;
        let head = actions.iter().find(|(name, _)| name == "option.0.mean.weight").unwrap();
        assert!(head.1.iter().all(|float| *float == 0.0) && actions[0].1 == of(&old, "actor.0.weight"));
    }

    #[test]
    fn other_widths_observations_and_families_are_told_in_a_sentence_each() {
        let (wide, narrow) = (off_policy(2, &[8, 5]), off_policy(2, &[6, 5]));
        let (inheritance, floats) = taken(&wide, &narrow);
        let kept: Vec<&str> = floats
            .iter()
            .filter(|(_, floats)| floats.iter().any(|float| *float != 0.0))
            .map(|(name, _)| &name[..])
            .collect();
        assert!(kept.contains(&"actor.1.bias") && kept.contains(&"option.1.mean.weight"), "{kept:?}");
        assert!(!kept.iter().any(|name| name.starts_with("actor.0")), "{kept:?}");
        assert!(inheritance.left.iter().any(|sentence| sentence.contains("actor.0.weight ([8, 10], here [6, 10])")));

        let mut blind = off_policy(2, &[6, 5]);
        blind.observation[1].name = "goal_of_another_kind_m".into();
        let (inheritance, floats) = taken(&narrow, &blind);
        assert!(!inheritance.normaliser && inheritance.left.len() == 1, "{:?}", inheritance.left);
        assert!(floats[0].1.iter().all(|float| *float == 0.0), "{} looks at something else", floats[0].0);
        assert_eq!(floats[2].1, of(&narrow, "actor.1.weight"));

        let (inheritance, floats) = taken(&contract(), &narrow);
        assert!(inheritance.normaliser && inheritance.fitting() == 0);
        assert!(floats.iter().all(|(_, floats)| floats.iter().all(|float| *float == 0.0)));
        assert!(inheritance.left[0].contains("on-policy") && inheritance.left[0].contains("off-policy"));
    }
}
