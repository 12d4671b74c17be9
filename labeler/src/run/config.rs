//! Settings of a labelling run: as typed, then checked.

use epikv_schemas::Trace;
use epikv_words::Word;
use serde::Serialize;

use crate::error::{Error, Result};
use crate::windows::compared::{AnswerKind, Mapping};
use crate::windows::filler::Filler;
use crate::windows::intervention::Intervention;
use crate::windows::spans::By;

epikv_words::words! {
    /// Which of two ways leads to the labels. Both give the same ones.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
    #[serde(into = "&'static str")]
    pub enum Protocol {
        /// Compute the tokens before a window once a trace, and read the control's answer as a draft.
        #[default]
        Fast = "fast",
        /// Compute a fresh pass and decode a whole answer for each window.
        Naive = "naive",
    }
}

epikv_words::words! {
    /// Where a regeneration ends.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
    #[serde(into = "&'static str")]
    pub enum Stop {
        /// At the end of sequence, as in the published labels.
        #[default]
        Eos = "eos",
        /// At the end of the first complete box, if that comes before.
        AtBox = "at-box",
    }
}

/// Settings as typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Tokens of a window.
    pub window: usize,
    /// Distance between window starts.
    pub stride: usize,
    /// Most new tokens of a regeneration.
    pub max_new: usize,
    /// Where a regeneration ends.
    pub stop: Stop,
    /// What is done to a window.
    pub intervention: Intervention,
    /// What stands in the place of a window that is overwritten.
    pub filler: Filler,
    /// What a window is.
    pub by: By,
    /// Whether flipping windows are halved down to the smallest part that flips alone.
    pub refine: bool,
    /// Pairs of windows a trace, none of which flips alone, that are withheld together.
    pub pairs: usize,
    /// Seed of random fillers.
    pub seed: u64,
    /// How the labels are computed. Both protocols give the same labels.
    pub protocol: Protocol,
    /// What counts as a flip.
    pub mapping: Mapping,
    /// What counts as the answer.
    pub answer: AnswerKind,
    /// Whether windows start at the prompt's end, also where the model opened its reasoning itself.
    pub from_prompt_end: bool,
    /// Whether traces with an unusable control are labelled too.
    pub include_unusable: bool,
    /// Windows of the run that are regenerated twice more for the noise floor. Changes no result.
    pub noise_floor: usize,
    /// Regenerations that run together. Changes no result.
    pub batch: usize,
    /// Threads of the run, for the timings. Changes no result.
    pub threads: usize,
}

impl Default for Settings {
    /// The decisions of the design: windows of 32 at a stride of 16, 512 new tokens, filler `eos`.
    fn default() -> Self {
        Self {
            window: 32,
            stride: 16,
            max_new: 512,
            stop: Stop::Eos,
            intervention: Intervention::Occlude,
            filler: Filler::Eos,
            by: By::Window,
            refine: false,
            pairs: 0,
            seed: 0,
            protocol: Protocol::Fast,
            mapping: Mapping::Control,
            answer: AnswerKind::Math,
            from_prompt_end: false,
            include_unusable: false,
            noise_floor: 8,
            batch: 8,
            threads: 1,
        }
    }
}

impl Settings {
    /// The protocol of the published labels: against gold, truncated flips, filler `eos`, grid from the prompt's end.
    #[must_use]
    pub fn paper() -> Self {
        Self { mapping: Mapping::Paper, from_prompt_end: true, ..Self::default() }
    }
}

/// Checked settings.
#[derive(Debug, Clone)]
pub struct Config(Settings);

impl TryFrom<Settings> for Config {
    type Error = Error;

    fn try_from(settings: Settings) -> Result<Self> {
        for (setting, value) in [
            ("--window", settings.window),
            ("--stride", settings.stride),
            ("--max-new", settings.max_new),
            ("--batch", settings.batch),
        ] {
            if value == 0 {
                return Err(Error::Setting { setting, expected: "at least 1".to_owned(), got: "0".to_owned() });
            }
        }
        if settings.stride > settings.window {
            return Err(Error::Setting {
                setting: "--stride",
                expected: format!("at most the window of {}, or tokens between windows get no label", settings.window),
                got: settings.stride.to_string(),
            });
        }
        let most = i16::MAX.unsigned_abs().into();
        if settings.by == By::Window && settings.window.div_ceil(settings.stride) > most {
            return Err(Error::Setting {
                setting: "--stride",
                expected: format!(
                    "at most {most} windows over a token, so at least {} for a window of {}",
                    settings.window.div_ceil(most),
                    settings.window
                ),
                got: settings.stride.to_string(),
            });
        }
        let Settings { intervention, stop, .. } = settings;
        if stop == Stop::AtBox && (intervention.runs_on() || intervention == Intervention::Truncate) {
            return Err(Error::Setting {
                setting: "--stop",
                expected: format!("eos with --intervention {}: a box may stand in the reasoning", intervention.name()),
                got: "at-box".to_owned(),
            });
        }
        if settings.pairs > 0 && intervention != Intervention::Occlude {
            return Err(Error::Setting {
                setting: "--pairs",
                expected: "--intervention occlude".to_owned(),
                got: intervention.name().to_owned(),
            });
        }
        Ok(Self(settings))
    }
}

impl std::ops::Deref for Config {
    type Target = Settings;

    fn deref(&self) -> &Settings {
        &self.0
    }
}

impl Config {
    /// Whether a trace is not labelled since its own answer is wrong: then every window would seem to flip.
    pub(crate) fn leaves_out(&self, trace: &Trace) -> bool {
        trace.correct == Some(false) && self.answer == AnswerKind::Math && !self.include_unusable
    }

    /// What was done to the windows, as the column `filler` names it: the filler, or the intervention that is none.
    pub fn name(&self) -> String {
        match self.intervention {
            Intervention::Occlude => self.filler.to_string(),
            other => other.to_string(),
        }
    }

    /// What determines the labels, for provenance: everything but batch, threads and protocol, which change no value.
    pub fn provenance(&self) -> serde_json::Value {
        serde_json::json!({
            "window": self.window,
            "stride": self.stride,
            "max_new": self.max_new,
            "stop": self.stop,
            "intervention": self.intervention,
            "filler": self.name(),
            "by": self.by,
            "refine": self.refine,
            "pairs": self.pairs,
            "seed": self.seed,
            "mapping": self.mapping,
            "answer": self.answer,
            "grader_mode": crate::windows::outcome::GRADER_MODE.name(),
            "from_prompt_end": self.from_prompt_end,
            "include_unusable": self.include_unusable,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_checked() {
        assert!(Config::try_from(Settings::default()).is_ok());
        let error = Config::try_from(Settings { batch: 0, ..Settings::default() }).expect_err("no rows");
        assert_eq!(error.to_string(), "--batch: expected at least 1, got 0");
        let gap = Config::try_from(Settings { window: 8, ..Settings::default() }).expect_err("a gap");
        assert!(gap.to_string().starts_with("--stride: expected at most the window of 8"));
        let grid = |window, stride| Config::try_from(Settings { window, stride, ..Settings::default() });
        let message = grid(65_536, 1).expect_err("more than a file counts").to_string();
        assert_eq!(
            message,
            "--stride: expected at most 32767 windows over a token, so at least 3 for a window of 65536, got 1"
        );
        assert!(grid(32_767, 1).is_ok() && grid(32_768, 1).is_err() && grid(usize::MAX, usize::MAX).is_ok());
    }
}
