//! Labels of tokens from the outcomes of windows.

use std::ops::Range;

/// What the windows over a token say of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TokenLabel {
    /// Covering windows whose outcome decides something.
    pub n_cover: u32,
    /// Those of them that flipped the answer.
    pub n_flip: u32,
    /// Any flip: true; else any undecided window: null; else false. Null where nothing covers the token.
    pub important: Option<bool>,
}

/// Folds windows into labels of the positions `0..n_tokens`.
pub fn token_labels(n_tokens: usize, windows: &[(Range<usize>, Option<bool>)]) -> Vec<TokenLabel> {
    let mut labels = vec![TokenLabel::default(); n_tokens];
    let mut undecided = vec![false; n_tokens];
    for (window, flipped) in windows {
        for pos in window.clone() {
            match flipped {
                Some(flipped) => {
                    labels[pos].n_cover += 1;
                    labels[pos].n_flip += u32::from(*flipped);
                }
                None => undecided[pos] = true,
            }
        }
    }
    for (label, undecided) in labels.iter_mut().zip(undecided) {
        label.important = if label.n_flip > 0 {
            Some(true)
        } else if undecided || label.n_cover == 0 {
            None
        } else {
            Some(false)
        };
    }
    labels
}

/// Share of important tokens among those with a label; `None` where there is none.
pub fn important_share(labels: &[TokenLabel]) -> Option<f64> {
    let known: Vec<bool> = labels.iter().filter_map(|l| l.important).collect();
    (!known.is_empty()).then(|| known.iter().filter(|&&i| i).count() as f64 / known.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_flip_wins_then_any_doubt() {
        let windows = [(1..4, Some(false)), (2..6, Some(true)), (5..8, None), (7..9, Some(false))];
        let labels = token_labels(10, &windows);
        let important: Vec<Option<bool>> = labels.iter().map(|l| l.important).collect();
        let (t, f, n) = (Some(true), Some(false), None);
        assert_eq!(important, [n, f, t, t, t, t, n, n, f, n]);
        assert_eq!((labels[2].n_cover, labels[2].n_flip), (2, 1));
        assert_eq!((labels[7].n_cover, labels[7].n_flip), (1, 0), "the undecided window is out of n_cover");
        assert_eq!(important_share(&labels), Some(4.0 / 6.0));
        assert_eq!(important_share(&token_labels(3, &[])), None);
    }
}
