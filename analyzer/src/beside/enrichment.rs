//! Which kinds of tokens are important, ranked high, or kept, more often than by chance?
//!
//! Three sets of tokens, each trace by itself:
//!
//! | set | tokens | among |
//! | --- | --- | --- |
//! | `label` | the important ones | tokens with a label |
//! | `top` | those with the largest values of a signal, as many as are important | tokens with a label and a value |
//! | `kept` | what a policy of that score still holds at the trace's end under the budget | generated tokens that are not protected |
//!
//! ```text
//! expected = sum over traces of n_set n_class / n      ratio = n_both / expected
//! ```
//!
//! Tokens of a window share its label and neighbours share ranks, so that a hypergeometric test would find everything. The
//! p-values are those of the coefficient between class and set under other sets ([`epikv_stats::surrogate`]): those of
//! other problems at matched relative position, and the trace's own, shifted around its end, which with fixed counts is a test
//! of `n_both` itself.

use epikv_signals::{EPIKV_LAYERS, Smoother, map_layer};
use epikv_stats::{Ties, top_k};
use rayon::prelude::*;

use crate::beside::compare::Side;
use crate::beside::replay::{Limits, survivors};
use crate::beside::token_class::TokenClass;
use crate::record::Column;
use crate::study::bands::BAND_SIGNAL;
use crate::study::join::Labelled;
use crate::study::pools::problems;
use crate::study::problems::Problems;
use crate::study::sample::Sample;
use crate::study::settings::Settings;
use crate::study::tested::drawn_p_text;
use crate::study::tested::{self, Tested};

/// Column of the set of important tokens.
const LABEL: &str = "label";

/// Level of q at which the page marks a class.
const SHOWN_Q: f64 = 0.05;

/// A class of tokens in a set. Undefined parts are `None`.
#[derive(Debug, Clone, PartialEq)]
pub struct Enrichment {
    /// The problem set.
    pub dataset: String,
    /// `label`, `top` or `kept`.
    pub set: &'static str,
    /// What the set is made by: a column, or `label`.
    pub column: String,
    /// The class.
    pub class: TokenClass,
    /// Traces with a token.
    pub n_traces: usize,
    /// Their problems: the units of the tests.
    pub n_problems: usize,
    /// Tokens compared.
    pub n_tokens: u64,
    /// Those of the class.
    pub n_class: u64,
    /// Those of the set.
    pub n_set: u64,
    /// Those of both.
    pub n_both: u64,
    /// What chance gives within each trace.
    pub expected: f64,
    /// What other sets give.
    pub tested: Tested,
}

impl Enrichment {
    /// Tokens of both over what chance gives; `None` where chance gives none.
    pub fn ratio(&self) -> Option<f64> {
        (self.expected > 0.0).then(|| self.n_both as f64 / self.expected)
    }
}

/// Class and membership of the compared tokens of a trace, in order of positions.
type Members = Vec<(TokenClass, bool)>;

/// All sets of all problem sets, in order of their names; `limits` has one entry a sample, `None` where the budget cannot
/// hold what is protected.
///
/// # Panics
/// If there is not one entry a sample.
pub fn enrichment(
    samples: &[Sample],
    limits: &[Option<Limits>],
    n_layers: usize,
    settings: &Settings,
    class_of: &dyn Fn(u32) -> TokenClass,
) -> Vec<Enrichment> {
    assert_eq!(samples.len(), limits.len(), "limits of every sample");
    let classes = |sample: &Sample| sample.recording.token_ids.iter().map(|&id| class_of(id)).collect::<Vec<_>>();
    let classes: Vec<Vec<TokenClass>> = samples.iter().map(classes).collect();
    let mut names: Vec<&str> = samples.iter().map(|sample| sample.dataset.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let mut all = Vec::new();
    for name in names {
        let own: Vec<Trace<'_>> = samples
            .iter()
            .zip(limits)
            .zip(&classes)
            .filter(|((sample, _), _)| sample.dataset == name)
            .map(|((sample, limits), classes)| Trace { sample, limits: *limits, classes })
            .collect();
        let problems = problems(&own.iter().map(|trace| trace.sample).collect::<Vec<_>>());
        let columns = columns(&own, n_layers, settings.window);
        let sets = columns.iter().flat_map(|side| [("top", Some(*side)), ("kept", Some(*side))]);
        let sets: Vec<(&'static str, Option<Side>)> = std::iter::once((LABEL, None)).chain(sets).collect();
        let of_set = |&(set, side): &(&'static str, Option<Side>)| {
            let members: Vec<Members> = own.iter().map(|trace| trace.members(set, side)).collect();
            let column = side.map_or_else(|| LABEL.to_owned(), |side| side.to_string());
            of_classes(name, set, &column, &members, &problems, settings)
        };
        all.extend(sets.par_iter().map(of_set).collect::<Vec<_>>().into_iter().flatten());
    }
    all
}

/// The raw columns whose sets are compared: the scores, and `hs_l2` at the two published layers.
fn columns(traces: &[Trace<'_>], n_layers: usize, window: usize) -> Vec<Side> {
    let Some(first) = traces.first() else { return Vec::new() };
    let published = EPIKV_LAYERS.map(|layer| Some(map_layer(layer, n_layers)));
    let is = |c: &&Column| c.layer.is_none() || (c.signal == BAND_SIGNAL && published.contains(&c.layer));
    let side = |c: &Column| Side { signal: c.signal, layer: c.layer, smoother: Smoother::Raw, negated: false, window };
    first.sample.recording.columns.iter().filter(is).map(side).collect()
}

/// A trace with the classes of its tokens.
struct Trace<'s> {
    sample: &'s Sample,
    limits: Option<Limits>,
    classes: &'s [TokenClass],
}

impl Trace<'_> {
    /// None where the trace lacks the values of the set.
    fn members(&self, set: &str, side: Option<Side>) -> Members {
        let tokens = self.sample.mask.tokens();
        let Some(side) = side else {
            return tokens.iter().map(|&(pos, one)| (self.classes[pos], one)).collect();
        };
        let columns = &self.sample.recording.columns;
        let Some(column) = columns.iter().find(|c| (c.signal, c.layer) == (side.signal, side.layer)) else {
            return Members::new();
        };
        if set == "top" { self.top(&column.values) } else { self.kept(&column.values) }
    }

    fn top(&self, values: &[Option<f32>]) -> Members {
        let known = |&(pos, one): &(usize, bool)| Some((pos, values[pos].filter(|v| v.is_finite())?, one));
        let tokens: Vec<(usize, f32, bool)> = self.sample.mask.tokens().iter().filter_map(known).collect();
        let scores: Vec<f32> = tokens.iter().map(|token| token.1).collect();
        let k = tokens.iter().filter(|token| token.2).count();
        let top = top_k(&scores, k, Ties::Newer).unwrap_or_default();
        let mut members: Members = tokens.iter().map(|token| (self.classes[token.0], false)).collect();
        for at in top {
            members[at].1 = true;
        }
        members
    }

    fn kept(&self, values: &[Option<f32>]) -> Members {
        let Some((limits, kept)) = self.limits.and_then(|limits| Some((limits, survivors(values, limits)?))) else {
            return Members::new();
        };
        let candidates = limits.n_prompt..values.len().saturating_sub(limits.recency);
        let mut members: Members = candidates.map(|pos| (self.classes[pos], false)).collect();
        for pos in kept {
            members[pos - limits.n_prompt].1 = true;
        }
        members
    }
}

/// Every class that occurs, in one set.
fn of_classes(
    dataset: &str,
    set: &'static str,
    column: &str,
    traces: &[Members],
    problems: &Problems,
    settings: &Settings,
) -> Vec<Enrichment> {
    let problems = problems.only(|trace| !traces[trace].is_empty());
    let traces: Vec<&Members> = traces.iter().filter(|members| !members.is_empty()).collect();
    let count = |is: &dyn Fn(&(TokenClass, bool)) -> bool| -> Vec<u64> {
        traces.iter().map(|members| members.iter().filter(|token| is(token)).count() as u64).collect()
    };
    let (n_tokens, n_set) = (count(&|_| true), count(&|token| token.1));
    let of = |class: TokenClass| {
        let (n_class, n_both) = (count(&|token| token.0 == class), count(&|token| token.0 == class && token.1));
        let expected =
            n_set.iter().zip(&n_class).zip(&n_tokens).map(|((set, class), n)| (set * class) as f64 / *n as f64);
        // The class is the signal of the test, the set its label.
        let columns: Vec<Labelled> = traces
            .iter()
            .map(|members| {
                let value = |class: bool| Some(f32::from(u8::from(class)));
                Labelled::new(members.iter().map(|&(own, inside)| (value(own == class), inside)))
            })
            .collect();
        let [tested, _] =
            tested::test(&columns.iter().collect::<Vec<_>>(), &problems, settings.surrogates, settings.seed);
        Enrichment {
            dataset: dataset.to_owned(),
            set,
            column: column.to_owned(),
            class,
            n_traces: traces.len(),
            n_problems: problems.len(),
            n_tokens: n_tokens.iter().sum(),
            n_class: n_class.iter().sum(),
            n_set: n_set.iter().sum(),
            n_both: n_both.iter().sum(),
            expected: expected.sum(),
            tested,
        }
    };
    let mut found: Vec<Enrichment> = TokenClass::ALL.into_iter().map(of).filter(|found| found.n_class > 0).collect();
    tested::adjust(&mut found.iter_mut().map(|found| &mut found.tested).collect::<Vec<_>>());
    found
}

/// What the page says: the important tokens with their counts and p-values of so many draws, the other sets as a table of
/// ratios.
pub fn markdown(found: &[Enrichment], surrogates: usize) -> String {
    if found.is_empty() {
        return String::new();
    }
    let ratio = |e: &Enrichment| e.ratio().map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}"));
    let line = |e: &Enrichment| {
        format!(
            "- {}: {} are {} of {} important tokens, {:.1} by chance: ratio {}, p {} (other problems), {} (shifted)",
            e.dataset,
            e.class.name(),
            e.n_both,
            e.n_set,
            e.expected,
            ratio(e),
            drawn_p_text(e.tested.p_cross, surrogates),
            drawn_p_text(e.tested.p_shift, surrogates)
        )
    };
    let labels: Vec<String> = found.iter().filter(|e| e.set == LABEL).map(line).collect();
    let cell = |sets: &[Enrichment], class: TokenClass| {
        let own = sets.iter().find(|e| e.class == class);
        own.map_or_else(String::new, |e| ratio(e) + if e.tested.q_bh.is_some_and(|q| q <= SHOWN_Q) { " *" } else { "" })
    };
    let same_set = |a: &Enrichment, b: &Enrichment| (&a.dataset, a.set, &a.column) == (&b.dataset, b.set, &b.column);
    let row = |sets: &[Enrichment]| {
        let first = sets.first().filter(|e| e.set != LABEL)?;
        let cells: Vec<String> = TokenClass::ALL.iter().map(|class| cell(sets, *class)).collect();
        Some(format!("| {} | {} | {} | {} |", first.dataset, first.set, first.column, cells.join(" | ")))
    };
    let rows: Vec<String> = found.chunk_by(same_set).filter_map(row).collect();
    let heads = TokenClass::ALL.map(TokenClass::name).join(" | ");
    let rule = "| --- ".repeat(3 + TokenClass::ALL.len());
    format!(
        "## Kinds of tokens\n\n{}\n\nCount of each class in a set divided by its count by chance. `top`: as many of the \
         highest values as are important, `kept`: what a policy of the score still holds at the end; * where q is at most \
         {SHOWN_Q} over the classes under the sets of other traces. Counts: `enrichment.parquet`.\n\n| problem set | set \
         | signal | {heads} |\n{rule}|\n{}",
        labels.join("\n"),
        rows.join("\n")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Recording;
    use crate::shared::label;
    use crate::study::join::Mask;
    use crate::study::settings::tests::settings;

    const N: usize = 64;
    const N_PROMPT: usize = 4;

    /// Id 0 is a digit, 1 an operator, all else a word. Digits come in runs that differ from trace to trace.
    fn class_of(id: u32) -> TokenClass {
        [TokenClass::Digit, TokenClass::Operator].get(id as usize).copied().unwrap_or(TokenClass::Other)
    }

    fn ids(trace: usize) -> Vec<u32> {
        (0..N).map(|pos| if (pos / 6 + trace * 5) % 7 < 2 { 0 } else { 1 + (pos * 31 + trace) as u32 % 5 }).collect()
    }

    /// Digits are important, and the score of a token is high where it is an operator.
    fn sample(trace: usize) -> Sample {
        let token_ids = ids(trace);
        let score = |(pos, id): (usize, &u32)| Some(if *id == 1 { 100.0 } else { 0.0 } + (pos * 7 % 13) as f32);
        let values = token_ids.iter().enumerate().map(score).collect();
        let columns = vec![Column { signal: "epikv", layer: None, values }];
        let recording = Recording { trace_id: "t".to_owned(), token_ids, n_prompt: N_PROMPT, columns };
        let ids = recording.token_ids.iter().enumerate().skip(N_PROMPT);
        let labels: Vec<_> =
            ids.map(|(pos, &id)| label(pos as i32, id as i32, true, Some(id == 0 && pos % 9 > 0))).collect();
        let mask = Mask::new(&recording, &labels).expect("its labels");
        Sample {
            dataset: "d".to_owned(),
            problem_id: format!("p{trace}"),
            recording,
            random: None,
            mask,
            windows: None,
        }
    }

    fn found() -> Vec<Enrichment> {
        let samples: Vec<Sample> = (0..9).map(sample).collect();
        let limits = vec![Some(Limits { n_prompt: N_PROMPT, budget: 24, recency: 6 }); 9];
        let settings = Settings { surrogates: 199, ..settings() };
        enrichment(&samples, &limits, 4, &settings, &class_of)
    }

    #[test]
    fn counts_are_those_of_the_tokens() {
        let found = found();
        let get = |set: &str, class| found.iter().find(|e| e.set == set && e.class == class).expect("occurs");
        let digits = get("label", TokenClass::Digit);
        let all: Vec<Vec<u32>> = (0..9).map(|trace| ids(trace)[N_PROMPT..].to_vec()).collect();
        let n_digits = |ids: &[u32]| ids.iter().filter(|id| **id == 0).count() as u64;
        assert_eq!((digits.n_traces, digits.n_tokens), (9, 9 * 60));
        assert_eq!(digits.n_class, all.iter().map(|ids| n_digits(ids)).sum::<u64>());
        assert_eq!((digits.n_both, digits.n_set), (digits.n_set, digits.n_both), "only digits are important");
        let important =
            |ids: &[u32]| (0..60).filter(|i| ids[*i] == 0 && !(i + N_PROMPT).is_multiple_of(9)).count() as u64;
        let expected: f64 = all.iter().map(|ids| (important(ids) * n_digits(ids)) as f64 / 60.0).sum();
        assert!((digits.expected - expected).abs() < 1e-9);
        assert!(digits.ratio() > Some(2.0) && digits.tested.p_shift <= Some(0.01), "{digits:?}");
        assert!(found.iter().all(|e| e.class != TokenClass::Newline), "no class without tokens");
        // As many as are important, highest first: operators.
        let top = get("top", TokenClass::Operator);
        assert_eq!((top.n_set, top.column.as_str()), (digits.n_set, "epikv"));
        assert!(top.ratio() > Some(2.0) && top.tested.p_cross <= Some(0.02), "{top:?}");
        // 24 slots less the prompt and six recent tokens, at the end of each trace.
        let kept = get("kept", TokenClass::Operator);
        assert_eq!((kept.n_set, kept.n_tokens), (9 * 14, 9 * 54));
        assert!(kept.ratio() > Some(2.0), "{kept:?}");
        let page = markdown(&found, 199);
        assert!(page.contains("- d: digit are ") && page.contains("| d | kept | epikv |"), "{page}");
        assert_eq!(page.matches("\n| d |").count(), 2, "a line a set: {page}");
    }

    #[test]
    fn a_trace_without_room_or_labels_has_no_set() {
        let mut samples: Vec<Sample> = (0..3).map(sample).collect();
        samples[0].mask = Mask::default();
        let limits = [None, None, Some(Limits { n_prompt: N_PROMPT, budget: 24, recency: 6 })];
        let found = enrichment(&samples, &limits, 4, &settings(), &class_of);
        let n_traces = |set: &str| found.iter().find(|e| e.set == set).expect("tokens").n_traces;
        assert_eq!((n_traces("label"), n_traces("kept")), (2, 1));
    }
}
