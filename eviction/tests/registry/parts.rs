//! Each row with each other part: the part changes something, or is refused.

use epikv_eviction::{Error, NamedPolicy, POLICIES, Policy, Trigger, decode};

use crate::{N_PROMPT, brisk, decoder, generation, limits, prompt};

/// Parts to put in the place of those of a row.
const OTHER_PARTS: &[&str] = &[
    "protect=sinks(1)+recency(25)",
    "protect=prompt+recency(17)",
    "protect=prompt+recency(55%)",
    "select=draw",
    "select=top-k+values(11)",
    "select=top-k+variance(50%)",
    "select=top-k+l2(11)",
    "select=top-k+random(11)",
    "select=top-k+random-anew(11)",
    "trigger=every(4)",
    "trigger=buffer(7)",
    "scope=global",
    "scope=per-layer",
    "scope=per-head",
    "position=logical",
    "position=rewound",
    "position=compacted",
    "cache=f32",
    "cache=bf16",
    "seed=7",
];

#[test]
fn no_part_is_accepted_and_does_nothing() {
    let decoder = decoder();
    let run = |policy: &Policy| {
        // What only evicts from the prompt needs a prompt above the budget.
        let prefill = policy.trigger == Trigger::Prefill;
        let (prompt, budget) = if prefill { (prompt(50), 30) } else { (prompt(N_PROMPT), 30) };
        decode(&decoder, policy, limits(policy, budget, prompt.len()), &generation(&prompt, 0))
    };
    let mut refused = 0;
    for row in POLICIES {
        let own = run(&brisk(row.policy)).expect("a row");
        for part in OTHER_PARTS {
            let text = format!("{};{part}", row.name);
            let named = match text.parse::<NamedPolicy>() {
                Ok(named) => named,
                Err(Error::PartDoesNothing { .. } | Error::SelectOf { .. }) => {
                    refused += 1;
                    continue;
                }
                Err(error) => panic!("{text}: {error}"),
            };
            if named.policy == row.policy {
                continue;
            }
            // Recent tokens stay anyway by a score of recency, and by lag-kv, which is one below two chunks of 128 tokens; a
            // policy that evicts from the prompt alone keeps all that comes behind it.
            let by_recency = ["recency", "lag-kv"].contains(&row.policy.score.spec().name);
            let is_idle = by_recency || row.policy.trigger == Trigger::Prefill;
            if is_idle && part.starts_with("protect=prompt") {
                continue;
            }
            let other = if part.starts_with("trigger") { named.policy } else { brisk(named.policy) };
            let other = match run(&other) {
                Ok(other) => other,
                // Keys that are rotated anew have no 16-bit form.
                Err(Error::Model(_)) => {
                    refused += 1;
                    continue;
                }
                Err(error) => panic!("{text}: {error}"),
            };
            assert!(
                other.margins != own.margins || other.certificate != own.certificate,
                "{text} is accepted and does nothing"
            );
        }
    }
    assert!(refused > 30, "{refused}");
}
