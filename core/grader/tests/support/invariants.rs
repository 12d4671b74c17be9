//! What must hold of any two texts, well-formed or not. Shared by the mutation test and the fuzz target.

use epikv_grader::{BoxStream, Mode, Verdict, compare, extract, last_box};

/// Panics where one does not hold.
pub(crate) fn hold(a: &str, b: &str) {
    for mode in [Mode::Strict, Mode::Lenient] {
        let there = compare(a, b, mode);
        assert_eq!(there, compare(b, a, mode), "not symmetric in {mode} mode: {a:?} and {b:?}");
        assert_eq!(compare(a, a, mode).verdict, Verdict::Same, "not reflexive in {mode} mode: {a:?}");
        if let Some(found) = extract(a, mode) {
            assert!(a.contains(&*found.answer) || mode == Mode::Lenient, "found {:?} in {a:?}", found.answer);
        }
    }
    if let Some(content) = last_box(a) {
        assert!(a.contains(content), "box in another text: {a:?}");
    }
    let middle = (0..=a.len() / 2).rev().find(|at| a.is_char_boundary(*at)).unwrap_or(0);
    let (mut whole, mut halves) = (BoxStream::new(), BoxStream::new());
    let cut = halves.push(&a[..middle]) || halves.push(&a[middle..]);
    assert_eq!(whole.push(a), cut, "a box depends on where the text is cut: {a:?}");
}
