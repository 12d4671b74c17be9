//! The example of a policy from outside runs, and stands in the grid beside the others.

#[expect(dead_code, reason = "its main prints what is asked for here")]
#[path = "../../examples/my_policy.rs"]
mod example;

#[test]
fn a_policy_from_outside_runs_in_the_grid() {
    let table = example::accuracy(1).unwrap();
    for policy in ["full", "surprise", "epikv", "random", "window"] {
        assert!(table.contains(policy), "{policy}: {table}");
    }
    let rows = |policy: &str| table.lines().filter(|line| line.contains(policy)).count();
    assert_eq!((rows("surprise"), rows("window")), (2, 2), "one a budget: {table}");
}
