use crate::contract::{Group, Layout, Segment};
use crate::learn::optimiser::head_norms;
use crate::learn::{Adam, Rates, clip_gradient};
use serde::Deserialize;

/// tests/fixtures/adam.py made it, with PyTorch.
#[derive(Deserialize)]
struct Fixture {
    sizes: Vec<usize>,
    rates: Vec<f64>,
    max_norm: f64,
    start: Vec<f32>,
    steps: Vec<Step>,
    first: Vec<f32>,
    second: Vec<f32>,
}

#[derive(Deserialize)]
struct Step {
    gradient: Vec<f32>,
    rests: Vec<bool>,
    norm: f64,
    parameters: Vec<f32>,
}

fn fixture() -> (Fixture, Layout) {
    let fixture: Fixture = serde_json::from_str(include_str!("../../../tests/fixtures/adam.json")).unwrap();
    let mut layout = Layout { segments: Vec::new() };
    for (index, &size) in fixture.sizes.iter().enumerate() {
        let offset = layout.len();
        let (name, group) = (index.to_string(), Group::Option(index));
        layout.segments.push(Segment { name, shape: vec![size], offset, group });
    }
    (fixture, layout)
}

fn index(group: Group) -> usize {
    let Group::Option(index) = group else { panic!() };
    index
}

#[track_caller]
fn near(found: &[f32], want: &[f32]) {
    for (found, want) in found.iter().zip(want) {
        assert!((found - want).abs() <= 2e-7 + 1e-6 * want.abs(), "found {found}, PyTorch {want}");
    }
}

#[test]
fn steps_and_clipping_are_pytorchs() {
    let (fixture, layout) = fixture();
    let mut adam = Adam::new(layout.clone());
    let mut parameters = fixture.start.clone();
    let mut clipped = 0;
    for step in &fixture.steps {
        let rates = Rates::new(&layout, |group| (!step.rests[index(group)]).then_some(fixture.rates[index(group)]));
        let mut gradient = step.gradient.clone();
        let norm = clip_gradient(&layout, &mut gradient, &rates, fixture.max_norm);
        assert!((norm - step.norm).abs() < 1e-6 * step.norm, "norm {norm}, PyTorch {}", step.norm);
        clipped += usize::from(norm > fixture.max_norm);
        adam.step(&mut parameters, &gradient, &rates);
        near(&parameters, &step.parameters);
    }
    near(&adam.state().first, &fixture.first);
    near(&adam.state().second, &fixture.second);
    assert!(clipped > 5 && clipped + 5 < fixture.steps.len(), "both sides of the clip are seen");
}

#[test]
fn a_segment_at_rest_does_not_move_though_it_has_momentum() {
    let (fixture, layout) = fixture();
    let mut adam = Adam::new(layout.clone());
    let mut parameters = fixture.start;
    let all = Rates::new(&layout, |_| Some(1e-2));
    adam.step(&mut parameters, &fixture.steps[0].gradient, &all);
    let (before, moments) = (parameters.clone(), adam.state().clone());
    let others = Rates::new(&layout, |group| (index(group) != 1).then_some(1e-2));
    adam.step(&mut parameters, &fixture.steps[1].gradient, &others);
    let range = layout.segments[1].range();
    assert_eq!(parameters[range.clone()], before[range.clone()]);
    assert_eq!(adam.state().first[range.clone()], moments.first[range.clone()]);
    assert_eq!(adam.state().second[range.clone()], moments.second[range.clone()]);
    assert_eq!(adam.state().steps, [2, 1, 2]);
    assert!(parameters[..range.start].iter().zip(&before).all(|(now, then)| now != then));
}

#[test]
fn a_restored_state_goes_on_alike_and_a_foreign_one_is_refused() {
    let (fixture, layout) = fixture();
    let rates = Rates::new(&layout, |_| Some(1e-2));
    let (mut one, mut parameters) = (Adam::new(layout.clone()), fixture.start.clone());
    one.step(&mut parameters, &fixture.steps[0].gradient, &rates);
    let mut other = Adam::new(layout.clone());
    let stored = serde_json::to_string(one.state()).unwrap();
    other.restore(serde_json::from_str(&stored).unwrap()).unwrap();
    let mut twin = parameters.clone();
    one.step(&mut parameters, &fixture.steps[1].gradient, &rates);
    other.step(&mut twin, &fixture.steps[1].gradient, &rates);
    assert_eq!(parameters, twin);

    let mut foreign = one.state().clone();
    foreign.first.pop();
    assert!(other.restore(foreign).unwrap_err().to_string().contains("sizes"));
    let mut broken = one.state().clone();
    broken.second[0] = f32::NAN;
    assert!(other.restore(broken).is_err());
}

#[test]
fn the_norm_of_a_head_is_that_of_all_its_segments() {
    let segment = |offset: usize, group| Segment { name: offset.to_string(), shape: vec![2], offset, group };
    let groups = [Group::Trunk, Group::Option(0), Group::Option(1), Group::Option(0), Group::Critic];
    let layout =
        Layout { segments: groups.into_iter().enumerate().map(|(at, group)| segment(2 * at, group)).collect() };
    let gradient = [9.0, 9.0, 1.0, 2.0, 6.0, 8.0, 2.0, 4.0, 9.0, 9.0];
    // 1 + 4 + 4 + 16, 36 + 64
    assert_eq!(head_norms(&layout, &gradient, 2), [5.0, 10.0]);
}
