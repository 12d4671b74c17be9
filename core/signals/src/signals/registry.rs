//! The table of all signals. A new one is its file and its row here.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::epikv::{self, Epikv};
use super::kv_key::{self, KvKey};
use super::late::LateSignal;
use super::layer_mean::LayerMean;
use super::of_score::ScoreSignal;
use super::per_layer::At;
use super::row::{Build, SignalRow};
use super::signal::Signal;
use super::{
    attn_received, attn_row, band_score, cross_head_var, embed_l2, hs_cos, hs_l2, hs_norm, key_diff, kv_norm, kv_range,
    kv_var, lag, lag_next, of_score, token,
};
use crate::error::{Error, Result};

/// All signals: of the residual stream, of keys and values, of the logits, and the scores of policies.
pub static SIGNALS: &[SignalRow] = &[
    SignalRow::new(&hs_l2::SPEC, Build::PerLayer(hs_l2::build)),
    SignalRow::new(&hs_cos::SPEC, Build::PerLayer(hs_cos::build)),
    SignalRow::new(&hs_norm::SPEC, Build::PerLayer(hs_norm::build)),
    SignalRow::new(&kv_var::KEY, Build::PerLayerAndMean(kv_var::key)),
    SignalRow::new(&kv_norm::KEY, Build::PerLayerAndMean(kv_norm::key)),
    SignalRow::new(&kv_var::KEY_PREROPE, Build::PerLayerAndMean(kv_var::key_prerope)),
    SignalRow::new(&kv_norm::KEY_PREROPE, Build::PerLayerAndMean(kv_norm::key_prerope)),
    SignalRow::new(&kv_var::VALUE, Build::PerLayerAndMean(kv_var::value)),
    SignalRow::new(&kv_norm::VALUE, Build::PerLayerAndMean(kv_norm::value)),
    SignalRow::new(&kv_range::SPEC, Build::PerLayerAndMean(kv_range::build)),
    SignalRow::new(&cross_head_var::SPEC, Build::PerLayerAndMean(cross_head_var::build)),
    SignalRow::new(&lag::KEY, Build::PerLayerAndMean(lag::key)),
    SignalRow::new(&lag::VALUE, Build::PerLayerAndMean(lag::value)),
    SignalRow::new(&lag_next::SPEC, Build::Late(lag_next::build)),
    SignalRow::new(&key_diff::SPEC, Build::PerLayerAndMean(key_diff::KeyDiff::build)),
    SignalRow::new(&embed_l2::SPEC, Build::PerModel(embed_l2::build)),
    SignalRow::new(&token::SURPRISAL, Build::PerModel(|_| Ok(token::surprisal()))),
    SignalRow::new(&token::ENTROPY, Build::PerModel(|_| Ok(token::entropy()))),
    SignalRow::new(&token::MARGIN, Build::PerModel(|_| Ok(token::margin()))),
    SignalRow::new(&attn_row::ENTROPY, Build::PerLayerAndMean(attn_row::entropy)),
    SignalRow::new(&attn_row::DISTANCE, Build::PerLayerAndMean(attn_row::distance)),
    SignalRow::new(&attn_received::ALL, Build::Late(attn_received::all)),
    SignalRow::new(&attn_received::YOUNG, Build::Aged(attn_received::AGE)),
    SignalRow::new(&attn_received::LAST, Build::Late(attn_received::last)),
    SignalRow::new(&epikv::SPEC, Build::PerModel(|n_layers| Ok(Box::new(Epikv::of_depth(n_layers)?)))),
    SignalRow::new(&epikv::RAW_SPEC, Build::PerModel(|n_layers| Ok(Box::new(Epikv::of_depth(n_layers)?.raw())))),
    SignalRow::new(&band_score::BAND_A, Build::PerModel(band_score::band_a)),
    SignalRow::new(&band_score::BAND_B, Build::PerModel(band_score::band_b)),
    SignalRow::new(&band_score::ADAPTIVE, Build::PerModel(band_score::adaptive)),
    SignalRow::new(&kv_key::SPEC, Build::PerModel(|n_layers| Ok(Box::new(KvKey::new(n_layers)?)))),
    SignalRow::new(&kv_key::VALUE, Build::PerModel(|n_layers| Ok(Box::new(KvKey::value(n_layers)?)))),
    SignalRow::new(&lag::AUTHORS_KEY, Build::PerModel(lag::authors_key)),
    SignalRow::new(&lag::AUTHORS_BOTH, Build::PerModel(lag::authors_both)),
];

/// The row of a name. `h2o_attn@age=W` is known for every number of tokens, and so is every score of policies, `SCORE` and
/// `SCORE@age=W`; a row outside the table is made once and kept, as names of signals live as long as the program.
///
/// # Errors
/// If there is none; the error lists the names.
pub fn find(name: &str) -> Result<&'static SignalRow> {
    static MADE: Mutex<BTreeMap<&str, &SignalRow>> = Mutex::new(BTreeMap::new());
    if let Some(row) = SIGNALS.iter().find(|row| row.spec.name == name) {
        return Ok(row);
    }
    let known = || SIGNALS.iter().map(|row| row.spec.name).collect();
    let row = attn_received::row(name).or_else(|| of_score::row(name));
    let row = row.ok_or_else(|| Error::UnknownSignal { given: name.to_owned(), known: known() })?;
    // A thread that panicked while it held the lock left whole entries only.
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(*made.entry(row.spec.name).or_insert_with(|| Box::leak(Box::new(row))))
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
            Build::PerLayer(build) | Build::PerLayerAndMean(build) => build(At { layer, n_layers }),
            Build::PerModel(_) | Build::Late(_) | Build::Aged(_) | Build::Score(..) => {
                Err(Error::WrongBuild { signal: self.spec.name, expected: "no layer" })
            }
        }
    }

    /// The signal of a whole model: the only one, or the mean over layers.
    ///
    /// # Errors
    /// If it has values of layers alone, or the model is too shallow.
    pub fn of_model(&self, n_layers: usize) -> Result<Box<dyn Signal>> {
        match self.build {
            Build::PerLayer(_) => Err(Error::WrongBuild { signal: self.spec.name, expected: "a layer" }),
            Build::PerLayerAndMean(build) if n_layers > 0 => {
                let layers = (0..n_layers).map(|layer| build(At { layer, n_layers })).collect::<Result<_>>()?;
                Ok(Box::new(LayerMean::new(self.spec, layers)))
            }
            Build::PerLayerAndMean(_) => Err(Error::Layer { signal: self.spec.name, layer: 0, n_layers }),
            Build::PerModel(build) => build(n_layers),
            Build::Late(_) | Build::Aged(_) | Build::Score(..) => {
                Err(Error::WrongBuild { signal: self.spec.name, expected: "the end of the sequence" })
            }
        }
    }

    /// The signal at every layer of a model, each with its layer, and then the one of the model where there is one; nothing
    /// for a signal that is known late.
    ///
    /// # Errors
    /// If the model is too shallow for it.
    pub fn all(&self, n_layers: usize) -> Result<Vec<LayerSignal>> {
        let of_layers = || (0..n_layers).map(|layer| Ok((Some(layer), self.at_layer(layer, n_layers)?)));
        match self.build {
            Build::PerLayer(_) => of_layers().collect(),
            Build::PerLayerAndMean(_) => {
                of_layers().chain(std::iter::once_with(|| Ok((None, self.of_model(n_layers)?)))).collect()
            }
            Build::PerModel(_) => Ok(vec![(None, self.of_model(n_layers)?)]),
            Build::Late(_) | Build::Aged(_) | Build::Score(..) => Ok(Vec::new()),
        }
    }

    /// The signal that is known at the end of the sequence, where it is one.
    ///
    /// # Errors
    /// If the model has no layers.
    pub fn late(&self, n_layers: usize) -> Result<Option<Box<dyn LateSignal>>> {
        match self.build {
            Build::Late(build) => build(n_layers).map(Some),
            Build::Aged(age) => attn_received::young(self.spec, age, n_layers).map(Some),
            _ => Ok(None),
        }
    }

    /// The score of policies on a trace of some problem, where it is one.
    ///
    /// # Errors
    /// If the model is too shallow for it.
    pub fn score(&self, n_layers: usize, problem: &str) -> Result<Option<ScoreSignal>> {
        match self.build {
            Build::Score(score, age) => ScoreSignal::new(self.spec, (score, age), n_layers, problem).map(Some),
            _ => Ok(None),
        }
    }

    /// Whether it is made of attention weights, which the fused kernels of GPUs never write down.
    ///
    /// # Errors
    /// If the model is too shallow for it.
    pub fn needs_attention(&self, n_layers: usize) -> Result<bool> {
        if let Build::Score(score, _) = self.build {
            return Ok(score.plan(n_layers)?.needs_attention());
        }
        let late = self.late(n_layers)?.is_some_and(|signal| signal.plan().needs_attention());
        Ok(late || self.all(n_layers)?.iter().any(|(_, signal)| signal.plan().needs_attention()))
    }

    /// Whether it has a value at a layer of a model, or, for `None`, one of the whole model.
    pub fn has_value(&self, layer: Option<usize>, n_layers: usize) -> bool {
        match layer {
            Some(layer) => self.has_layers() && layer < n_layers,
            None => !matches!(self.build, Build::PerLayer(_)),
        }
    }

    /// How many values a token has, and when they are known, in words.
    pub fn values(&self) -> &'static str {
        match self.build {
            Build::PerLayer(_) => "one a layer",
            Build::PerLayerAndMean(_) => "one a layer and their mean",
            Build::PerModel(_) => "one a model",
            Build::Aged(_) => "one a model, known at that age",
            Build::Late(_) => "one a model, known at the trace's end",
            Build::Score(..) => "one a model, a score of policies",
        }
    }

    /// Whether it has a value a layer.
    pub fn has_layers(&self) -> bool {
        matches!(self.build, Build::PerLayer(_) | Build::PerLayerAndMean(_))
    }
}

#[cfg(test)]
mod tests {
    use epikv_words::Hint;

    use super::*;

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        assert_eq!(find("epikv").expect("a row").spec.name, "epikv");
        let error = find("hs_l3").expect_err("no such row");
        let text = error.to_string();
        assert!(
            text.starts_with("unknown signal \"hs_l3\": expected one of hs_l2, hs_cos, hs_norm, kv_key_var,"),
            "{text}"
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
        let both = find("kv_key_var").expect("a row");
        let layers: Vec<_> = both.all(2).expect("any depth").into_iter().map(|(layer, _)| layer).collect();
        assert_eq!(layers, [Some(0), Some(1), None]);
        assert!(both.all(0).is_err());
        assert!(both.has_value(None, 2) && both.has_value(Some(1), 2) && !both.has_value(Some(2), 2));
        assert!(!per_layer.has_value(None, 2) && !per_model.has_value(Some(0), 2));
    }
}
