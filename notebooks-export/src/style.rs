//! How the page looks.

/// The whole style sheet; system fonts, nothing fetched.
///
/// Texts of records are isolated, so that right-to-left marks in one cannot reorder what stands beside it.
pub(crate) const STYLE: &str = "\
body { font: 15px/1.45 system-ui, sans-serif; color: #1a1a1a; background: #ffffff; max-width: 70rem; \
margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; margin-top: 2rem; }
summary { cursor: pointer; padding: 0.25rem 0; overflow-wrap: anywhere; unicode-bidi: isolate; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0.15rem 1rem; }
dt { color: #595959; }
dd { margin: 0; overflow-wrap: anywhere; }
dd, td, pre, h1 { unicode-bidi: isolate; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; background: #f5f5f5; padding: 0.75rem; }
table { border-collapse: collapse; }
th, td { text-align: left; vertical-align: top; padding: 0.15rem 0.75rem 0.15rem 0; border-bottom: 1px solid #dddddd; }
td { overflow-wrap: anywhere; font-variant-numeric: tabular-nums; }
svg { width: 100%; height: auto; }
svg text { font: 12px system-ui, sans-serif; fill: #1a1a1a; }
.swatch { display: inline-block; width: 0.8rem; height: 0.8rem; margin-right: 0.4rem; vertical-align: -0.1rem; }
";
