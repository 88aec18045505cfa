use crate::config::Seed;
use crate::replay::SumTree;
use proptest::prelude::*;

fn tree(leaves: &[f64]) -> SumTree {
    let mut tree = SumTree::new(leaves.len());
    leaves.iter().enumerate().for_each(|(leaf, &value)| tree.set(leaf, value));
    tree
}

/// The definition: the first leaf whose running sum is over the prefix.
fn naive(leaves: &[f64], prefix: f64) -> Option<usize> {
    let mut sum = 0.0;
    leaves.iter().position(|value| {
        sum += value;
        prefix < sum
    })
}

/// cleanrl#546: leaves keep their order where their number is no power of two.
#[test]
fn three_leaves_are_found_in_their_order() {
    let tree = tree(&[1.0, 1.0, 1.0]);
    assert_eq!([0.5, 1.5, 2.5].map(|prefix| tree.find(prefix).0), [0, 1, 2]);
}

/// Prefix sums of the segment tree in OpenAI baselines (`test_segment_tree.py`, `test_prefixsum_idx`).
#[test]
fn prefixes_lead_where_the_segment_tree_of_baselines_leads() {
    let sparse = tree(&[0.0, 0.0, 1.0, 3.0]);
    assert_eq!([0.0, 0.5, 0.99, 1.01, 3.0, 4.0].map(|prefix| sparse.find(prefix).0), [2, 2, 2, 3, 3, 3]);
    let dense = tree(&[0.5, 1.0, 1.0, 3.0]);
    assert_eq!([0.0, 0.55, 0.99, 1.51, 3.0, 5.5].map(|prefix| dense.find(prefix).0), [0, 1, 1, 2, 3, 3]);
    assert_eq!((sparse.total(), dense.total()), (4.0, 5.5));
}

/// Howuhh/prioritized_experience_replay#3.
#[test]
fn a_prefix_equal_to_the_left_sum_goes_right() {
    let tree = tree(&[1.0, 2.0, 3.0, 4.0]);
    assert_eq!([1.0, 3.0, 6.0].map(|prefix| tree.find(prefix)), [(1, 0.0), (2, 0.0), (3, 0.0)]);
}

/// JuliaReinforcementLearning/ReinforcementLearningCore.jl#83, instadeepai/flashbax#58.
#[test]
fn a_leaf_of_zero_is_never_found() {
    let tree = tree(&[0.0, 1.0, 0.0, 2.0, 0.0]);
    for prefix in [0.0, 0.999, 1.0, 2.999, 3.0, 3.0 + 1e-12, 100.0] {
        assert!(0.0 < tree.get(tree.find(prefix).0), "prefix {prefix}");
    }
}

#[test]
fn millions_of_changes_leave_no_drift() {
    let mut tree = SumTree::new(1000);
    let mut leaves = vec![0.0f64; 1000];
    let mut rng = Seed::root(1).rng(0);
    for change in 0..10_000_000u64 {
        let (leaf, value): (usize, f64) =
            (rng.random_range(0..1000), rng.random::<f64>() * 10f64.powi((change % 7) as i32));
        tree.set(leaf, value);
        leaves[leaf] = value;
    }
    let total: f64 = leaves.iter().sum();
    assert!((tree.total() / total - 1.0).abs() < 1e-12, "{} is not {total}", tree.total());
}

proptest! {
    #[test]
    fn a_tree_finds_what_the_definition_finds(
        leaves in prop::collection::vec(prop_oneof![Just(0.0), 0.001f64..10.0], 1..40),
        shares in prop::collection::vec(0.0f64..1.0, 20),
    ) {
        let tree = tree(&leaves);
        let total: f64 = leaves.iter().sum();
        prop_assert!((tree.total() - total).abs() < 1e-9);
        prop_assume!(0.0 < total);
        for share in shares {
            let (leaf, into) = tree.find(share * total);
            let before: f64 = leaves[..leaf].iter().sum();
            // At a seam, rounding may go either way.
            let at_seam = [before, before + leaves[leaf]].iter().any(|seam| (seam - share * total).abs() < 1e-9);
            prop_assert!(at_seam || Some(leaf) == naive(&leaves, share * total));
            prop_assert!((before + into - share * total).abs() < 1e-9);
        }
    }
}
