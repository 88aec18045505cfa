use super::*;

fn mark(incarnation: u64, position: u64) -> Mark {
    Mark { rollout: "r0".into(), incarnation, position }
}

#[test]
fn the_newest_position_of_each_stream_is_found_again_and_a_cut_line_is_left_out() {
    let folder = TempDir::new().unwrap();
    let mut journal = Journal::open(folder.path()).unwrap();
    assert_eq!(journal.marks(), []);
    journal.append(&[mark(1, 10), mark(2, 5)]).unwrap();
    journal.append(&[mark(1, 30)]).unwrap();
    journal.append(&[mark(1, 20)]).unwrap();
    let path = folder.path().join("streams.jsonl");
    let torn = fs::read_to_string(&path).unwrap() + "{\"rollout\":\"r0\",\"incarn";
    fs::write(&path, torn).unwrap();
    let journal = Journal::open(folder.path()).unwrap();
    assert_eq!(journal.marks(), [mark(1, 30), mark(2, 5)]);
    assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 2, "only the newest are kept");
}

#[test]
fn it_does_not_grow_without_bound() {
    let folder = TempDir::new().unwrap();
    let mut journal = Journal::open(folder.path()).unwrap();
    (0..10_000).for_each(|position| journal.append(&[mark(1, position)]).unwrap());
    let lines = fs::read_to_string(folder.path().join("streams.jsonl")).unwrap().lines().count();
    assert!(lines < 4200, "{lines}");
    assert_eq!(Journal::open(folder.path()).unwrap().marks(), [mark(1, 9_999)]);
}
