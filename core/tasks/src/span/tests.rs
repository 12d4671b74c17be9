//! The cases of a span finder, numbered as in the specification of reasoning-span rules (D.3).

use epikv_model::tokenizer::Tokenizer;

use super::*;

/// The think tags and controls of the byte tokenizer: all else is one token a byte.
const PROMPT: &str = r"<s><|user|>Put it in \boxed{}, not in </think>.<|assistant|>";

fn split_of(prompt: &str, generated: &str) -> Split {
    let tokenizer = Tokenizer::builtin_bytes().unwrap();
    let mut ids = tokenizer.encode(prompt, false).unwrap();
    let n_prompt = ids.len();
    ids.extend(tokenizer.encode(generated, false).unwrap());
    find_spans(&tokenizer, &ids, n_prompt).unwrap()
}

/// Spans relative to the prompt's end, with the texts of reasoning and answer.
fn spans(generated: &str) -> (String, String, BoundaryKind, usize) {
    let split = split_of(PROMPT, generated);
    let Spans { reason_start, boundary, kind, n_think_end, .. } = split.spans;
    (split.bytes_to(reason_start, boundary), split.answer_text(), kind, n_think_end)
}

fn case(generated: &str, reasoning: &str, answer: &str, kind: BoundaryKind, n_think_end: usize) {
    assert_eq!(spans(generated), (reasoning.to_owned(), answer.to_owned(), kind, n_think_end), "{generated:?}");
}

#[test]
fn case_01_opening_tag_in_the_prompt_the_output_or_neither() {
    let split = split_of("<|user|>q<|assistant|><think>\n", "So.</think>\n\n4");
    assert_eq!(split.spans.reason_start, split.spans.n_prompt);
    assert_eq!(split.answer_text(), "4");
    case("<think>\nSo.</think>4", "So.</think>", "4", BoundaryKind::ThinkEnd, 1);
    case("\n <think>So.</think>4", "So.</think>", "4", BoundaryKind::ThinkEnd, 1);
    case("So.</think>4", "So.</think>", "4", BoundaryKind::ThinkEnd, 1);
    // An opening tag that does not open the text is part of the reasoning.
    case("So <think>x</think>4", "So <think>x</think>", "4", BoundaryKind::ThinkEnd, 1);
}

#[test]
fn case_02_several_closing_tags_the_last_counts() {
    case("I write </think> then.</think> 4", "I write </think> then.</think> ", "4", BoundaryKind::ThinkEnd, 2);
}

#[test]
fn case_03_no_tag_but_a_box() {
    case(r"So \boxed{4}.", "So ", r"\boxed{4}.", BoundaryKind::Boxed, 0);
}

#[test]
fn case_04_neither_the_last_64_tokens() {
    let text = format!("{}{}", "a".repeat(100), "b".repeat(64));
    case(&text, &"a".repeat(100), &"b".repeat(64), BoundaryKind::Last64, 0);
}

#[test]
fn case_05_a_box_in_the_reasoning_does_not_matter_when_there_is_a_tag() {
    case(
        r"\boxed{3}? no</think>It is \boxed{4}",
        r"\boxed{3}? no</think>",
        r"It is \boxed{4}",
        BoundaryKind::ThinkEnd,
        1,
    );
}

#[test]
fn case_06_several_boxes() {
    case(r"x</think>\boxed{3} or \boxed{4}", "x</think>", r"\boxed{3} or \boxed{4}", BoundaryKind::ThinkEnd, 1);
    // Boxes with only an "or" between them are one answer, and so are those of a list.
    case(r"So \boxed{3} or \boxed{4}", "So ", r"\boxed{3} or \boxed{4}", BoundaryKind::Boxed, 0);
    case(r"So \boxed{1}, \boxed{2}.", "So ", r"\boxed{1}, \boxed{2}.", BoundaryKind::Boxed, 0);
    case(r"\boxed{3}. No: \boxed{4}", r"\boxed{3}. No: ", r"\boxed{4}", BoundaryKind::Boxed, 0);
}

#[test]
fn an_empty_box_moves_no_boundary() {
    for blank in ["", " ", r"\ ", r"\quad", "~", r"\text{}", r"\hspace{1cm}"] {
        let text = format!(r"So \boxed{{4}}. As asked, in \boxed{{{blank}}}.");
        let answer = format!(r"\boxed{{4}}. As asked, in \boxed{{{blank}}}.");
        case(&text, "So ", &answer, BoundaryKind::Boxed, 0);
    }
    let text = format!(r"I put it in \boxed{{}}.{}", "b".repeat(64));
    case(&text, r"I put it in \boxed{}.", &"b".repeat(64), BoundaryKind::Last64, 0);
}

#[test]
fn space_of_any_kind_may_stand_before_the_tag() {
    for space in ["\u{a0}", "\u{a0} \n", "\u{feff}", "\u{3000}", "\u{200b}"] {
        case(&format!("{space}<think>\nSo.</think>4"), "So.</think>", "4", BoundaryKind::ThinkEnd, 1);
        case(&format!("So.</think>{space}4"), &format!("So.</think>{space}"), "4", BoundaryKind::ThinkEnd, 1);
    }
}

#[test]
fn the_first_end_of_a_turn_ends_the_answer() {
    for end in ENDS.iter().chain(&["</s>"]) {
        case(&format!("So.</think>4{end}"), "So.</think>", "4", BoundaryKind::ThinkEnd, 1);
        case(&format!("So.</think>4{end}\n \n"), "So.</think>", "4", BoundaryKind::ThinkEnd, 1);
        case(
            &format!(r"So.</think>4{end}\nuser: and \boxed{{5}}</think>6"),
            "So.</think>",
            "4",
            BoundaryKind::ThinkEnd,
            1,
        );
        case(&format!(r"So \boxed{{4}}{end}\boxed{{5}}"), "So ", r"\boxed{4}", BoundaryKind::Boxed, 0);
    }
}

#[test]
fn other_think_tags_are_known_by_name_or_given() {
    for (open, close) in KNOWN {
        case(&format!("{open}So.{close}\n4"), &format!("So.{close}\n"), "4", BoundaryKind::ThinkEnd, 1);
        case(&format!("So.{close}4"), &format!("So.{close}"), "4", BoundaryKind::ThinkEnd, 1);
    }
    // The tag that the text begins with counts, not one that it mentions.
    case("[THINK]no </think> here[/THINK]4", "no </think> here[/THINK]", "4", BoundaryKind::ThinkEnd, 1);
    let tokenizer = Tokenizer::builtin_bytes().unwrap();
    let ids = tokenizer.encode("<<a>>x</think>y<<b>>4", false).unwrap();
    let tags: Tags = "<<a>>,<<b>>".parse().unwrap();
    let split = find_spans_by(&tokenizer, &ids, 0, Some(&tags)).unwrap();
    assert_eq!((split.spans.reason_start, split.answer_text().as_str()), (5, "4"));
    for wrong in ["", "<a>", "<a>,", ",<b>", "<a>,<a>"] {
        assert!(wrong.parse::<Tags>().is_err(), "{wrong}");
    }
}

/// A tokenizer whose tokens are the given strings, for boundaries inside tokens.
fn tokens(all: &[&str]) -> (Tokenizer, Vec<u32>) {
    let folder = tempfile::tempdir().unwrap();
    // Byte-level entries write a space as `Ġ` and a line feed as `Ċ`.
    let entry = |text: &&str| text.replace(' ', "Ġ").replace('\n', "Ċ");
    let vocabulary: serde_json::Map<_, _> = all.iter().map(entry).zip(0..).map(|(t, id)| (t, id.into())).collect();
    let ids = all.iter().map(|text| vocabulary[&entry(text)].as_u64().unwrap() as u32).collect();
    let json = serde_json::json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
        "pre_tokenizer": null, "post_processor": null,
        "decoder": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": all[0]},
    });
    std::fs::write(folder.path().join("tokenizer.json"), json.to_string()).unwrap();
    (Tokenizer::from_folder(folder.path()).unwrap(), ids)
}

fn boundary_of(all: &[&str]) -> (usize, BoundaryKind) {
    let (tokenizer, ids) = tokens(all);
    let spans = find_spans(&tokenizer, &ids, 0).unwrap().spans;
    (spans.boundary, spans.kind)
}

#[test]
fn case_07_a_box_split_across_tokens_begins_with_the_token_that_starts_it() {
    assert_eq!(boundary_of(&["So", " is", " $\\", "box", "ed", "{4", "}"]), (2, BoundaryKind::Boxed));
}

#[test]
fn case_08_a_tag_of_ordinary_tokens_is_a_tag() {
    assert_eq!(boundary_of(&["So", ".</", "think", ">", "\n\n", "4"]), (5, BoundaryKind::ThinkEnd));
    // A token that holds the tag's end and more stays with the reasoning.
    assert_eq!(boundary_of(&["So", "</", "think", ">\n4", " is", " it"]), (4, BoundaryKind::ThinkEnd));
}

#[test]
fn case_09_shorter_than_a_window() {
    case("So.</think>4", "So.</think>", "4", BoundaryKind::ThinkEnd, 1);
    // Shorter than the last-64 rule: all of it is answer.
    case("4", "", "4", BoundaryKind::Last64, 0);
    case("", "", "", BoundaryKind::Last64, 0);
}

#[test]
fn case_10_an_empty_think_block() {
    case("<think>\n\n</think>\n\n4", "</think>\n\n", "4", BoundaryKind::ThinkEnd, 1);
    // In the prompt, as templates with thinking off write it: no reasoning at all.
    let split = split_of("q<think>\n\n</think>\n\n", r"\boxed{4}");
    assert_eq!((split.spans.reasoning().len(), split.answer_text().as_str()), (0, r"\boxed{4}"));
}

#[test]
fn case_11_the_search_starts_after_the_prompt() {
    let split = split_of(PROMPT, "no mark");
    assert_eq!((split.spans.kind, split.spans.n_think_end), (BoundaryKind::Last64, 0));
    assert!(split.spans.boundary >= split.spans.n_prompt);
}

#[test]
fn case_12_trailing_end_of_sequence_and_padding_are_no_answer() {
    case("x</think>4</s><pad><pad>", "x</think>", "4", BoundaryKind::ThinkEnd, 1);
    case(&format!("{}</s><pad>", "b".repeat(70)), &"b".repeat(6), &"b".repeat(64), BoundaryKind::Last64, 0);
    assert_eq!(split_of(PROMPT, "x</think>4</s>").text(), "x</think>4");
    // A closing tag is content, though this tokenizer calls it special.
    case("x</think></s>", "x</think>", "", BoundaryKind::ThinkEnd, 1);
}

#[test]
fn case_13_nothing_after_the_tag() {
    case(r"so \boxed{4}</think>", r"so \boxed{4}</think>", "", BoundaryKind::ThinkEnd, 1);
    case("so</think>\n\n", "so</think>\n\n", "", BoundaryKind::ThinkEnd, 1);
}

#[test]
fn case_14_tokens_that_split_a_character() {
    case("é€🙂</think>4 €", "é€🙂</think>", "4 €", BoundaryKind::ThinkEnd, 1);
    case(r"🙂\boxed{€}", "🙂", r"\boxed{€}", BoundaryKind::Boxed, 0);
}

#[test]
fn a_prompt_longer_than_the_trace_is_an_error() {
    let tokenizer = Tokenizer::builtin_bytes().unwrap();
    assert!(matches!(find_spans(&tokenizer, &[65], 2), Err(Error::PromptTooLong { n_prompt: 2, n_tokens: 1 })));
}

mod any {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn spans_are_ordered(ids in proptest::collection::vec(0_u32..264, 0..120), n_prompt in 0_usize..120) {
            let tokenizer = Tokenizer::builtin_bytes().unwrap();
            prop_assume!(n_prompt <= ids.len());
            let spans = find_spans(&tokenizer, &ids, n_prompt).unwrap().spans;
            prop_assert!(n_prompt <= spans.reason_start && spans.reason_start <= spans.boundary);
            prop_assert!(spans.boundary <= spans.end && spans.end <= ids.len());
        }
    }
}
