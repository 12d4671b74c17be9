//! Compares items in order and in any order.

use super::context::Context;
use crate::syntax::Value;
use crate::verdict::Verdict;

/// Largest collection that is matched in any order; larger ones are compared as they stand.
const LARGEST_MATCHED: usize = 128;

/// The items without those that were written twice.
pub(crate) fn distinct(items: &[Value]) -> Vec<Value> {
    let mut out: Vec<Value> = Vec::new();
    for item in items {
        if items.len() > LARGEST_MATCHED || !out.contains(item) {
            out.push(item.clone());
        }
    }
    out
}

/// Item by item.
pub(crate) fn in_order(a: &[Value], b: &[Value], context: &mut Context) -> Verdict {
    if a.len() != b.len() {
        return Verdict::Different;
    }
    let mut total = Verdict::Same;
    for (x, y) in a.iter().zip(b) {
        total = total.and(context.compare(x, y));
        if total == Verdict::Different {
            break;
        }
    }
    total
}

/// Each item of one side with one item of the other.
///
/// Equality is close enough to transitive for taking the first match; exact matches are taken first, so that a
/// rounded decimal cannot take the place of another item's twin.
pub(crate) fn in_any_order(a: &[Value], b: &[Value], context: &mut Context) -> Verdict {
    if a.len() != b.len() {
        return Verdict::Different;
    }
    let ordered = in_order(a, b, context);
    if ordered.is_same() || a.len() > LARGEST_MATCHED {
        return ordered;
    }
    let mut free: Vec<&Value> = b.iter().collect();
    let mut left: Vec<&Value> = Vec::new();
    for item in a {
        match free.iter().position(|other| *other == item) {
            Some(at) => drop(free.swap_remove(at)),
            None => left.push(item),
        }
    }
    let mut unsure = None;
    for item in left {
        let mut matched = None;
        for (at, other) in free.iter().enumerate() {
            match context.compare(item, other) {
                verdict if verdict.is_same() => {
                    matched = Some(at);
                    break;
                }
                Verdict::Unsure(reason) => unsure = Some(Verdict::Unsure(reason)),
                _ => {}
            }
        }
        match matched {
            Some(at) => drop(free.swap_remove(at)),
            None => return unsure.unwrap_or(Verdict::Different),
        }
    }
    Verdict::SameOtherForm
}
