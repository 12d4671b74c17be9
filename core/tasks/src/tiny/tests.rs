//! Tests: generated problems are correct, and the tokenizer's files agree with the vocabulary.

use epikv_grader::Mode;
use epikv_model::chat::ChatTemplate;
use epikv_model::tokenizer::Tokenizer;

use super::*;
use crate::prompt::{Prompt, PromptOptions};
use crate::span::{BoundaryKind, find_spans};
use crate::trace::{FinishReason, Generation, Sampling, build_trace};

fn example() -> TinyProblem {
    let (plus, minus) = (Operation::Combine(Sign::Plus), Operation::Combine(Sign::Minus));
    TinyProblem {
        id: "tiny".to_owned(),
        level: Level::Short,
        first_letter: 2,
        values: vec![[8, 3], [7, 1], [5, 4], [2, 7], [7, 1], [5, 6]],
        rule: vec![plus, minus],
        checked: vec![3],
        query: vec![(Sign::Plus, 4), (Sign::Plus, 2), (Sign::Minus, 3)],
    }
}

fn each_level() -> impl Iterator<Item = TinyProblem> {
    Level::ALL.into_iter().flat_map(|level| (0..60).map(move |index| TinyProblem::generate(level, 5, index)))
}

#[test]
fn the_example_reads_as_documented() {
    let problem = example();
    assert_eq!(vocabulary::text(&problem.statement()), "c 83 ; d 71 ; + - ; wait f ; h ? g + e - f");
    assert_eq!(
        vocabulary::text(&problem.solution()),
        r"e = c + d = 83 + 71 so e 54 . f = d - e = 71 - 54 so f 27 . wait check f = d - e = 71 - 54 so f 27 . yes . g = e + f = 54 + 27 so g 71 . h = f - g = 27 - 71 so h 56 . </think> g 71 + e 54 - f 27 = 71 + 54 - 27 = 25 - 27 = \boxed{ 08 } <eos>"
    );
    assert_eq!(problem.gold(), [0, 8]);
}

#[test]
fn values_follow_the_rule_and_lengths_the_level() {
    for problem in each_level() {
        for i in 2..problem.values.len() {
            let want = problem.operation(i).apply(problem.values[i - 2], problem.values[i - 1]);
            assert_eq!(problem.values[i], want, "{}", problem.id);
        }
        let (n_prompt, n_solution) = (problem.prompt().len(), problem.solution().len());
        let range = match problem.level {
            Level::Short => 40..160,
            Level::Middle => 130..290,
            Level::Default => 250..451,
            Level::Long => 1000..1280,
        };
        assert!(range.contains(&n_solution), "{}: {n_solution}", problem.id);
        if problem.level != Level::Short {
            assert!(n_prompt * 100 <= 20 * (n_prompt + n_solution), "{}: {n_prompt} of {n_solution}", problem.id);
        }
        assert!((2..=4).contains(&problem.query.len()));
        assert!(problem.query.iter().all(|(_, i)| (2..problem.values.len()).contains(i)));
    }
}

#[test]
fn gold_spans_hold_the_values_and_nothing_else_states_them() {
    for problem in each_level() {
        let mut ids = problem.prompt();
        ids.extend(problem.solution());
        let boundary = ids.iter().position(|id| *id == vocabulary::THINK_END).unwrap();
        for (gold, (_, index)) in problem.gold_spans().iter().zip(&problem.query) {
            let [a, b] = problem.values[*index];
            let pair = format!("{} {a}{b}", vocabulary::TOKENS[29 + problem.first_letter + index]);
            assert_eq!(gold.text, pair);
            assert!(gold.mentions.iter().all(|span| vocabulary::text(&ids[span.clone()]) == pair));
            assert_eq!(
                gold.mentions.len(),
                vocabulary::text(&ids[..boundary]).matches(&pair).count(),
                "{}",
                problem.id
            );
            assert_eq!(gold.mentions.len(), 1 + usize::from(problem.checked.contains(index)));
        }
    }
}

#[test]
fn no_letter_has_the_result() {
    let mut n_by_chance = 0;
    for level in Level::ALL {
        for index in 0..300 {
            let problem = TinyProblem::generate(level, 9, index);
            assert!(!problem.values.contains(&problem.gold()), "{}", problem.id);
            let any = TinyProblem::any(level, 9, index);
            if any.values.contains(&any.gold()) {
                n_by_chance += 1;
            } else {
                assert_eq!(any, problem, "the first that is drawn, if it will do");
            }
        }
    }
    assert!(n_by_chance > 100, "{n_by_chance}");
}

#[test]
fn tokenizer_and_template_give_the_ids_of_the_table() {
    let folder = tempfile::tempdir().unwrap();
    write_tokenizer(folder.path()).unwrap();
    let tokenizer = Tokenizer::from_folder(folder.path()).unwrap();
    let chat = ChatTemplate::from_folder(folder.path()).unwrap();
    assert_eq!(tokenizer.vocab_size(), vocabulary::TOKENS.len());
    assert_eq!((tokenizer.pad_id(), tokenizer.bos_id(), tokenizer.eos_id()), (Some(0), Some(1), Some(2)));
    for problem in each_level() {
        let row = problem.to_problem();
        let prompt = Prompt::of_problem(&row.problem, &tokenizer, chat.as_ref(), &PromptOptions::default()).unwrap();
        assert_eq!(prompt.ids, problem.prompt(), "{}", prompt.text);
        assert!(prompt.opens_think);

        let mut ids = prompt.ids;
        let n_prompt = ids.len();
        ids.extend(problem.solution());
        let text = tokenizer.decode(&ids).unwrap();
        assert_eq!(text, vocabulary::text(&ids));
        assert_eq!(tokenizer.encode(&text, false).unwrap(), ids);
        let split = find_spans(&tokenizer, &ids, n_prompt).unwrap();
        assert_eq!(split.spans.kind, BoundaryKind::ThinkEnd);
        let answer = split.answer_text();
        let found = epikv_grader::extract(&answer, Mode::Strict).unwrap();
        assert_eq!(found.answer.trim(), row.gold.as_deref().unwrap());
        let verdict = epikv_grader::compare(&found.answer, row.gold.as_deref().unwrap(), Mode::Strict);
        assert!(verdict.verdict.is_same(), "{verdict:?}");

        let generation = Generation {
            prompt: None,
            token_ids: &ids,
            n_prompt,
            finish_reason: FinishReason::Eos,
            sampling: Sampling::default(),
        };
        let trace = build_trace(row.id.clone(), &row, &generation, &tokenizer).unwrap();
        assert_eq!(trace.correct, Some(true));
        let mut spans: Vec<_> = problem.gold_spans().into_iter().flat_map(|gold| gold.mentions).collect();
        spans.sort_unstable_by_key(|span| span.start);
        let flat: Vec<i32> = spans.iter().flat_map(|span| [span.start as i32, span.end as i32]).collect();
        assert_eq!(trace.gold_spans, Some(flat), "found in the trace as the solution has them");
    }
}

#[test]
fn lessons_weigh_what_follows_the_prompt() {
    let (tokens, weights) = lesson::Lesson::Problem(Level::Short).sequence(1, 2, 3.0);
    let n_prompt = TinyProblem::any(Level::Short, 1, 2).prompt().len();
    assert_eq!(tokens.len(), weights.len());
    assert!(weights[..n_prompt].iter().all(|w| *w == 0.0) && weights[n_prompt..].iter().all(|w| *w > 0.0));
    assert_eq!(weights.last(), Some(&3.0));

    let lesson = lesson::Lesson::from_name("short+queries").unwrap();
    let (more, more_weights) = lesson.sequence(1, 2, 3.0);
    assert_eq!((&more[..tokens.len()], &more_weights[..tokens.len()]), (&tokens[..], &weights[..]));
    let mut weights_left = &more_weights[tokens.len()..];
    let answers: Vec<_> = more[tokens.len()..].split_inclusive(|id| *id == vocabulary::EOS).collect();
    assert_eq!(answers.len(), 10);
    for answer in answers {
        let weights = weights_left.split_off(..answer.len()).unwrap();
        let asked = answer.iter().position(|id| *id == vocabulary::EQUALS).unwrap();
        assert_eq!(answer[0], vocabulary::THINK_END);
        let is_digit = |id: &u32| (vocabulary::digit(0)..=vocabulary::digit(9)).contains(id);
        for (at, (id, weight)) in answer.iter().zip(weights).enumerate() {
            assert_eq!(*weight == 0.0, at < asked && !is_digit(id), "{at} of {}", vocabulary::text(answer));
        }
    }

    let (tokens, weights) = lesson::Lesson::Repeats.sequence(1, 2, 3.0);
    let period = weights.iter().position(|w| *w > 0.0).unwrap() - 2;
    assert!(tokens[1..].iter().zip(&tokens[1 + period..]).all(|(a, b)| a == b));
}
