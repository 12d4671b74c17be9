//! A family of float columns, one for each layer, whose number is known only when the model is.

use std::sync::Arc;

use arrow::{
    array::{ArrayRef, AsArray, Float32Array},
    datatypes::Float32Type,
};

use crate::{
    batch::Batch,
    cell::Cell,
    columns::Columns,
    error::{Error, Result},
    layer_column::column_name,
    spec::{ColumnSpec, Kind},
};

/// One value a layer, undefined ones `None`. All rows of a table carry the same layers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PerLayer {
    layers: Arc<[u16]>,
    values: Vec<Option<f32>>,
}

impl PerLayer {
    /// Pairs 0-based layers with their values; the list of layers is shared by the rows of a table.
    ///
    /// # Panics
    /// If the layers are not strictly ascending, or not as many as the values.
    pub fn new(layers: Arc<[u16]>, values: Vec<Option<f32>>) -> Self {
        assert!(layers.is_sorted_by(|a, b| a < b), "layers must ascend: {layers:?}");
        assert_eq!(layers.len(), values.len(), "one value for each layer");
        Self { layers, values }
    }

    /// The layers, ascending.
    pub fn layers(&self) -> &[u16] {
        &self.layers
    }

    /// The values, in the order of the layers.
    pub fn values(&self) -> &[Option<f32>] {
        &self.values
    }

    /// The value of a layer; `None` also where the layer was not recorded.
    pub fn get(&self, layer: u16) -> Option<f32> {
        self.layers.binary_search(&layer).ok().and_then(|at| self.values[at])
    }
}

impl Cell for PerLayer {
    const KIND: Kind = Kind::F32;
    const NULLABLE: bool = true;
    const PER_LAYER: bool = true;

    fn write(spec: &ColumnSpec, cells: &[&Self], batch: &mut Batch<'_>) -> Result<()> {
        let Some(first) = cells.first() else {
            return Ok(());
        };
        let layers = batch.layers(spec.name, first.layers());
        if let Some(row) = cells.iter().position(|cell| cell.layers() != layers) {
            return Err(Error::OtherLayers {
                path: batch.path().to_owned(),
                column: spec.name.to_owned(),
                row: batch.first_row() + row,
                expected: layers,
                got: cells[row].layers().to_vec(),
            });
        }
        for (at, layer) in layers.into_iter().enumerate() {
            let values: Float32Array = cells.iter().map(|cell| cell.values[at]).collect();
            batch.add(spec, column_name(spec.name, layer), Arc::new(values))?;
        }
        Ok(())
    }

    fn read(spec: &ColumnSpec, columns: &Columns<'_>) -> Result<Vec<Self>> {
        let family: Vec<(u16, &ArrayRef)> = columns.family(spec.name);
        let layers: Arc<[u16]> = family.iter().map(|(layer, _)| *layer).collect();
        let arrays: Vec<&Float32Array> = family.iter().map(|(_, array)| array.as_primitive::<Float32Type>()).collect();
        let row_of = |row| {
            let values = arrays.iter().map(|array| array.iter().nth(row).flatten());
            Self { layers: Arc::clone(&layers), values: values.collect() }
        };
        Ok((0..columns.rows()).map(row_of).collect())
    }

    #[cfg(test)]
    fn sample(spec: &ColumnSpec, random: &mut crate::testing::Random) -> Self {
        let layers: Arc<[u16]> = Arc::new([0, 10, 21, 100]);
        let values = layers.iter().map(|_| Option::<f32>::sample(spec, random)).collect();
        Self::new(layers, values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Provenance, testing::TestResult, write_table};

    crate::record::record! {
        /// Signals of a token, to test families of columns.
        struct Signal in "test_signals", version 1 0, unique by (trace_id, pos);

        /// Name of the trace.
        trace_id: String => key(),
        /// Index of the token.
        pos: i32 => position(),
        /// Change of the residual stream.
        hs_l2: PerLayer => number("1"),
    }

    fn row(pos: i32, layers: &[u16]) -> Signal {
        let values = layers.iter().map(|layer| Some(f32::from(*layer))).collect();
        Signal { trace_id: "t".into(), pos, hs_l2: PerLayer::new(layers.into(), values) }
    }

    #[test]
    fn a_layer_that_was_not_recorded_has_no_value() {
        let row = row(0, &[10, 21]);
        assert_eq!((row.hs_l2.get(21), row.hs_l2.get(11)), (Some(21.0), None));
    }

    #[test]
    fn rows_of_other_layers_are_refused() -> TestResult {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("signals.parquet");
        let rows = [row(0, &[10, 21]), row(1, &[10])];
        let Err(error) = write_table(&path, &rows, &Provenance::new()) else { panic!("layers differ") };
        let text = error.to_string();
        assert!(text.ends_with("column hs_l2, row 1, expected: [10, 21], got: [10]"), "{text}");
        assert_eq!(std::fs::read_dir(folder.path())?.count(), 0);
        Ok(())
    }
}
