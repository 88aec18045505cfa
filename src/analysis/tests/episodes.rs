//! Episodes, and the options that ran in them.

use super::*;

#[test]
fn statistics_of_episodes_are_read_where_nothing_else_tells_of_them() {
    let (whole, _) = moved(false);
    let with_stats = |mut bag: Recording| {
        let topic = bag.topic("/r0/episode_stats", "handoff/msg/EpisodeStats");
        bag.add(topic, ns(20.0), crate::bag::encode::stats(&stats()));
        analysed(&bag, &Setup::default()).0.episodes
    };
    let found = with_stats(whole.only(&["/joint_states", "/joint_command"])).unwrap();
    assert_eq!((found.count, found.success, found.episode_return.unwrap().mean), (1, 1, -3.0));
    // the attempts at its goal are these episodes already
    assert_eq!(with_stats(whole).unwrap().ends.keys().copied().collect::<Vec<_>>(), ["the end of the bag"]);
    let acting = snapshot(1, 0.0);
    assert_eq!(with_stats(recorded(&Batch { episodes: vec![stats()], ..transitions(&acting, 50) })).unwrap().count, 1);
}

#[test]
fn options_that_are_never_used_are_listed_and_the_one_that_has_all_is_said() {
    let mut acting = (*constant(0.0, [60.0, 0.0, 0.0, 0.0], 0.0)).clone();
    acting.version = 2;
    let bag = recorded(&transitions(&acting, 100));
    let (found, _) = analysed(&bag, &Setup { present: present(&Arc::new(acting)), ..Setup::default() });
    let steps: Vec<u64> = found.options.unwrap().options.iter().map(|one| one.steps).collect();
    assert_eq!(steps, [100, 0, 0, 0]);
    assert!(found.attention.iter().any(|attention| attention.sentence == "option 0 has 100 % of the ticks"));
}
