//! Every switch makes the test fail that is named beside it; without, the test passes.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Set for one test in a process of its own.
pub(super) const VARIABLE: &str = "HANDOFF_DEFECT";

const FILTER: &str = "option::tests::filter::the_filter_is_the_posterior_over_all_sequences_of_options";
const CHAIN: &str = "option::tests::off_policy::the_chain_recovers_the_targets_values";
const LAW: &str = "policy::tests::options_are_drawn_by_the_law_that_is_recorded";
const THEOREMS: &str = "learn::tests::theorems::the_learner_climbs_the_exact_gradient_of_all_three_levels";
const PROXIMAL: &str = "learn::tests::updates::ratios_of_lagging_data_start_at_one";
const RATIO_ONE: &str = "learn::tests::invariants::fresh_data_has_ratio_one_at_both_levels";
const BALANCE: &str = "learn::tests::losses::the_load_balance_is_that_of_the_law_by_hand";
const PAYS: &str = "learn::tests::targets::a_change_of_option_pays_in_the_sample_and_in_the_expectation";
const LAGS: &str = "learn::tests::updates::lagging_data_is_weighed_and_told";
const SCORE: &str = "learn::tests::losses::the_slope_of_an_action_is_the_score_of_a_gaussian_in_eight_dimensions";
const OWN: &str = "learn::tests::invariants::each_loss_moves_its_own_parameters_only";
const REST: &str = "learn::tests::adam::a_segment_at_rest_does_not_move_though_it_has_momentum";
const RATE: &str = "learn::tests::updates::heads_of_the_option_level_have_a_rate_of_their_own";
const BOOTSTRAP: &str = "learn::tests::targets::one_step_targets_bootstrap_where_the_step_led";
const SEEDED: &str = "learn::tests::updates::a_seeded_update_repeats_to_the_byte";
const FIXED_POINT: &str = "learn::osac::tests::theorems::the_oracles_values_are_the_fixed_point_of_the_targets";
const BELIEFS: &str = "learn::osac::tests::values::responsibilities_are_the_posterior_under_the_present_actor";
const REPLAYED: &str = "learn::osac::tests::values::ends_ages_and_last_observations_reach_the_critics";
const TEMPERATURE: &str = "learn::osac::tests::temperatures::an_entropy_below_its_target_raises_its_temperature";
const RECORDED: &str = "node::rollout::tests::each_step_leads_where_the_arm_went";
const CUT: &str = "option::tests::half_step::no_trace_crosses_a_cut";
const ORDER: &str = "replay::tests::trees::three_leaves_are_found_in_their_order";
const SEAM: &str = "replay::tests::trees::a_prefix_equal_to_the_left_sum_goes_right";
const TOTAL: &str = "replay::tests::trees::prefixes_lead_where_the_segment_tree_of_baselines_leads";
const EMPTY: &str = "replay::tests::trees::a_leaf_of_zero_is_never_found";
const HIGHEST: &str = "replay::tests::store::new_steps_get_the_highest_priority_so_far";

/// Switch, where the mistake was found, and the test that notices it.
const DEFECTS: [(&str, &str, &str); 35] = [
    // Option process and half-step returns.
    ("redrawn_at_every_step", "DeepRL's IOPG takes the mask of goals for that of starts", FILTER),
    ("trace_crosses_an_end", "skrl#449: advantages leak over episodes", CUT),
    ("action_ratios_alone", "lag corrected by the actions' ratios alone", CHAIN),
    // Policy.
    ("starts_in_option_0", "Rainy's AOC evaluates from option 0 on", LAW),
    // Half-step PPO.
    ("credits_the_first_row", "PPOC's loss of the option takes row 0 for all", THEOREMS),
    ("sampled_without_its_probability", "MOC's deep code lacks 1 / p^ of the sampled option", THEOREMS),
    ("correction_inside_the_clip", "MOC's deep code clips the importance ratio too", PROXIMAL),
    ("credit_of_the_next_step", "option_critic's transfer.py pairs an update with the next state's value", THEOREMS),
    ("levels_swapped", "DeepRL#69: DAC's two value functions swapped", THEOREMS),
    ("trains_the_option_before", "Rainy's AOC trains the option before on the actions of the new one", THEOREMS),
    ("ends_the_new_option", "DeepRL's AHP gathers terminations by another option than acted", RATIO_ONE),
    ("marks_options_of_other_rows", "DeepRL 9007929: a mask marks every worker's option in every row", BALANCE),
    ("pays_twice", "Rainy's AOC charges the deliberation cost twice", THEOREMS),
    ("an_end_pays", "PPOC charges the deliberation cost at the end of an episode", PAYS),
    ("old_data_as_new", "PPOC takes an older policy's samples as its own", LAGS),
    ("log_of_density_plus_small", "DAC and PPOC take the log of density + 1e-5", SCORE),
    ("trunk_detached", "option-critic-pytorch keeps the policy's gradient from the trunk", OWN),
    ("momentum_moves_what_rests", "PPOC's two losses share one Adam", REST),
    ("one_rate_for_all", "PPOC's terminations move at the main learning rate", RATE),
    ("time_limit_is_terminal", "stable-baselines3#633: truncation as termination", BOOTSTRAP),
    ("bootstraps_after_the_reset", "rlevo#344: the value where the next episode begins", BOOTSTRAP),
    ("last_value_made_up", "sample-factory's V-trace makes the last value up", BOOTSTRAP),
    ("seed_ignored", "option-critic-pytorch draws from the system", SEEDED),
    // Rollout.
    ("time_limit_recorded_as_terminal", "option-critic-pytorch returns a time-out as done", RECORDED),
    // Option soft actor-critic.
    ("ends_where_it_left", "option-critic-pytorch#1: termination at the state that was left", FIXED_POINT),
    ("one_value_for_all_options", "MOC's deep code uses the executed option's value for all", FIXED_POINT),
    ("ends_before_it_ran", "Rainy's AOC: termination of the new option", BELIEFS),
    ("masked_by_its_own_end", "option-critic-pytorch#1: termination masked with the wrong end", BELIEFS),
    ("target_entropy_turned", "lerobot#1871: the target entropy with the other sign", TEMPERATURE),
    ("replayed_time_limit_is_terminal", "DeepRL and AOC: time limits as ends", REPLAYED),
    // Replay.
    ("tree_of_any_size", "cleanrl#546: order of leaves", ORDER),
    ("seam_goes_left", "prioritized_experience_replay#3: <= for <", SEAM),
    ("total_without_the_last", "stable-baselines#941: total off by one", TOTAL),
    ("draws_empty_leaves", "ReinforcementLearningCore.jl#83: a leaf of 0 is drawn", EMPTY),
    ("highest_priority_rounded", "flashbax#58: the highest priority as a whole number", HIGHEST),
];

/// Tests of rooms that are not compiled in are not here to be run.
fn compiled(test: &str) -> bool {
    cfg!(feature = "torch") || !matches!(test.split("::").next(), Some("learn" | "policy" | "node"))
}

/// Runs tests of this binary in a process of their own, the switch thrown; returns what it printed.
fn run(tests: &[&str], thrown: Option<&str>) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "--test-threads", "1"]).args(tests).env_remove(VARIABLE);
    thrown.map(|switch| command.env(VARIABLE, switch));
    let output = command.output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn each_defect_is_noticed_by_its_test() {
    let here: Vec<_> = DEFECTS.into_iter().filter(|(_, _, test)| compiled(test)).collect();
    let mut tests: Vec<&str> = here.iter().map(|(_, _, test)| *test).collect();
    tests.sort_unstable();
    tests.dedup();
    let sound = run(&tests, None);
    assert!(sound.contains(&format!("test result: ok. {} passed; 0 failed", tests.len())), "{sound}");

    let unnoticed = |(switch, found, test): &(&str, &str, &str)| {
        let told = run(&[test], Some(switch));
        let failed = told.contains("test result: FAILED. 0 passed; 1 failed");
        // By an assertion of its own, not by something that the switch broke on the way.
        let place = told.split("panicked at ").nth(1).and_then(|rest| rest.split(':').next());
        let noticed = failed && place.is_some_and(|file| file.contains("tests"));
        (!noticed).then(|| format!("{test} does not notice {switch} ({found}):\n{told}"))
    };
    let halves = here.split_at(here.len() / 2);
    let all: Vec<String> = std::thread::scope(|scope| {
        let second = scope.spawn(|| halves.1.iter().filter_map(unnoticed).collect::<Vec<_>>());
        let first: Vec<_> = halves.0.iter().filter_map(unnoticed).collect();
        first.into_iter().chain(second.join().unwrap()).collect()
    });
    assert!(all.is_empty(), "{}", all.join("\n"));
}

#[test]
fn every_switch_of_the_code_is_in_the_table_once() {
    let mut switches: BTreeMap<String, usize> = BTreeMap::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.parent().is_some_and(|parent| !parent.ends_with("defect")) {
                let text = std::fs::read_to_string(&path).unwrap_or_default();
                for switch in text.split("defect(\"").skip(1).filter_map(|rest| rest.split('"').next()) {
                    *switches.entry(switch.to_owned()).or_default() += 1;
                }
            }
        }
    }
    let table: BTreeMap<String, usize> = DEFECTS.iter().map(|(switch, _, _)| ((*switch).to_owned(), 1)).collect();
    assert_eq!(switches, table);
}
