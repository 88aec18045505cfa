//! A binary tree of sums: changes and draws in logarithmic time.

use crate::defect::defect;

/// Sums over non-negative leaves. An inner node is always the sum of its two children as they are, so nothing drifts.
#[derive(Clone, Debug, PartialEq)]
pub struct SumTree {
    /// A power of two.
    leaves: usize,
    /// The root is 1, the children of n are 2n and 2n + 1, the leaves come last.
    nodes: Vec<f64>,
}

impl SumTree {
    /// `leaves` zeros.
    pub fn new(leaves: usize) -> Self {
        let leaves = if defect("tree_of_any_size") { leaves } else { leaves.next_power_of_two() };
        Self { leaves, nodes: vec![0.0; 2 * leaves] }
    }

    /// Sum of all leaves.
    pub fn total(&self) -> f64 {
        self.nodes[1] - if defect("total_without_the_last") { self.nodes[2 * self.leaves - 1] } else { 0.0 }
    }

    /// A leaf.
    pub fn get(&self, leaf: usize) -> f64 {
        self.nodes[self.leaves + leaf]
    }

    /// Changes a leaf.
    pub fn set(&mut self, leaf: usize, value: f64) {
        let mut node = self.leaves + leaf;
        self.nodes[node] = value;
        while 1 < node {
            node /= 2;
            self.nodes[node] = self.nodes[2 * node] + self.nodes[2 * node + 1];
        }
    }

    /// The leaf that holds `prefix` in the running sum, and how far into it: leaf i holds [sum before i, sum through i).
    /// Never a leaf of 0, unless all are; a prefix at or over the total gives the last leaf that is not 0.
    pub fn find(&self, mut prefix: f64) -> (usize, f64) {
        let mut node = 1;
        while node < self.leaves {
            let (left, right) = (self.nodes[2 * node], self.nodes[2 * node + 1]);
            let at_seam = defect("seam_goes_left") && prefix == left;
            if prefix < left || at_seam || right == 0.0 && !defect("draws_empty_leaves") {
                node *= 2;
            } else {
                prefix -= left;
                node = 2 * node + 1;
            }
        }
        (node - self.leaves, prefix)
    }
}
