//! What is shipped loads: every configuration and every launch file.

use handoff::config;
use handoff::link::Preset;
use handoff::robot::Robot;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Programs that are installed for `ros2 run` and launch.
const EXECUTABLES: [&str; 4] = ["sim", "rollout", "learner", "policy"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn files(folder: &str, ending: &str) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.to_str().unwrap().ends_with(ending));
    files.sort();
    assert!(!files.is_empty(), "{folder} holds no *{ending}");
    files
}

#[test]
fn every_configuration_loads() {
    for path in files("configs", ".yaml").iter().filter(|path| !path.ends_with("record.yaml")) {
        let text = std::fs::read_to_string(path).unwrap();
        let config = config::from_yaml(&text, "learner").unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        config.contract().unwrap();
    }
}

#[test]
fn the_commented_configuration_lists_every_default() {
    let text = std::fs::read_to_string(root().join("configs/train.yaml")).unwrap();
    assert_eq!(config::from_yaml(&text, "train").unwrap(), config::Config::default());
    let written: Value = serde_saphyr::from_str(&text).unwrap();
    let written = &written["/**"]["ros__parameters"];
    fn keys(value: &Value, path: &str, into: &mut Vec<String>) {
        match value {
            Value::Object(map) => map.iter().for_each(|(key, value)| keys(value, &format!("{path}.{key}"), into)),
            _ => into.push(path.to_owned()),
        }
    }
    let (mut listed, mut known) = (Vec::new(), Vec::new());
    keys(written, "", &mut listed);
    keys(&serde_json::to_value(config::Config::default()).unwrap(), "", &mut known);
    listed.sort();
    known.sort();
    assert_eq!(listed, known);
}

/// Executes a launch file against the stand-in in `tests/stand_in`.
fn execute(launch: &Path, arguments: &[&str]) -> Value {
    let stand_in = root().join("tests/stand_in");
    let output = Command::new("python3")
        .arg("-B")
        .arg(stand_in.join("execute.py"))
        .arg(launch)
        .args(arguments)
        .env("PYTHONPATH", &stand_in)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}: {}", launch.display(), String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The configuration that a launched node would read.
fn configuration(node: &Value) -> config::Config {
    let mut parameters = Map::new();
    for given in node["parameters"].as_array().unwrap() {
        match given {
            Value::String(file) => parameters = config::parameters_of(&std::fs::read_to_string(file).unwrap()).unwrap(),
            given => {
                for (key, value) in given.as_object().unwrap() {
                    config::assign(&mut parameters, &format!("{key}={value}")).unwrap();
                }
            }
        }
    }
    config::from_parameters(Value::Object(parameters)).unwrap_or_else(|error| panic!("{node}: {error}"))
}

#[test]
fn every_launch_file_starts_nodes_that_exist_with_parameters_that_exist() {
    for path in files("launch", ".launch.py") {
        let graph = execute(&path, &[]);
        for (name, description) in graph["arguments"].as_object().unwrap() {
            assert!(!description.as_str().unwrap().is_empty(), "{}: {name} is not described", path.display());
        }
        let nodes = graph["nodes"].as_array().unwrap();
        assert!(!nodes.is_empty(), "{} starts nothing", path.display());
        for node in nodes {
            assert_eq!(node["package"], "handoff");
            assert!(EXECUTABLES.contains(&node["executable"].as_str().unwrap()), "{node} does not exist");
            configuration(node);
        }
    }
}

#[test]
fn deploy_launch_passes_its_arguments_on_and_a_simulator_comes_with_link_sim() {
    let launch = root().join("launch/deploy.launch.py");
    let graph = execute(&launch, &["link:=crisp", "robot:=fr3", "run:=runs/a", "scale:=0.1", "namespace:=left"]);
    let nodes = graph["nodes"].as_array().unwrap();
    assert_eq!((nodes.len(), &nodes[0]["executable"], &nodes[0]["namespace"]), (1, &"policy".into(), &"left".into()));
    let config = configuration(&nodes[0]);
    assert_eq!((config.policy.link, config.robot, config.guard.scale), (Preset::Crisp, Robot::Fr3, 0.1));
    assert!(Path::new(&config.policy.run).is_absolute() && config.policy.run.ends_with("runs/a"));
    let graph = execute(&launch, &[]);
    let nodes = graph["nodes"].as_array().unwrap();
    assert_eq!((nodes.len(), &nodes[0]["executable"]), (2, &"sim".into()));
    assert_eq!(configuration(&nodes[0]).sim.mode, config::SimMode::Paced);
    // drawn where nobody else tells of it
    for (link, arm) in [("sim", "panda"), ("franka_fr3", "fr3")] {
        let graph = execute(&launch, &[&format!("link:={link}"), "describe:=true"]);
        let drawn = &graph["nodes"][0];
        assert_eq!(drawn["package"], "robot_state_publisher");
        let urdf = std::fs::read_to_string(root().join(format!("model/{arm}.urdf"))).unwrap();
        assert_eq!(drawn["parameters"][0]["robot_description"]["value"], urdf);
    }
    // up to active by itself, but for who wants to lead it
    assert!(configuration(&nodes[1]).policy.autostart);
    let graph = execute(&launch, &["link:=franka_fr3", "autostart:=false"]);
    let config = configuration(&graph["nodes"][0]);
    assert_eq!((config.policy.link, config.robot, config.policy.autostart), (Preset::FrankaFr3, Robot::Fr3, false));
}

#[test]
fn a_bag_is_recorded_by_the_shipped_settings_where_it_is_asked_for() {
    for launch in ["launch/train.launch.py", "launch/deploy.launch.py"] {
        let graph = execute(&root().join(launch), &["record:=bags/a"]);
        let nodes = graph["nodes"].as_array().unwrap();
        let node = nodes.iter().find(|node| node["executable"] == "recorder").unwrap();
        assert_eq!(node["package"], "rosbag2_transport");
        let (settings, uri) = (&node["parameters"][0], &node["parameters"][1]["storage.uri"]);
        assert!(
            Path::new(settings.as_str().unwrap()).is_file() && uri.as_str().unwrap().ends_with("/bags/a"),
            "{node}"
        );
    }
    let text = std::fs::read_to_string(root().join("configs/record.yaml")).unwrap();
    let settings: Value = serde_saphyr::from_str(&text).unwrap();
    let settings = &settings["/**"]["ros__parameters"];
    assert_eq!(settings["storage"]["storage_id"], "mcap");
    for kind in settings["record"]["topic_types"].as_array().unwrap() {
        handoff::bag::Schema::known(kind.as_str().unwrap()).unwrap();
    }
}

#[test]
fn each_link_has_a_file_that_says_what_its_guard_does() {
    for preset in [Preset::Sim, Preset::Isaac, Preset::IsaacMoveit, Preset::Crisp, Preset::FrankaFr3] {
        let text = std::fs::read_to_string(root().join(format!("configs/policy.{}.yaml", preset.name()))).unwrap();
        let config = config::from_yaml(&text, "policy").unwrap();
        assert_eq!((config.policy.link, config.guard), (preset, preset.guard()), "{}", preset.name());
        assert!(preset.arm().is_none_or(|arm| arm == config.robot), "{}", preset.name());
    }
}

#[test]
fn train_launch_passes_its_arguments_on() {
    let file = root().join("configs/train.yaml");
    let arguments = ["rollouts:=3", "envs:=10", "seed:=7", "options:=2", "env_steps:=5000"];
    let config = format!("config:={}", file.display());
    let graph = execute(&root().join("launch/train.launch.py"), &[&arguments[..], &[&config]].concat());
    let nodes = graph["nodes"].as_array().unwrap();
    let of = |executable: &str| nodes.iter().filter(|node| node["executable"] == executable).collect::<Vec<_>>();
    assert_eq!((of("sim").len(), of("rollout").len(), of("learner").len()), (3, 3, 1));
    let envs: Vec<usize> = of("rollout").into_iter().map(|node| configuration(node).rollout.num_envs).collect();
    assert_eq!(envs, [4, 3, 3]);
    for (sim, rollout) in of("sim").into_iter().zip(of("rollout")) {
        assert_eq!(sim["namespace"], rollout["namespace"]);
        assert_eq!(configuration(sim).rollout.num_envs, configuration(rollout).rollout.num_envs);
    }
    let learner = configuration(of("learner")[0]);
    assert_eq!((learner.seed, learner.options.count, learner.learner.min_rollouts), (7, 2, 3));
    assert_eq!((learner.train.env_steps, learner.train.minutes), (5000, 0.0));
}

#[test]
fn train_launch_names_a_run_as_train_does() {
    let name = |arguments: &[&str]| {
        let graph = execute(&root().join("launch/train.launch.py"), arguments);
        let nodes = graph["nodes"].as_array().unwrap().clone();
        let learner = nodes.iter().find(|node| node["executable"] == "learner").unwrap();
        let (name, secs) = configuration(learner)
            .learner
            .run_dir
            .rsplit_once("__")
            .map(|(a, b)| (a.to_owned(), b.to_owned()))
            .unwrap();
        assert!(secs.parse::<u64>().is_ok(), "{secs}");
        name
    };
    assert!(name(&[]).ends_with("/runs/reach__hs_ppo__1"), "{}", name(&[]));
    assert!(name(&["algo:=ppo", "seed:=7"]).ends_with("/runs/reach__ppo__7"));
    let config = format!("config:={}", root().join("configs/train.yaml").display());
    assert!(name(&[&config, "task:=reach"]).ends_with("/runs/reach"), "what the file says is not looked up");
}

#[test]
fn train_launch_takes_robots_that_are_there_or_starts_paced_ones() {
    let launch = root().join("launch/train.launch.py");
    let graph = execute(&launch, &["link:=isaac", "namespaces:=arm_1,/arm_2"]);
    let nodes = graph["nodes"].as_array().unwrap();
    let of = |executable: &str| nodes.iter().filter(|node| node["executable"] == executable).collect::<Vec<_>>();
    assert_eq!((of("sim").len(), of("learner").len()), (0, 1));
    let namespaces: Vec<_> = of("rollout").iter().map(|node| node["namespace"].as_str().unwrap()).collect();
    assert_eq!(namespaces, ["arm_1", "arm_2"]);
    for node in of("rollout") {
        let config = configuration(node);
        assert_eq!((config.policy.link, config.rollout.on_link, config.rollout.num_envs), (Preset::Isaac, true, 1));
    }
    let learner = configuration(of("learner")[0]).learner;
    assert_eq!((learner.min_rollouts, learner.update_mode), (2, config::UpdateMode::Async));
    let graph = execute(&launch, &["link:=isaac"]);
    assert_eq!(graph["nodes"].as_array().unwrap().len(), 2, "a learner, and one robot without a namespace");
    let graph = execute(&launch, &["link:=sim", "rollouts:=3"]);
    let sims: Vec<_> = graph["nodes"].as_array().unwrap().iter().filter(|node| node["executable"] == "sim").collect();
    let clocks: Vec<bool> = sims.iter().map(|node| configuration(node).sim.clock).collect();
    assert_eq!(clocks, [true, false, false], "one clock for all");
    assert!(sims.iter().all(|node| configuration(node).sim.mode == config::SimMode::Paced));
}

#[test]
fn train_launch_starts_rollouts_alone_on_another_host() {
    let launch = root().join("launch/train.launch.py");
    for (told, name, value) in [
        ("peers:=192.168.1.10;192.168.1.11", "ROS_STATIC_PEERS", "192.168.1.10;192.168.1.11"),
        ("discovery_server:=192.168.1.10:11811", "ROS_DISCOVERY_SERVER", "192.168.1.10:11811"),
    ] {
        let graph = execute(&launch, &["learner:=false", "first:=2", "rollouts:=2", "envs:=5", told]);
        assert_eq!(graph["environment"], serde_json::json!({ name: value }));
        let nodes = graph["nodes"].as_array().unwrap();
        assert!(nodes.iter().all(|node| node["executable"] != "learner"), "{nodes:?}");
        let rollouts: Vec<_> = nodes.iter().filter(|node| node["executable"] == "rollout").collect();
        let of = |node: &Value| (node["namespace"].as_str().unwrap().to_owned(), configuration(node).rollout);
        let (namespaces, rollouts): (Vec<_>, Vec<_>) = rollouts.into_iter().map(of).unzip();
        assert_eq!(namespaces, ["r2", "r3"]);
        let told: Vec<_> = rollouts.iter().map(|it| (it.id.as_str(), it.index, it.num_envs)).collect();
        assert_eq!(told, [("r2", 2, 3), ("r3", 3, 2)]);
    }
}

/// The texts in a document.
fn texts(value: &Value, into: &mut Vec<String>) {
    match value {
        Value::String(text) => into.push(text.clone()),
        Value::Array(values) => values.iter().for_each(|value| texts(value, into)),
        Value::Object(map) => map.iter().for_each(|(key, value)| {
            into.push(key.clone());
            texts(value, into);
        }),
        _ => {}
    }
}

#[test]
fn layouts_show_topics_and_fields_that_the_policy_node_has() {
    let read = |path: &str| std::fs::read_to_string(root().join(path)).unwrap();
    let (node, options) = (read("src/app/nodes/policy/mod.rs"), read("msg/OptionState.msg"));
    for path in files("layouts", "") {
        let text = std::fs::read_to_string(&path).unwrap();
        let json = path.extension().is_some_and(|extension| extension == "json");
        let layout: Value =
            if json { serde_json::from_str(&text).unwrap() } else { serde_saphyr::from_str(&text).unwrap() };
        let mut found = Vec::new();
        texts(&layout, &mut found);
        let own: Vec<&str> =
            found.iter().filter_map(|text| text.trim_start_matches('/').strip_prefix("policy/")).collect();
        assert!(own.contains(&"markers"), "{}: {own:?}", path.display());
        assert!(found.iter().any(|text| text.trim_start_matches('/') == "robot_description"), "{}", path.display());
        for shown in own {
            let (topic, field) = shown.split_once('.').unwrap_or((shown, ""));
            assert!(node.contains(&format!("\"~/{topic}\"")), "{}: no topic ~/{topic}", path.display());
            let field = field.trim_end_matches("[:]");
            let known =
                topic != "option_state" || options.lines().any(|line| line.split_whitespace().nth(1) == Some(field));
            assert!(known, "{}: OptionState has no {field}", path.display());
        }
        // every panel has its place
        if let Some(panels) = layout["configById"].as_object() {
            let mut places = Vec::new();
            texts(&layout["layout"], &mut places);
            assert!(panels.keys().all(|panel| places.contains(panel)), "{}", path.display());
        }
    }
}

#[test]
fn controllers_of_the_guide_take_what_the_links_send() {
    let text = std::fs::read_to_string(root().join("docs/panda.md")).unwrap();
    let blocks = text.split("```yaml\n").skip(1).map(|rest| rest.split_once("```").unwrap().0);
    let (blocks, ours): (Vec<&str>, Vec<&str>) = blocks.partition(|block| block.contains("controller_manager"));
    ours.iter().for_each(|block| drop(config::from_yaml(block, "policy").unwrap()));
    let blocks: Vec<Value> = blocks.iter().map(|block| serde_saphyr::from_str(block).unwrap()).collect();
    let links = [(Preset::Crisp, Robot::Panda), (Preset::FrankaFr3, Robot::Fr3)];
    assert_eq!(blocks.len(), links.len());
    for (block, (preset, robot)) in blocks.iter().zip(links) {
        let (name, controller) =
            block.as_object().unwrap().iter().find(|(name, _)| *name != "controller_manager").unwrap();
        assert!(block["controller_manager"]["ros__parameters"][name]["type"].is_string(), "{name}");
        assert_eq!(controller["ros__parameters"]["joints"], serde_json::json!(robot.joint_names()));
        let commands = preset.link().commands;
        assert!(commands == "target_joint" || commands.starts_with(name), "{name} does not hear {commands}");
    }
}
