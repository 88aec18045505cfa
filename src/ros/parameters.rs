//! Parameters: read once at start and shown through the standard services. At run time only those change that somebody
//! heeds. r2r's own services would accept every change and heed none, and a client that vanished would end the node.

use super::node::Node;
use crate::error::{Error, Result};
use r2r::rcl_interfaces::msg::{
    ListParametersResult, Parameter, ParameterDescriptor, ParameterType, ParameterValue as Value, SetParametersResult,
};
use r2r::rcl_interfaces::srv::{
    DescribeParameters, GetParameterTypes, GetParameters, ListParameters, SetParameters, SetParametersAtomically,
};
use serde_json::{Map, Value as Json, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// By dotted name.
pub(super) type Parameters = BTreeMap<String, Value>;

/// Heeds a number that changes at run time, or refuses it.
pub(super) type Setter = Box<dyn FnMut(f64) -> Result<()> + Send>;

/// What is shown, and what may be changed.
struct Store {
    node: String,
    shown: Parameters,
    setters: BTreeMap<String, Setter>,
}

impl Store {
    fn get(&self, name: &str) -> Value {
        self.shown.get(name).cloned().unwrap_or_default()
    }

    fn describe(&self, name: String) -> ParameterDescriptor {
        let read_only = !self.setters.contains_key(&name);
        ParameterDescriptor { type_: self.get(&name).type_, name, read_only, ..Default::default() }
    }

    fn set(&mut self, parameter: &Parameter) -> SetParametersResult {
        let refused = |reason: String| SetParametersResult { successful: false, reason };
        let (name, value) = (&parameter.name, &parameter.value);
        let Some(setter) = self.setters.get_mut(name) else {
            return refused(format!("{name} of {} is read at its start: start it again with another one", self.node));
        };
        let number = match value.type_ {
            kind if kind == ParameterType::PARAMETER_DOUBLE as u8 => value.double_value,
            kind if kind == ParameterType::PARAMETER_INTEGER as u8 => value.integer_value as f64,
            _ => return refused(format!("{name} is a number")),
        };
        match setter(number) {
            Ok(()) => {
                self.shown.insert(name.clone(), ros_of(&json!(number)));
                SetParametersResult { successful: true, reason: String::new() }
            }
            Err(error) => refused(error.to_string()),
        }
    }

    /// All, or none where more than one is asked for: what was heeded cannot be taken back.
    fn set_atomically(&mut self, parameters: &[Parameter]) -> SetParametersResult {
        match parameters {
            [] => SetParametersResult { successful: true, reason: String::new() },
            [one] => self.set(one),
            _ => SetParametersResult { successful: false, reason: "parameters are set one by one here".into() },
        }
    }
}

/// Nested objects of dotted names: `learner.gamma` is `gamma` in `learner`.
pub(super) fn nested<'a>(values: impl Iterator<Item = (&'a String, &'a r2r::ParameterValue)>) -> Result<Json> {
    let mut root = Map::new();
    for (name, value) in values {
        let Some(value) = json_of(name, value)? else { continue };
        let (groups, leaf) = name.rsplit_once('.').map_or((None, name.as_str()), |(groups, leaf)| (Some(groups), leaf));
        let mut map = &mut root;
        for group in groups.iter().flat_map(|groups| groups.split('.')) {
            map = match map.entry(group).or_insert_with(|| json!({})) {
                Json::Object(inner) => inner,
                _ => return Err(both(name, group)),
            };
        }
        if map.insert(leaf.to_owned(), value).is_some_and(|former| former.is_object()) {
            return Err(both(name, leaf));
        }
    }
    Ok(Json::Object(root))
}

fn both(name: &str, part: &str) -> Error {
    Error::invalid(format!("parameter {name}: {part} is a value and a group of values; it can be one of them"))
}

fn json_of(name: &str, value: &r2r::ParameterValue) -> Result<Option<Json>> {
    use r2r::ParameterValue as P;
    let real = |float: &f64| match serde_json::Number::from_f64(*float) {
        Some(number) => Ok(Json::Number(number)),
        None => Err(Error::invalid(format!("parameter {name} is {float}; finite numbers are right"))),
    };
    Ok(Some(match value {
        P::NotSet => return Ok(None),
        P::Bool(value) => json!(value),
        P::Integer(value) => json!(value),
        P::Double(value) => real(value)?,
        P::String(value) => json!(value),
        P::BoolArray(values) => json!(values),
        P::ByteArray(values) => json!(values),
        P::IntegerArray(values) => json!(values),
        P::DoubleArray(values) => Json::Array(values.iter().map(real).collect::<Result<_>>()?),
        P::StringArray(values) => json!(values),
    }))
}

/// The other way round. A value that ROS has no type for is shown as its JSON.
pub(super) fn dotted(value: &Json) -> Parameters {
    fn walk(prefix: &str, value: &Json, into: &mut Parameters) {
        let Json::Object(map) = value else {
            into.insert(prefix.to_owned(), ros_of(value));
            return;
        };
        for (key, value) in map {
            let name = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
            walk(&name, value, into);
        }
    }
    let mut parameters = Parameters::new();
    walk("", value, &mut parameters);
    parameters
}

fn ros_of(value: &Json) -> Value {
    fn all<T>(items: &[Json], item: impl Fn(&Json) -> Option<T>) -> Option<Vec<T>> {
        items.iter().map(item).collect()
    }
    let text = |value: &Json| value.as_str().map(str::to_owned);
    let mut ros = Value::default();
    ros.type_ = match value {
        Json::Null => ParameterType::PARAMETER_NOT_SET as u8,
        Json::Bool(value) => {
            ros.bool_value = *value;
            ParameterType::PARAMETER_BOOL as u8
        }
        Json::Number(number) if number.is_i64() => {
            ros.integer_value = number.as_i64().unwrap_or_default();
            ParameterType::PARAMETER_INTEGER as u8
        }
        Json::Number(number) if number.is_f64() => {
            ros.double_value = number.as_f64().unwrap_or_default();
            ParameterType::PARAMETER_DOUBLE as u8
        }
        Json::String(value) => {
            ros.string_value.clone_from(value);
            ParameterType::PARAMETER_STRING as u8
        }
        Json::Array(items) => {
            if let Some(values) = all(items, Json::as_i64) {
                ros.integer_array_value = values;
                ParameterType::PARAMETER_INTEGER_ARRAY as u8
            } else if let Some(values) = all(items, Json::as_f64) {
                ros.double_array_value = values;
                ParameterType::PARAMETER_DOUBLE_ARRAY as u8
            } else if let Some(values) = all(items, Json::as_bool) {
                ros.bool_array_value = values;
                ParameterType::PARAMETER_BOOL_ARRAY as u8
            } else if let Some(values) = all(items, text) {
                ros.string_array_value = values;
                ParameterType::PARAMETER_STRING_ARRAY as u8
            } else {
                ros.string_value = value.to_string();
                ParameterType::PARAMETER_STRING as u8
            }
        }
        Json::Number(_) | Json::Object(_) => {
            ros.string_value = value.to_string();
            ParameterType::PARAMETER_STRING as u8
        }
    };
    ros
}

/// The six services of `ros2 param`.
pub(super) fn serve(node: &mut Node, shown: Parameters, setters: BTreeMap<String, Setter>) -> Result<()> {
    let store = Arc::new(Mutex::new(Store { node: node.full_name()?, shown, setters }));
    let get = store.clone();
    node.serve::<GetParameters::Service>("~/get_parameters", move |request| {
        let store = lock(&get);
        GetParameters::Response { values: request.names.iter().map(|name| store.get(name)).collect() }
    })?;
    let types = store.clone();
    node.serve::<GetParameterTypes::Service>("~/get_parameter_types", move |request| {
        let store = lock(&types);
        GetParameterTypes::Response { types: request.names.iter().map(|name| store.get(name).type_).collect() }
    })?;
    let describe = store.clone();
    node.serve::<DescribeParameters::Service>("~/describe_parameters", move |request| {
        let store = lock(&describe);
        DescribeParameters::Response {
            descriptors: request.names.into_iter().map(|name| store.describe(name)).collect(),
        }
    })?;
    let known = store.clone();
    node.serve::<ListParameters::Service>("~/list_parameters", move |request| ListParameters::Response {
        result: list(lock(&known).shown.keys(), &request.prefixes, request.depth),
    })?;
    let set = store.clone();
    node.serve::<SetParameters::Service>("~/set_parameters", move |request| {
        let mut store = lock(&set);
        SetParameters::Response { results: request.parameters.iter().map(|parameter| store.set(parameter)).collect() }
    })?;
    node.serve::<SetParametersAtomically::Service>("~/set_parameters_atomically", move |request| {
        SetParametersAtomically::Response { result: lock(&store).set_atomically(&request.parameters) }
    })
}

fn lock(store: &Mutex<Store>) -> MutexGuard<'_, Store> {
    store.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The names below one of the prefixes (all without one), at most `depth` levels deep (0: any).
fn list<'a>(names: impl Iterator<Item = &'a String>, prefixes: &[String], depth: u64) -> ListParametersResult {
    let shallow = |rest: &str| depth == 0 || (rest.matches('.').count() as u64) < depth;
    let below = |name: &str, prefix: &String| match name.strip_prefix(prefix.as_str()) {
        Some("") => true,
        Some(rest) => rest.strip_prefix('.').is_some_and(shallow),
        None => false,
    };
    let wanted = |name: &&String| match prefixes {
        [] => shallow(name),
        prefixes => prefixes.iter().any(|prefix| below(name, prefix)),
    };
    let names: Vec<String> = names.filter(wanted).cloned().collect();
    let mut prefixes: Vec<String> = names.iter().filter_map(|name| Some(name.rsplit_once('.')?.0.to_owned())).collect();
    prefixes.sort();
    prefixes.dedup();
    ListParametersResult { names, prefixes }
}

#[cfg(test)]
mod tests {
    use super::*;
    use r2r::ParameterValue as P;

    fn read(values: &[(&str, P)]) -> Result<Json> {
        let values: Vec<_> = values.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        nested(values.iter().map(|(name, value)| (name, value)))
    }

    #[test]
    fn dotted_names_become_nested_objects() {
        let values = [
            ("seed", P::Integer(3)),
            ("learner.hs_ppo.gamma", P::Double(1.0)),
            ("learner.run", P::String("x".into())),
            ("hidden", P::IntegerArray(vec![64, 32])),
            ("gains", P::DoubleArray(vec![0.5])),
            ("names", P::StringArray(vec!["a".into()])),
            ("unset", P::NotSet),
        ];
        let want = json!({
            "seed": 3, "learner": {"hs_ppo": {"gamma": 1.0}, "run": "x"}, "hidden": [64, 32], "gains": [0.5], "names": ["a"]
        });
        assert_eq!(read(&values).unwrap(), want);
    }

    #[test]
    fn what_is_no_configuration_is_refused_by_name() {
        let clash = "parameter a.b: a is a value and a group of values; it can be one of them";
        let values = [("a", P::Integer(1)), ("a.b", P::Integer(2))];
        assert_eq!(read(&values).unwrap_err().to_string(), clash);
        let values = [("a.b", P::Integer(2)), ("a", P::Integer(1))];
        assert!(read(&values).unwrap_err().to_string().starts_with("parameter a: a is a value and a group"));
        let error = read(&[("gamma", P::Double(f64::NAN))]).unwrap_err().to_string();
        assert_eq!(error, "parameter gamma is NaN; finite numbers are right");
    }

    #[test]
    fn every_value_is_shown_with_its_type() {
        let parameters = dotted(&json!({
            "a": {"bool": true, "int": -3, "double": 2.0, "big": u64::MAX, "list": [1, 2], "mixed": [1, 2.5], "odd": [1, "x"]}
        }));
        let shown: Vec<_> = parameters.iter().map(|(name, value)| (name.as_str(), value.type_)).collect();
        let want =
            [("a.big", 4), ("a.bool", 1), ("a.double", 3), ("a.int", 2), ("a.list", 7), ("a.mixed", 8), ("a.odd", 4)];
        assert_eq!(shown, want);
        assert_eq!(parameters["a.mixed"].double_array_value, [1.0, 2.5]);
        assert_eq!(parameters["a.big"].string_value, "18446744073709551615");
    }

    #[test]
    fn only_what_is_heeded_can_be_set() {
        let heed: Setter =
            Box::new(|share| if share <= 1.0 { Ok(()) } else { Err(Error::invalid(format!("{share} is too much"))) });
        let shown = dotted(&json!({ "guard": { "scale": 0.2 }, "seed": 3 }));
        let mut store = Store { node: "/policy".into(), shown, setters: [("guard.scale".into(), heed)].into() };
        let of = |name: &str, value: Json| Parameter { name: name.into(), value: ros_of(&value) };
        let reason = |result: SetParametersResult| if result.successful { String::new() } else { result.reason };
        assert_eq!(reason(store.set(&of("guard.scale", json!(0.5)))), "");
        assert_eq!(store.get("guard.scale").double_value, 0.5);
        assert_eq!(reason(store.set(&of("guard.scale", json!(1)))), "", "an integer is a number");
        assert_eq!((store.get("guard.scale").type_, store.get("guard.scale").double_value), (3, 1.0));
        assert_eq!(reason(store.set(&of("guard.scale", json!(1.5)))), "1.5 is too much");
        assert_eq!(reason(store.set(&of("guard.scale", json!("fast")))), "guard.scale is a number");
        assert!(reason(store.set(&of("seed", json!(4)))).contains("seed of /policy is read at its start"));
        assert_eq!(store.get("guard.scale").double_value, 1.0);
        assert_eq!(
            [store.describe("guard.scale".into()), store.describe("seed".into())].map(|it| it.read_only),
            [false, true]
        );
        let both = [of("guard.scale", json!(0.1)), of("guard.scale", json!(0.2))];
        assert!(reason(store.set_atomically(&both)).contains("one by one"));
        assert_eq!(reason(store.set_atomically(&both[..1])), "");
        assert_eq!(store.get("guard.scale").double_value, 0.1);
    }

    #[test]
    fn lists_know_prefixes_and_depth() {
        let names = ["a", "b.c", "b.d.e", "bb.c"].map(str::to_owned);
        let listed = |prefixes: &[&str], depth| {
            let prefixes: Vec<_> = prefixes.iter().map(|prefix| (*prefix).to_owned()).collect();
            list(names.iter(), &prefixes, depth)
        };
        assert_eq!(listed(&[], 0).names, names);
        assert_eq!(listed(&[], 0).prefixes, ["b", "b.d", "bb"]);
        assert_eq!(listed(&[], 1).names, ["a"]);
        assert_eq!(listed(&["b"], 0).names, ["b.c", "b.d.e"]);
        assert_eq!(listed(&["b"], 1).names, ["b.c"]);
        assert_eq!(listed(&["a"], 1).names, ["a"]);
    }
}
