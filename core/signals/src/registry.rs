//! The table of all signals. A new one is its file and its row here.

use crate::epikv::{self, Epikv};
use crate::error::{Error, Result};
use crate::hs_l2::{self, HsL2};
use crate::kv_key::{self, KvKey};
use crate::kv_var::{self, KvVar};
use crate::signal::{Signal, SignalSpec};

/// How a signal is made.
#[derive(Debug, Clone, Copy)]
pub enum Build {
    /// One a layer, from layer and number of layers.
    PerLayer(fn(usize, usize) -> Result<Box<dyn Signal>>),
    /// One a model, from the number of layers.
    PerModel(fn(usize) -> Result<Box<dyn Signal>>),
}

/// A row of the table.
#[derive(Debug, Clone, Copy)]
pub struct SignalRow {
    /// Name, documentation, unit and source.
    pub spec: &'static SignalSpec,
    /// How it is made. Rows hold constructors, never shared instances.
    pub build: Build,
}

/// All signals.
pub static SIGNALS: &[SignalRow] = &[
    SignalRow {
        spec: &hs_l2::SPEC,
        build: Build::PerLayer(|layer, n_layers| Ok(Box::new(HsL2::new(layer, n_layers)?))),
    },
    SignalRow {
        spec: &kv_var::KEY,
        build: Build::PerLayer(|layer, n_layers| Ok(Box::new(KvVar::key(layer, n_layers)?))),
    },
    SignalRow {
        spec: &kv_var::VALUE,
        build: Build::PerLayer(|layer, n_layers| Ok(Box::new(KvVar::value(layer, n_layers)?))),
    },
    SignalRow { spec: &epikv::SPEC, build: Build::PerModel(|n_layers| Ok(Box::new(Epikv::of_depth(n_layers)?))) },
    SignalRow {
        spec: &epikv::RAW_SPEC,
        build: Build::PerModel(|n_layers| Ok(Box::new(Epikv::of_depth(n_layers)?.raw()))),
    },
    SignalRow { spec: &kv_key::SPEC, build: Build::PerModel(|n_layers| Ok(Box::new(KvKey::new(n_layers)?))) },
];

/// The row of a name.
///
/// # Errors
/// If there is none; the error lists the names.
pub fn find(name: &str) -> Result<&'static SignalRow> {
    SIGNALS.iter().find(|row| row.spec.name == name).ok_or_else(|| Error::UnknownSignal {
        given: name.to_owned(),
        known: SIGNALS.iter().map(|row| row.spec.name).collect(),
    })
}

/// A signal with the layer it reads; `None` where it reads the model as a whole.
pub type LayerSignal = (Option<usize>, Box<dyn Signal>);

impl SignalRow {
    /// The signal at one layer.
    ///
    /// # Errors
    /// If it has one value a model, or the model lacks the layer.
    pub fn at_layer(&self, layer: usize, n_layers: usize) -> Result<Box<dyn Signal>> {
        match self.build {
            Build::PerLayer(build) => build(layer, n_layers),
            Build::PerModel(_) => Err(Error::WrongBuild { signal: self.spec.name, expected: "no layer" }),
        }
    }

    /// The signal of a whole model.
    ///
    /// # Errors
    /// If it has one value a layer, or the model is too shallow.
    pub fn of_model(&self, n_layers: usize) -> Result<Box<dyn Signal>> {
        match self.build {
            Build::PerLayer(_) => Err(Error::WrongBuild { signal: self.spec.name, expected: "a layer" }),
            Build::PerModel(build) => build(n_layers),
        }
    }

    /// The signal at every layer of a model, or the one of the model, with its layer where it has one.
    ///
    /// # Errors
    /// If the model is too shallow for it.
    pub fn all(&self, n_layers: usize) -> Result<Vec<LayerSignal>> {
        match self.build {
            Build::PerLayer(build) => (0..n_layers).map(|layer| Ok((Some(layer), build(layer, n_layers)?))).collect(),
            Build::PerModel(build) => Ok(vec![(None, build(n_layers)?)]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        assert_eq!(find("epikv").expect("a row").spec.name, "epikv");
        let error = find("hs_l3").expect_err("no such row");
        assert_eq!(
            error.to_string(),
            "unknown signal \"hs_l3\": expected one of hs_l2, kv_key_var, kv_val_var, epikv, epikv_raw, kv_key"
        );
        assert!(error.hint().is_some());
    }

    #[test]
    fn a_row_is_built_in_its_own_way_only() {
        let (per_layer, per_model) = (find("hs_l2").expect("a row"), find("epikv").expect("a row"));
        assert_eq!(per_layer.all(3).expect("any depth").len(), 3);
        assert_eq!(per_model.all(4).expect("deep enough").len(), 1);
        let error = per_layer.of_model(4).expect_err("has a value a layer");
        assert_eq!(error.to_string(), "signal hs_l2: expected a layer");
        assert!(per_model.at_layer(0, 4).is_err());
    }
}
