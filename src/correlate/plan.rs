//! Checks the flags of the command.

use anyhow::{Result, bail};
use epikv_analyzer::compare::Side;
use epikv_analyzer::{EMBEDDING, InputError, Pool, Settings};
use epikv_eviction::Budget;
use epikv_model::Model;
use epikv_model::decoder::AttentionKernel;
use epikv_signals::{SIGNALS, SignalRow, Smoother, find};
use epikv_stats::Confidence;

use crate::cli::CorrelateArgs;

/// What is asked of a run.
pub(super) struct Plan {
    /// Signals by name; `None` for all that the model is deep enough for.
    pub(super) signals: Option<Vec<&'static SignalRow>>,
    /// Whether signals of attention weights may be recorded.
    pub(super) kernel: AttentionKernel,
    /// How they are compared with labels.
    pub(super) settings: Settings,
    /// Columns that are compared with each other; none for the usual ones.
    pub(super) pairs: Vec<[Side; 2]>,
    /// Budget under which scores are replayed.
    pub(super) budget: Budget,
}

impl Plan {
    /// Checks what was typed.
    pub(super) fn new(args: &CorrelateArgs) -> Result<Self> {
        let named = |text: &str| -> Vec<String> { text.split(',').map(|name| name.trim().to_owned()).collect() };
        let signals = match args.signals.trim() {
            "all" => None,
            names => Some(unique(named(names).iter().map(|name| Ok(find(name)?)), |row| row.spec.name)?),
        };
        let window = args.smooth_window;
        let smoothers = match args.smooth.trim() {
            "all" => Smoother::ALL.to_vec(),
            names => unique(named(names).iter().map(|name| Ok(Smoother::parse(name, window)?)), |s| *s)?,
        };
        let settings = Settings {
            smoothers,
            window,
            window_from: args.window_from,
            confidence: Confidence::P95,
            fisher: args.ci,
            replicates: args.bootstrap as usize,
            surrogates: args.surrogates as usize,
            seed: args.model.seed,
            max_lag: args.max_lag as usize,
            pools: unique(args.pool.iter().map(|typed| Ok(Pool::parse(typed)?)), Pool::name)?,
        };
        let pairs = unique(args.compare.iter().map(|typed| pair(typed, window)), |pair| *pair)?;
        Ok(Self { signals, kernel: args.kernel, settings, pairs, budget: args.budget.trim().parse()? })
    }

    /// The signals of a model: those asked for, or all that can be built for it and that the kernel shows.
    pub(super) fn rows(&self, n_layers: usize) -> Vec<&'static SignalRow> {
        let fits = |row: &&SignalRow| match row.needs_attention(n_layers) {
            Ok(needs_attention) => self.kernel == AttentionKernel::Explicit || !needs_attention,
            Err(_) => false,
        };
        let mut rows = self.signals.clone().unwrap_or_else(|| SIGNALS.iter().filter(fits).collect());
        // A baseline that stands in every table.
        if !rows.iter().any(|row| row.spec.name == EMBEDDING) {
            rows.extend(SIGNALS.iter().filter(|row| row.spec.name == EMBEDDING));
        }
        rows
    }

    /// Refuses a signal of attention weights that was asked for by name and that the kernel hides.
    pub(super) fn check_kernel(&self, n_layers: usize) -> Result<()> {
        for row in self.signals.iter().flatten() {
            if self.kernel == AttentionKernel::Fused && row.needs_attention(n_layers)? {
                return Err(epikv_analyzer::Error::from(InputError::HiddenByKernel { signal: row.spec.name }).into());
            }
        }
        Ok(())
    }

    /// Refuses to compare what will not be recorded.
    pub(super) fn check_pairs(&self, n_layers: usize) -> Result<()> {
        let rows = self.rows(n_layers);
        for side in self.pairs.iter().flatten() {
            let row = rows.iter().find(|row| row.spec.name == side.signal);
            if !row.is_some_and(|row| row.has_value(side.layer, n_layers)) {
                return Err(side.missing().into());
            }
        }
        Ok(())
    }

    pub(super) fn notes(&self, model: &Model) -> Vec<String> {
        let n_layers = model.decoder.config().n_layers;
        let rows = self.rows(n_layers);
        let mut notes = Vec::new();
        let mut hidden = Vec::new();
        for row in SIGNALS.iter().filter(|row| self.signals.is_none() && !rows.iter().any(|r| r.spec == row.spec)) {
            let name = row.spec.name;
            if row.needs_attention(n_layers).is_ok() {
                hidden.push(name);
            } else {
                notes.push(format!("{name} needs a deeper model than {n_layers} layers and is left out"));
            }
        }
        if !hidden.is_empty() {
            notes.push(format!(
                "signals of attention weights are recorded with --kernel explicit: {}",
                hidden.join(", ")
            ));
        }
        notes
    }
}

/// Two columns, separated by a comma.
fn pair(typed: &str, window: usize) -> Result<[Side; 2]> {
    let sides = typed.split(',').map(|side| Side::parse(side, window)).collect::<Result<Vec<_>, _>>()?;
    match sides[..] {
        [a, b] if a != b => Ok([a, b]),
        _ => bail!("--compare {typed}: expected two different signals, separated by a comma"),
    }
}

/// Items in their order, a repeated one once.
pub(super) fn unique<T, K: PartialEq>(items: impl Iterator<Item = Result<T>>, key: impl Fn(&T) -> K) -> Result<Vec<T>> {
    let mut all: Vec<T> = Vec::new();
    for item in items {
        let item = item?;
        if !all.iter().any(|known| key(known) == key(&item)) {
            all.push(item);
        }
    }
    Ok(all)
}
