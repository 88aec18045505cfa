//! Parameter files and parameter maps in, a checked configuration out; and back.

use super::{Algo, Config, Policy};
use crate::error::{Error, Result};
use crate::link::Preset;
use serde_json::{Map, Value};

/// Reads a ROS parameter file for the node `node`: `/**` first, then what is keyed by the node's name.
/// Unknown keys, wrong types and values out of range are refused with their path.
pub fn from_yaml(text: &str, node: &str) -> Result<Config> {
    from_parameters(Value::Object(given(text, node)?))
}

/// What a file sets for a node.
fn given(text: &str, node: &str) -> Result<Map<String, Value>> {
    let file: Value =
        serde_saphyr::from_str(text).map_err(|error| Error::invalid(format!("this is no YAML: {error}")))?;
    let Value::Object(sections) = file else {
        return Err(Error::invalid("a parameter file is a map: `/**: {ros__parameters: {...}}`"));
    };
    if let Some((key, _)) = sections.iter().find(|(_, section)| section.get("ros__parameters").is_none()) {
        return Err(Error::invalid(format!(
            "`{key}` stands at the top of the file: parameters belong below `/**: ros__parameters:`"
        )));
    }
    let mut parameters = Map::new();
    for pattern in ["/**", &format!("/**/{node}"), &format!("/{node}"), node] {
        let Some(section) = sections.get(pattern) else { continue };
        match section.get("ros__parameters") {
            Some(Value::Object(section)) => merge(&mut parameters, section),
            _ => return Err(Error::invalid(format!("`{pattern}` has no map `ros__parameters`"))),
        }
    }
    Ok(parameters)
}

/// Takes nested parameters (`{"learner": {"gamma": 0.9}}`) over the defaults of their algorithm and their link.
pub fn from_parameters(parameters: Value) -> Result<Config> {
    let algo = parameters.get("algo").and_then(|algo| serde_json::from_value::<Algo>(algo.clone()).ok());
    let link = parameters.get("policy").and_then(|policy| policy.get("link"));
    let link = link.and_then(|link| serde_json::from_value::<Preset>(link.clone()).ok());
    let guard = link.unwrap_or(Policy::default().link).guard();
    let defaults = serde_json::to_value(Config { guard, ..Config::of(algo.unwrap_or(Config::default().algo)) });
    let parameters = match (defaults, parameters) {
        (Ok(Value::Object(mut all)), Value::Object(given)) => {
            merge(&mut all, &given);
            Value::Object(all)
        }
        (_, given) => given,
    };
    let config: Config = serde_path_to_error::deserialize(parameters).map_err(|error| {
        let path = error.path().to_string();
        let reason = error.into_inner();
        Error::invalid(if path == "." { reason.to_string() } else { format!("{path}: {reason}") })
    })?;
    config.validate()?;
    Ok(config)
}

/// Takes `learner.gamma=0.9`, read as YAML, into nested parameters.
pub fn assign(parameters: &mut Map<String, Value>, assignment: &str) -> Result<()> {
    let (path, value) = assignment
        .split_once('=')
        .map(|(path, value)| (path.trim_end_matches(':'), value))
        .ok_or_else(|| Error::invalid(format!("`{assignment}` sets nothing: write it as learner.hs_ppo.gamma=0.95")))?;
    let value: Value = serde_saphyr::from_str(value)
        .map_err(|error| Error::invalid(format!("{path}: `{value}` is no YAML: {error}")))?;
    let nested = path.rsplit('.').fold(value, |inner, key| Value::Object(Map::from_iter([(key.to_owned(), inner)])));
    if let Value::Object(nested) = nested {
        merge(parameters, &nested);
    }
    Ok(())
}

/// What a file's `/**` section sets, to be merged with others before [`from_parameters`].
/// Sections of single nodes are refused: a whole training has one configuration.
pub fn parameters_of(text: &str) -> Result<Map<String, Value>> {
    let parameters = given(text, "train")?;
    from_parameters(Value::Object(parameters.clone()))?;
    if let Ok(Value::Object(sections)) = serde_saphyr::from_str(text)
        && let Some(key) = sections.keys().find(|key| *key != "/**")
    {
        return Err(Error::invalid(format!(
            "`{key}` would not be read: a training takes all of its parameters from `/**`; move them there"
        )));
    }
    Ok(parameters)
}

/// A ROS parameter file that gives back this configuration.
pub fn to_yaml(config: &Config) -> Result<String> {
    let file = serde_json::json!({ "/**": { "ros__parameters": config } });
    serde_saphyr::to_string(&file)
        .map_err(|error| Error::invalid(format!("the configuration cannot be written: {error}")))
}

fn merge(into: &mut Map<String, Value>, from: &Map<String, Value>) {
    for (key, value) in from {
        match (into.get_mut(key), value) {
            (Some(Value::Object(into)), Value::Object(from)) => merge(into, from),
            _ => {
                into.insert(key.clone(), value.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::UpdateMode;

    fn refusal(yaml: &str) -> String {
        from_yaml(yaml, "learner").unwrap_err().to_string()
    }

    #[test]
    fn node_sections_override_the_shared_one() {
        let yaml = "/**: {ros__parameters: {seed: 3, learner: {hs_ppo: {gamma: 0.9, lr: 1}}}}\n\
                    learner: {ros__parameters: {learner: {hs_ppo: {gamma: 0.8}, update_mode: async}}}";
        let config = from_yaml(yaml, "learner").unwrap();
        assert_eq!((config.seed, config.learner.hs_ppo.gamma, config.learner.hs_ppo.lr), (3, 0.8, 1.0));
        assert_eq!(config.learner.update_mode, UpdateMode::Async);
        assert_eq!(from_yaml(yaml, "rollout").unwrap().learner.hs_ppo.gamma, 0.9);
    }

    #[test]
    fn what_is_written_reads_back() {
        let mut config = Config { seed: 9, hidden: vec![64, 32], ..Config::default() };
        config.learner.run_dir = "runs/a b: c".into();
        config.sim.timestep_secs = 1.0 / 480.0;
        assert_eq!(from_yaml(&to_yaml(&config).unwrap(), "rollout").unwrap(), config);
    }

    #[test]
    fn refusals_name_path_and_what_would_be_right() {
        let unknown = refusal("/**: {ros__parameters: {learner: {hs_ppo: {gama: 1}}}}");
        assert!(unknown.contains("learner.hs_ppo") && unknown.contains("gama"), "{unknown}");
        let range = refusal("/**: {ros__parameters: {learner: {hs_ppo: {gamma: 1.5}}}}");
        assert!(range.contains("learner.hs_ppo.gamma") && range.contains("1.5") && range.contains('1'), "{range}");
        let kind = refusal("/**: {ros__parameters: {options: {count: four}}}");
        assert!(kind.contains("options.count"), "{kind}");
        let unfit = refusal("/**: {ros__parameters: {options: {count: 2, min_steps: 9, max_steps: 3}}}");
        assert!(unfit.contains("min_steps") && unfit.contains('9') && unfit.contains('3'), "{unfit}");
    }

    /// Every leaf of a configuration, with the path that sets it.
    fn leaves(value: &Value, path: &str, into: &mut Vec<(String, Value)>) {
        match value {
            Value::Object(map) => {
                for (key, value) in map {
                    let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                    leaves(value, &path, into);
                }
            }
            leaf => into.push((path.to_owned(), leaf.clone())),
        }
    }

    #[test]
    fn every_key_can_be_set_alone() {
        let mut all = Vec::new();
        leaves(&serde_json::to_value(Config::default()).unwrap(), "", &mut all);
        assert!(60 < all.len());
        for (path, value) in all {
            let mut parameters = Map::new();
            assign(&mut parameters, &format!("{path}={value}")).unwrap();
            assert_eq!(from_parameters(Value::Object(parameters)).unwrap(), Config::default(), "{path}");
        }
    }

    #[test]
    fn an_algorithm_brings_its_defaults_and_a_file_overrides_them() {
        let read = |yaml: &str| from_yaml(&format!("/**: {{ros__parameters: {yaml}}}"), "train").unwrap();
        assert_eq!(read("{algo: sac}"), Config::of(Algo::Sac));
        assert_eq!((read("{algo: osac}").train.envs, read("{algo: osac, train: {envs: 7}}").train.envs), (4, 7));
        // What a file leaves open is left to the algorithm that the command line names.
        let mut parameters = parameters_of("/**: {ros__parameters: {seed: 3}}").unwrap();
        assign(&mut parameters, "algo=osac").unwrap();
        let config = from_parameters(Value::Object(parameters)).unwrap();
        assert_eq!(config, Config { seed: 3, ..Config::of(Algo::Osac) });
    }

    #[test]
    fn a_link_brings_its_guard_and_a_file_overrides_it() {
        let read = |yaml: &str| from_yaml(&format!("/**: {{ros__parameters: {yaml}}}"), "policy").unwrap().guard;
        assert_eq!(read("{}"), Preset::Sim.guard());
        assert_eq!(read("{policy: {link: crisp}}"), Preset::Crisp.guard());
        let slower = crate::guard::Config { scale: 0.1, ..Preset::Crisp.guard() };
        assert_eq!(read("{policy: {link: crisp}, guard: {scale: 0.1}}"), slower);
        let said = refusal("/**: {ros__parameters: {policy: {link: gazebo}}}");
        assert!(said.contains("policy.link") && said.contains("gazebo") && said.contains("isaac_moveit"), "{said}");
        assert!(refusal("/**: {ros__parameters: {guard: {scale: 1.5}}}").contains("guard.scale"));
    }

    #[test]
    fn what_would_not_be_read_is_refused() {
        let flat = refusal("seed: 7");
        assert!(flat.contains("`seed`") && flat.contains("ros__parameters"), "{flat}");
        let other = parameters_of("/**: {ros__parameters: {seed: 1}}\nlearner: {ros__parameters: {seed: 9}}");
        let other = other.unwrap_err().to_string();
        assert!(other.contains("`learner`") && other.contains("/**"), "{other}");
    }

    #[test]
    fn assignments_nest() {
        let mut parameters = Map::new();
        assign(&mut parameters, "learner.hs_ppo.gamma=0.5").unwrap();
        assign(&mut parameters, "hidden:=[32]").unwrap();
        let config = from_parameters(Value::Object(parameters)).unwrap();
        assert_eq!((config.learner.hs_ppo.gamma, config.hidden), (0.5, vec![32]));
        assert!(assign(&mut Map::new(), "gamma").is_err());
    }
}
