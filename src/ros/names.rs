//! Names in the graph: relative and private ones expanded, remapping rules applied, as rcl does it for publishers and
//! subscriptions. r2r queries the graph by full names only.

/// A remapping rule: for which node (all without), from which name to which.
#[derive(Debug, PartialEq)]
struct Rule {
    node: Option<String>,
    from: String,
    to: String,
}

/// What a node needs to find the full name of a topic.
pub(super) struct Names {
    node: String,
    namespace: String,
    rules: Vec<Rule>,
}

impl Names {
    /// `arguments` are the process's.
    pub(super) fn new(node: &str, namespace: &str, arguments: impl Iterator<Item = String>) -> Self {
        Self { node: node.into(), namespace: namespace.trim_end_matches('/').into(), rules: rules(arguments) }
    }

    /// Full name of a topic.
    pub(super) fn resolve(&self, topic: &str) -> String {
        let full = self.expand(topic);
        let rule = self
            .rules
            .iter()
            .find(|rule| rule.node.as_ref().is_none_or(|node| *node == self.node) && self.expand(&rule.from) == full);
        rule.map_or(full, |rule| self.expand(&rule.to))
    }

    fn expand(&self, name: &str) -> String {
        let Self { node, namespace, .. } = self;
        match name.strip_prefix('~') {
            Some(private) => format!("{namespace}/{node}{private}"),
            None if name.starts_with('/') => name.to_owned(),
            None => format!("{namespace}/{name}"),
        }
    }
}

/// The rules after each `--ros-args`, up to `--`; `__node` and `__ns` are of another kind.
fn rules(arguments: impl Iterator<Item = String>) -> Vec<Rule> {
    let mut rules = Vec::new();
    let (mut ros, mut remap) = (false, false);
    for argument in arguments {
        match argument.as_str() {
            "--ros-args" => ros = true,
            "--" => ros = false,
            "-r" | "--remap" => remap = ros,
            _ if std::mem::take(&mut remap) => rules.extend(rule(&argument)),
            _ => {}
        }
    }
    rules
}

/// `[node:]from:=to`.
fn rule(text: &str) -> Option<Rule> {
    let (left, to) = text.split_once(":=")?;
    let (node, from) = left.split_once(':').map_or((None, left), |(node, from)| (Some(node.to_owned()), from));
    (!from.starts_with("__")).then(|| Rule { node, from: from.into(), to: to.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(arguments: &str) -> Names {
        Names::new("policy", "/arm_1", arguments.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn names_are_expanded() {
        let names = names("handoff policy");
        assert_eq!(names.resolve("joint_states"), "/arm_1/joint_states");
        assert_eq!(names.resolve("/joint_states"), "/joint_states");
        assert_eq!(names.resolve("~/joint_states"), "/arm_1/policy/joint_states");
        assert_eq!(Names::new("policy", "/", std::iter::empty()).resolve("joint_states"), "/joint_states");
    }

    #[test]
    fn the_first_rule_that_fits_counts() {
        let names = names(
            "handoff -r a:=/no --ros-args -r __ns:=/arm_1 -r learner:a:=/other --remap a:=isaac/a -r /arm_1/a:=/late \
             -- -r b:=/no --ros-args -r policy:c:=/c",
        );
        assert_eq!(names.resolve("a"), "/arm_1/isaac/a");
        assert_eq!(names.resolve("b"), "/arm_1/b");
        assert_eq!(names.resolve("c"), "/c");
    }
}
