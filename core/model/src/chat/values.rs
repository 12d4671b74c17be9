//! The kinds of value that Python has and minijinja lacks, and the limit to what may grow.

use std::borrow::Cow;
use std::sync::Arc;

use minijinja::value::{Enumerator, Object, ObjectRepr, ValueKind};
use minijinja::{Error, ErrorKind, Value};

/// Bytes that one text of a template may have, and items that one list may.
pub(super) const LARGEST: usize = 16 << 20;
pub(super) const MOST_ITEMS: usize = 1 << 20;

/// The error of what outgrows the limit.
pub(super) fn within(bytes: usize) -> Result<(), Error> {
    if bytes > LARGEST {
        return Err(invalid(format!("expected texts of at most {LARGEST} bytes, got {bytes}")));
    }
    Ok(())
}

/// The error of an operation that makes no sense.
pub(super) fn invalid(detail: impl Into<Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::InvalidOperation, detail)
}

/// A Python tuple: a list that prints with round brackets.
#[derive(Debug)]
pub(super) struct Tuple(pub(super) Vec<Value>);

impl Object for Tuple {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Seq
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.0.get(key.as_usize()?).cloned()
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Seq(self.0.len())
    }
}

/// Values to go through, which are no list: Python prints them in a way of their own.
#[derive(Debug)]
pub(super) struct View(pub(super) Vec<Value>);

impl Object for View {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Iterable
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.0.clone())
    }
}

/// A number; `True` is 1.
#[derive(Debug, Clone, Copy)]
pub(super) enum Number {
    Int(i128),
    Float(f64),
}

impl Number {
    pub(super) fn of(value: &Value) -> Option<Self> {
        match value.kind() {
            ValueKind::Bool => Some(Self::Int(i128::from(value.is_true()))),
            ValueKind::Number if value.is_integer() => i128::try_from(value.clone()).ok().map(Self::Int),
            ValueKind::Number => f64::try_from(value.clone()).ok().map(Self::Float),
            _ => None,
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "as Python's float(int)")]
    pub(super) fn float(self) -> f64 {
        match self {
            Self::Int(n) => n as f64,
            Self::Float(x) => x,
        }
    }
}

impl From<Number> for Value {
    fn from(number: Number) -> Self {
        match number {
            Number::Int(n) => i64::try_from(n).map_or_else(|_| Self::from(n), Self::from),
            Number::Float(x) => Self::from(x),
        }
    }
}

pub(super) fn is_tuple(value: &Value) -> bool {
    value.downcast_object_ref::<Tuple>().is_some()
}

/// A list, or the part of one that a slice gives.
pub(super) fn is_list(value: &Value) -> bool {
    let part = value.kind() == ValueKind::Iterable && value.len().is_some();
    (value.kind() == ValueKind::Seq || part) && value.downcast_object_ref::<View>().is_none()
}
