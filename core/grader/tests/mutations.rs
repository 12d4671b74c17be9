//! Mutation fuzzing on the stable toolchain: answers of all kinds, damaged at random from a fixed seed.
//!
//! The short run is part of the tests. The long one, some minutes, is run by hand:
//!
//! ```sh
//! cargo test --release --workspace --test mutations -- --ignored
//! ```

#[path = "support/invariants.rs"]
mod invariants;

/// Lines of answers to start from.
const KINDS: &str = include_str!("kinds.txt");

/// What is put into an answer.
const PIECES: [&str; 36] = [
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    "\\{",
    "\\}",
    "\\left",
    "\\right.",
    "|",
    "$",
    "\\boxed{",
    "\\frac",
    "\\sqrt",
    "^",
    "_",
    "!",
    "%",
    "\\pm",
    "=",
    "<",
    "\\cup",
    "\\in",
    ":",
    ",",
    ";",
    "\\\\",
    "&",
    "\\begin{pmatrix}",
    "\\text{",
    "°",
    "½",
    "²",
    "\u{202e}",
    "9",
];

/// Counter-based random numbers (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    fn pick<'t>(&mut self, items: &[&'t str]) -> &'t str {
        items[self.below(items.len())]
    }

    /// One to four changes: a piece put in, a stretch taken out or doubled, a stretch of another answer put in.
    fn damaged(&mut self, answers: &[&str]) -> String {
        let mut text: Vec<char> = self.pick(answers).chars().collect();
        for _ in 0..=self.below(4) {
            let at = self.below(text.len() + 1);
            let end = (at + 1 + self.below(6)).min(text.len());
            match self.below(4) {
                0 => drop(text.splice(at..at, self.pick(&PIECES).chars())),
                1 => drop(text.drain(at..end)),
                2 => {
                    let stretch = text[at..end].to_vec();
                    text.splice(at..at, stretch.iter().copied().cycle().take(stretch.len() * (1 + self.below(40))));
                }
                _ => {
                    let other: Vec<char> = self.pick(answers).chars().collect();
                    let from = self.below(other.len());
                    text.splice(at..end, other[from..].iter().copied());
                }
            }
        }
        text.into_iter().collect()
    }
}

fn run(seed: u64, inputs: usize) {
    let lines = KINDS.lines().filter(|line| !line.starts_with("# "));
    let answers: Vec<&str> = lines.flat_map(|line| line.split(" ## ").take(2)).collect();
    let mut random = Random(seed);
    for _ in 0..inputs {
        let (a, b) = (random.damaged(&answers), random.damaged(&answers));
        invariants::hold(&a, &b);
    }
}

#[test]
fn damaged_answers_are_compared() {
    run(1, 3_000);
}

#[test]
#[ignore = "some minutes"]
fn many_damaged_answers_are_compared() {
    run(2, 1_000_000);
}
