//! What does not fit.

use super::*;
use crate::analysis::transitions as transitions_of;
use crate::bag::{Purpose, Verdict};

#[test]
fn what_does_not_fit_is_refused_with_what_would_be_right() {
    let acting = snapshot(1, 0.0);
    let refusal = |bag: &Recording, setup: &Setup| {
        let path = bag.write();
        analyse(&Bag::open(&path).unwrap(), setup, &mut |_| {}, &mut |_| {}).unwrap_err().to_string()
    };
    let (whole, _) = moved(false);
    let said = refusal(&whole.only(&["/goal_pose"]), &Setup::default());
    assert!(said.contains("no joint states") && said.contains("configs/record.yaml"), "{said}");
    let fr3 = Arc::new(Config { hidden: vec![8], robot: Robot::Fr3, ..Config::default() }.contract().unwrap());
    let fr3 = Arc::new(Snapshot { contract: fr3, ..(*acting).clone() });
    let said = refusal(&whole, &Setup { present: present(&fr3), ..Setup::default() });
    assert!(said.contains("panda_") && said.contains("fr3_joint1"), "{said}");
    let said = refusal(&whole, &Setup { present: present(&acting), against: present(&fr3), ..Setup::default() });
    assert!(said.contains("robot"), "{said}");
    // transitions of another contract are left out, and said
    let mut batch = transitions(&acting, 50);
    batch.contract_hash = [9; 32];
    let (found, _) = analysed(&recorded(&batch), &Setup { present: present(&acting), ..Setup::default() });
    assert!(found.now.is_none() && found.notes.iter().any(|note| note.contains("50 transitions")), "{:?}", found.notes);
    // robots that are not looked at are said, beside transitions too
    let mut two = recorded(&transitions(&acting, 50));
    for name in ["/a/joint_states", "/b/joint_states"] {
        let topic = two.topic(name, "sensor_msgs/msg/JointState");
        let names = Robot::Panda.joint_names().to_vec();
        let state = JointState { stamp_secs: 1.0, names, position: READY.to_vec(), velocity: vec![0.0; ARM_DOF] };
        two.add(topic, ns(1.0), recording::joints(&state));
    }
    let (found, _) = analysed(&two, &Setup { present: present(&acting), ..Setup::default() });
    assert_eq!(found.options.unwrap().steps, 50);
    assert!(found.notes.iter().any(|note| note.contains("one of /a, /b")), "{:?}", found.notes);
    let said = refusal(&two, &Setup { namespace: Some("c".into()), ..Setup::default() });
    assert!(said.contains("no robot in the namespace /c; there is /a, /b"), "{said}");
    let (found, _) = analysed(&two, &Setup { namespace: Some("a".into()), ..Setup::default() });
    assert!(!found.notes.iter().any(|note| note.contains("/b")), "{:?}", found.notes);
    // without any policy there is still what happened
    let (found, _) = analysed(&recorded(&transitions(&acting, 50)), &Setup::default());
    assert_eq!(found.options.unwrap().steps, 50);
    assert!(found.notes[0].contains("no policy"));
}

#[test]
fn joint_states_and_commands_alone_are_not_learned_from_and_what_would_be_is_said() {
    let bag = moved(false).0.only(&["/joint_states", "/joint_command", "/policy_weights"]);
    let path = bag.write();
    let refused = transitions_of(std::slice::from_ref(&path), &contract(), &[]).unwrap_err().to_string();
    let survey = Survey::take(&Bag::open(&path).unwrap(), &[], &mut |_| ()).unwrap();
    let verdict = Verdict::new(&survey, None, None);
    assert!(verdict.fit(Purpose::Analysis) && !verdict.fit(Purpose::Learning), "{verdict:?}");
    let judged = verdict.findings.iter().find(|finding| finding.purpose == Purpose::Learning).unwrap();
    for said in [&refused, &judged.sentence] {
        for words in
            ["joint states and commands alone", "TransitionBatch", "configs/record.yaml", "eval RUN --record BAG"]
        {
            assert!(said.contains(words), "{said}");
        }
    }
    assert!(refused.starts_with(&path.display().to_string()), "{refused}");
}
