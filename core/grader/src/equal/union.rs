//! Unions of intervals: neighbours that touch are one.

use super::context::Context;
use crate::syntax::Value;

/// Largest union that is simplified.
const LARGEST: usize = 16;

/// The parts of a union, with intervals that meet in a point of at least one of them put together, and single points
/// put into the intervals that they close.
pub(crate) fn merged(parts: &[Value], context: &mut Context) -> Vec<Value> {
    let mut parts = parts.to_vec();
    if parts.len() > LARGEST {
        return parts;
    }
    // Each step takes one part away, so there are no more steps than parts.
    while let Some((left, right, whole)) = touching(&parts, context) {
        parts[left] = whole;
        parts.remove(right);
    }
    parts
}

/// Two parts that touch, by place, and what they are together. The second place is not the first one.
fn touching(parts: &[Value], context: &mut Context) -> Option<(usize, usize, Value)> {
    for left in 0..parts.len() {
        for right in 0..parts.len() {
            if left != right
                && let Some(whole) = together(&parts[left], &parts[right], context)
            {
                return Some((left.min(right), left.max(right), whole));
            }
        }
    }
    None
}

fn together(left: &Value, right: &Value, context: &mut Context) -> Option<Value> {
    match (left, right) {
        (Value::Bracket(open, low, close), Value::Bracket(open2, high, close2)) => {
            let ([from, end], [start, to]) = (low.as_slice(), high.as_slice()) else {
                return None;
            };
            let covered = *close == ']' || *open2 == '[';
            let meets = covered && context.compare(end, start).is_same();
            meets.then(|| Value::Bracket(*open, vec![from.clone(), to.clone()], *close2))
        }
        (Value::Bracket(open, ends, close), Value::Set(points)) => {
            let ([from, to], [point]) = (ends.as_slice(), points.as_slice()) else {
                return None;
            };
            if *close == ')' && context.compare(to, point).is_same() {
                return Some(Value::Bracket(*open, ends.clone(), ']'));
            }
            let closes = *open == '(' && context.compare(from, point).is_same();
            closes.then(|| Value::Bracket('[', ends.clone(), *close))
        }
        (Value::Set(points), Value::Set(more)) => Some(Value::Set(points.iter().chain(more).cloned().collect())),
        _ => None,
    }
}
