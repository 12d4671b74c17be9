//! The columns of one row group while they are collected, and their checks.

use std::{collections::BTreeMap, path::Path};

use arrow::{
    array::{Array, ArrayRef, ArrowPrimitiveType, AsArray},
    datatypes::{Field, Float32Type, Float64Type},
};

use crate::{
    error::{Error, Result},
    role::Role,
    spec::{ColumnSpec, Kind},
};

/// The columns of one row group while they are collected.
pub struct Batch<'a> {
    pub(crate) path: &'a Path,
    pub(crate) first_row: usize,
    pub(crate) key: &'a dyn Fn(usize) -> String,
    pub(crate) layers: &'a mut BTreeMap<&'static str, Vec<u16>>,
    pub(crate) fields: Vec<Field>,
    pub(crate) arrays: Vec<ArrayRef>,
}

impl Batch<'_> {
    /// Adds a column after checking its values.
    pub(crate) fn add(&mut self, spec: &ColumnSpec, name: String, array: ArrayRef) -> Result<()> {
        let nan = match spec.kind {
            Kind::F32 => first_nan::<Float32Type>(&array),
            Kind::F64 => first_nan::<Float64Type>(&array),
            _ => None,
        };
        if let Some(row) = nan {
            let (path, key) = (self.path.to_owned(), (self.key)(row));
            return Err(Error::NotANumber { path, column: name, row: self.first_row + row, key, got: f32::NAN });
        }
        check_words(self.path, self.first_row, spec, &array)?;
        self.fields.push(spec.field(name));
        self.arrays.push(array);
        Ok(())
    }

    /// The layers of a family: those of the first row that was ever asked about.
    pub(crate) fn layers(&mut self, family: &'static str, here: &[u16]) -> Vec<u16> {
        self.layers.entry(family).or_insert_with(|| here.to_vec()).clone()
    }

    pub(crate) fn path(&self) -> &Path {
        self.path
    }

    /// Row of the file that is the first of this group.
    pub(crate) fn first_row(&self) -> usize {
        self.first_row
    }
}

fn first_nan<T: ArrowPrimitiveType<Native: Into<f64>>>(array: &dyn Array) -> Option<usize> {
    let is_nan = |value: Option<T::Native>| value.is_some_and(|value| value.into().is_nan());
    array.as_primitive::<T>().iter().position(is_nan)
}

/// Refuses a word that the column does not know.
pub(crate) fn check_words(path: &Path, first_row: usize, spec: &ColumnSpec, array: &dyn Array) -> Result<()> {
    let Role::Word(words) = spec.role else {
        return Ok(());
    };
    let strange = |word: Option<&str>| word.is_some_and(|word| !words.contains(&word));
    let found = array.as_string::<i32>().iter().enumerate().find(|(_, word)| strange(*word));
    let Some((row, Some(got))) = found else {
        return Ok(());
    };
    Err(Error::UnknownWord {
        path: path.to_owned(),
        column: spec.name.to_owned(),
        row: first_row + row,
        expected: words.join("|"),
        got: got.to_owned(),
    })
}
