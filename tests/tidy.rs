//! The doors between the rooms.

use std::path::{Path, PathBuf};

/// Rust files below a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}

/// Whether the code holds the word as a path of its own, not as the end of another (`watch::` is not `tch::`).
fn says(code: &str, word: &str) -> bool {
    let begins = |at: usize| !code[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_');
    code.match_indices(word).any(|(at, _)| begins(at))
}

/// Asserts that only these rooms say one of the words in their code (comments do not count).
fn only(rooms: &[&str], words: &[&str]) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut seen = false;
    for path in sources(&root) {
        let room = path.strip_prefix(&root).unwrap().iter().next().unwrap().to_str().unwrap().to_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        for (line, code) in text.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//")) {
            let found = words.iter().find(|word| says(code, word));
            let allowed = rooms.contains(&room.as_str());
            seen |= allowed && found.is_some();
            assert!(allowed || found.is_none(), "{}:{}: only {rooms:?} may say {found:?}", path.display(), line + 1);
        }
    }
    assert!(seen, "no room of {rooms:?} says {words:?}: this test looks for the wrong words");
}

#[test]
fn only_ros_names_r2r() {
    only(&["ros"], &["r2r::"]);
}

#[test]
fn only_policy_and_learn_name_tch() {
    only(&["policy", "learn"], &["tch::"]);
}

#[test]
fn only_sim_names_mujoco() {
    only(&["sim"], &["mujoco_rs"]);
}

#[test]
fn only_bag_names_the_storages_of_recordings() {
    only(&["bag"], &["mcap::", "rusqlite::"]);
}

#[test]
fn sim_learn_and_ros_never_meet() {
    only(&["sim", "node", "app"], &["crate::sim"]);
    only(&["learn", "node", "app"], &["crate::learn"]);
    only(&["ros", "app"], &["crate::ros"]);
    only(&["bag", "report", "analysis", "app"], &["crate::bag"]);
}

#[test]
fn a_room_looks_where_architecture_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let map = std::fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    // | `room` | holds | may use | feature |
    let rows = map.lines().filter_map(|line| Some(line.strip_prefix("| `")?.split(" | ").collect::<Vec<_>>()));
    let rooms: Vec<(String, String)> = rows
        .filter(|row| row.len() == 4)
        .map(|row| (row[0].trim_end_matches('`').to_owned(), row[2].to_owned()))
        .collect();
    let mut seen = 0;
    for (room, may_use) in &rooms {
        for path in sources(&root.join("src").join(room)) {
            if path.components().any(|part| part.as_os_str() == "tests") || path.ends_with("tests.rs") {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let code: Vec<&str> = text
                .split("#[cfg(test)]\nmod tests {")
                .take(1)
                .flat_map(str::lines)
                .filter(|line| !line.trim_start().starts_with("//"))
                .collect();
            for (other, _) in rooms.iter().filter(|(other, _)| other != room && other != "defect") {
                let uses = code.iter().any(|line| says(line, &format!("crate::{other}::")));
                let except = may_use.strip_prefix("all but ");
                let allowed = match except {
                    Some(rooms) => !words(rooms).contains(&other.as_str()),
                    None => may_use.starts_with("all") || words(may_use).contains(&other.as_str()),
                };
                seen += usize::from(uses && allowed);
                assert!(
                    !uses || allowed,
                    "{} uses {other}; ARCHITECTURE.md says that {room} may use: {may_use}",
                    path.display()
                );
            }
        }
    }
    assert!(100 < seen, "{seen} uses were seen: this test looks for the wrong words");
}

/// The words of a cell.
fn words(cell: &str) -> Vec<&str> {
    cell.split(|letter: char| !letter.is_alphanumeric()).collect()
}

#[test]
fn programs_only_parse_and_run() {
    let program = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/bin/handoff.rs")).unwrap();
    assert!(program.lines().count() <= 60, "src/bin/handoff.rs has {} lines", program.lines().count());
}

#[test]
fn the_wall_clock_stamps_and_names_and_decides_nothing() {
    // Whoever waits or measures does so by the steady clock: a clock that is set back an hour changes nothing.
    let stamps = ["report/events.rs", "report/logs.rs", "report/metrics.rs", "ros/time.rs", "ros/diagnostics.rs"];
    let more_stamps = ["ros/lifecycle.rs", "ros/logs.rs", "ros/mod.rs", "ros/convert/status.rs", "ros/tap.rs"];
    let names_of_run_folders = ["app/train.rs", "node/trainer/mod.rs", "run/dir.rs"];
    let ages_of_files = ["app/status.rs"];
    let allowed = [&stamps[..], &more_stamps, &names_of_run_folders, &ages_of_files].concat();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for path in sources(&root) {
        let name = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        let found = ["SystemTime", "wall_now", "UNIX_EPOCH"].into_iter().find(|word| text.contains(word));
        let tests = name.contains("tests");
        assert!(
            tests || allowed.contains(&name.as_str()) || found.is_none(),
            "{name} says {found:?}: use the steady clock"
        );
    }
}

#[test]
fn every_link_of_the_pages_leads_to_a_file() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let pages = std::fs::read_dir(root).unwrap().chain(std::fs::read_dir(root.join("docs")).unwrap());
    let pages = pages.map(|page| page.unwrap().path());
    let mut links = 0;
    for page in pages.filter(|page| page.extension().is_some_and(|extension| extension == "md")) {
        let text = std::fs::read_to_string(&page).unwrap();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = link.split('#').next().unwrap();
            if file.is_empty() || link.contains("://") {
                continue;
            }
            assert!(
                page.parent().unwrap().join(file).exists(),
                "{} links to {link}, which is not there",
                page.display()
            );
            links += 1;
        }
    }
    assert!(5 < links, "{links} links: this test looks for the wrong form");
}
