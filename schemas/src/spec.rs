//! The description of a table: plain static data, from which schema, encodings and documentation are derived.

use std::{collections::HashMap, fmt, str::FromStr, sync::Arc};

use arrow::datatypes::{DataType, Field};

use crate::{layer_column::layer_of, role::Role};

/// Version of a table's schema.
///
/// A new nullable column raises `minor`; anything that an old reader would misunderstand raises `major`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// Raised when old readers must not read the file.
    pub major: u16,
    /// Raised when nullable columns were added.
    pub minor: u16,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl FromStr for Version {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (major, minor) = text.split_once('.').unwrap_or((text, "0"));
        Ok(Self { major: major.parse()?, minor: minor.parse()? })
    }
}

/// One table: a name, a version, the columns in file order and the order of the rows.
#[derive(Debug)]
pub struct TableSpec {
    /// Name of the table and, with `.parquet`, of its file.
    pub name: &'static str,
    /// Version of the schema.
    pub version: Version,
    /// What a row is and what the table is for.
    pub doc: &'static str,
    /// Columns in file order.
    pub columns: &'static [ColumnSpec],
    /// Columns that the rows are sorted by; row groups end where the first of them changes.
    pub sort_key: &'static [&'static str],
    /// Whether the sort key names a row, so that a second row with the same key is an error.
    pub unique: bool,
}

impl TableSpec {
    /// Value of `epi.schema`: `name/major.minor`.
    pub fn id(&self) -> String {
        format!("{}/{}", self.name, self.version)
    }

    /// File name of the table in a run folder.
    pub fn file_name(&self) -> String {
        format!("{}.parquet", self.name)
    }

    /// The column of that name.
    pub fn column(&self, name: &str) -> Option<&'static ColumnSpec> {
        self.columns.iter().find(|column| column.name == name)
    }
}

/// One column, or one family of columns with a column for each layer.
#[derive(Debug)]
pub struct ColumnSpec {
    /// Name; a family's columns are named `name_l00`, `name_l01`, ...
    pub name: &'static str,
    /// Type of a value.
    pub kind: Kind,
    /// Whether a value may be undefined.
    pub nullable: bool,
    /// Whether this is a family with one column a layer; which layers is known when the file is written.
    pub per_layer: bool,
    /// What the column is for, which decides how it is stored.
    pub role: Role,
    /// What a value means.
    pub doc: &'static str,
}

impl ColumnSpec {
    /// Whether a column of that name in a file is this one, or one of this family.
    pub(crate) fn is_named(&self, name: &str) -> bool {
        if self.per_layer { layer_of(self.name, name).is_some() } else { self.name == name }
    }

    /// The Arrow field, under the name that the column has in the file.
    pub(crate) fn field(&self, name: String) -> Field {
        let metadata = [("doc".to_owned(), self.doc.trim().to_owned()), ("unit".to_owned(), self.unit().to_owned())];
        Field::new(name, self.kind.arrow(), self.nullable).with_metadata(HashMap::from(metadata))
    }

    /// Unit of a value; `1` for a pure number, empty where there is nothing to measure.
    pub fn unit(&self) -> &'static str {
        match self.role {
            Role::Key | Role::Word(_) | Role::Text | Role::Flag => "",
            Role::Position => "token index",
            Role::Number(unit) => unit,
        }
    }
}

epikv_words::words! {
    /// Type of the values of a column.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Kind {
        /// True or false.
        Bool = "bool",
        /// 16-bit integer.
        I16 = "i16",
        /// 32-bit integer.
        I32 = "i32",
        /// 64-bit integer.
        I64 = "i64",
        /// 32-bit float.
        F32 = "f32",
        /// 64-bit float.
        F64 = "f64",
        /// UTF-8 text.
        Utf8 = "utf8",
        /// List of 32-bit integers, none of them null.
        ListI32 = "list<i32>",
    }
}

impl Kind {
    /// The Arrow type. Text is plain `Utf8`: the dictionary is Parquet's, so that no reader sees an Arrow dictionary.
    pub fn arrow(self) -> DataType {
        match self {
            Self::Bool => DataType::Boolean,
            Self::I16 => DataType::Int16,
            Self::I32 => DataType::Int32,
            Self::I64 => DataType::Int64,
            Self::F32 => DataType::Float32,
            Self::F64 => DataType::Float64,
            Self::Utf8 => DataType::Utf8,
            Self::ListI32 => DataType::List(Arc::new(Field::new("item", DataType::Int32, false))),
        }
    }

    /// Whether a column of that Arrow type can be read as this kind. The name and nullability of list items are free,
    /// since other writers choose them differently.
    pub(crate) fn accepts(self, got: &DataType) -> bool {
        match (self, got) {
            (Self::ListI32, DataType::List(item)) => item.data_type() == &DataType::Int32,
            _ => &self.arrow() == got,
        }
    }
}
