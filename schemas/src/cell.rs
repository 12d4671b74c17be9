//! How one field of a record becomes a column and back.

use std::sync::Arc;

use arrow::{
    array::{
        Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, Int32Builder, ListBuilder, PrimitiveArray,
        StringArray,
    },
    datatypes::{DataType, Field, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type},
};

use crate::{
    batch::Batch,
    columns::Columns,
    error::Result,
    spec::{ColumnSpec, Kind},
};

/// A type that a record's field may have.
pub trait Cell: Sized {
    /// Type of the column.
    const KIND: Kind;
    /// Whether the column may hold nulls.
    const NULLABLE: bool;
    /// Whether the field is a family of columns, one a layer.
    const PER_LAYER: bool = false;

    /// Adds the column or columns that hold `cells`.
    #[doc(hidden)]
    fn write(spec: &ColumnSpec, cells: &[&Self], batch: &mut Batch<'_>) -> Result<()>;

    /// Takes the values of the column or columns, one a row.
    #[doc(hidden)]
    fn read(spec: &ColumnSpec, columns: &Columns<'_>) -> Result<Vec<Self>>;

    /// A value for tests.
    #[cfg(test)]
    fn sample(spec: &ColumnSpec, random: &mut crate::testing::Random) -> Self;
}

/// A plain value of one column.
pub trait Value: Sized {
    /// Type of the column.
    #[doc(hidden)]
    const VALUE: Kind;

    #[doc(hidden)]
    fn array<'a>(values: impl Iterator<Item = Option<&'a Self>>) -> ArrayRef
    where
        Self: 'a;

    /// The values of an array, whose type the reader has checked.
    #[doc(hidden)]
    fn values(array: &dyn Array) -> Vec<Option<Self>>;

    #[cfg(test)]
    fn sample_value(spec: &ColumnSpec, random: &mut crate::testing::Random) -> Self;
}

impl<T: Value> Cell for T {
    const KIND: Kind = T::VALUE;
    const NULLABLE: bool = false;

    fn write(spec: &ColumnSpec, cells: &[&Self], batch: &mut Batch<'_>) -> Result<()> {
        batch.add(spec, spec.name.to_owned(), T::array(cells.iter().map(|cell| Some(*cell))))
    }

    fn read(spec: &ColumnSpec, columns: &Columns<'_>) -> Result<Vec<Self>> {
        let values = columns.required(spec, T::values)?;
        let filled = values.into_iter().enumerate();
        filled.map(|(row, value)| value.ok_or_else(|| columns.null_value(spec, row))).collect()
    }

    #[cfg(test)]
    fn sample(spec: &ColumnSpec, random: &mut crate::testing::Random) -> Self {
        T::sample_value(spec, random)
    }
}

impl<T: Value> Cell for Option<T> {
    const KIND: Kind = T::VALUE;
    const NULLABLE: bool = true;

    fn write(spec: &ColumnSpec, cells: &[&Self], batch: &mut Batch<'_>) -> Result<()> {
        batch.add(spec, spec.name.to_owned(), T::array(cells.iter().map(|cell| cell.as_ref())))
    }

    fn read(spec: &ColumnSpec, columns: &Columns<'_>) -> Result<Vec<Self>> {
        let absent = || std::iter::repeat_with(|| None).take(columns.rows()).collect();
        Ok(columns.optional(spec, T::values)?.unwrap_or_else(absent))
    }

    #[cfg(test)]
    fn sample(spec: &ColumnSpec, random: &mut crate::testing::Random) -> Self {
        (random.below(4) > 0).then(|| T::sample_value(spec, random))
    }
}

/// Numbers, whose Arrow and Rust types differ only in name.
macro_rules! numbers {
    ($($native:ty, $arrow:ty, $kind:ident;)*) => {$(
        impl Value for $native {
            const VALUE: Kind = Kind::$kind;

            fn array<'a>(values: impl Iterator<Item = Option<&'a Self>>) -> ArrayRef {
                let copied: PrimitiveArray<$arrow> = values.map(Option::<&Self>::copied).collect();
                Arc::new(copied)
            }

            fn values(array: &dyn Array) -> Vec<Option<Self>> {
                primitives::<$arrow>(array).iter().collect()
            }

            #[cfg(test)]
            fn sample_value(_: &ColumnSpec, random: &mut crate::testing::Random) -> Self {
                random.number() as Self
            }
        }
    )*};
}

numbers! {
    i16, Int16Type, I16;
    i32, Int32Type, I32;
    i64, Int64Type, I64;
    f32, Float32Type, F32;
    f64, Float64Type, F64;
}

fn primitives<T: ArrowPrimitiveType>(array: &dyn Array) -> &PrimitiveArray<T> {
    array.as_primitive()
}

impl Value for bool {
    const VALUE: Kind = Kind::Bool;

    fn array<'a>(values: impl Iterator<Item = Option<&'a Self>>) -> ArrayRef {
        Arc::new(values.map(Option::<&Self>::copied).collect::<BooleanArray>())
    }

    fn values(array: &dyn Array) -> Vec<Option<Self>> {
        array.as_boolean().iter().collect()
    }

    #[cfg(test)]
    fn sample_value(_: &ColumnSpec, random: &mut crate::testing::Random) -> Self {
        random.below(2) == 1
    }
}

impl Value for String {
    const VALUE: Kind = Kind::Utf8;

    fn array<'a>(values: impl Iterator<Item = Option<&'a Self>>) -> ArrayRef {
        Arc::new(values.collect::<StringArray>())
    }

    fn values(array: &dyn Array) -> Vec<Option<Self>> {
        array.as_string::<i32>().iter().map(|text| text.map(str::to_owned)).collect()
    }

    #[cfg(test)]
    fn sample_value(spec: &ColumnSpec, random: &mut crate::testing::Random) -> Self {
        random.text(spec.role)
    }
}

impl Value for Vec<i32> {
    const VALUE: Kind = Kind::ListI32;

    fn array<'a>(values: impl Iterator<Item = Option<&'a Self>>) -> ArrayRef {
        let item = Field::new("item", DataType::Int32, false);
        let mut lists = ListBuilder::new(Int32Builder::new()).with_field(item);
        for list in values {
            if let Some(list) = list {
                lists.values().append_slice(list);
            }
            lists.append(list.is_some());
        }
        Arc::new(lists.finish())
    }

    fn values(array: &dyn Array) -> Vec<Option<Self>> {
        // A null inside a list cannot come from our writer; the reader refuses such a column before it gets here.
        let list = |items: ArrayRef| primitives::<Int32Type>(&items).values().to_vec();
        array.as_list::<i32>().iter().map(|items| items.map(list)).collect()
    }

    #[cfg(test)]
    fn sample_value(_: &ColumnSpec, random: &mut crate::testing::Random) -> Self {
        (0..random.below(6)).map(|_| random.number() as i32).collect()
    }
}
