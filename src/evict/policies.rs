//! Which policies are run and what they are compared with, from the flags.

use std::io::Write;

use anyhow::{Result, bail};
use epikv_eviction::{Comparisons, NamedPolicy, PositionMode, Settings, parse_policies};

use crate::cli::EvictArgs;

/// The policies: those that were typed, or one for each score to swap.
pub(super) fn policies(args: &EvictArgs) -> Result<Vec<NamedPolicy>> {
    let Some(swap) = &args.swap else {
        return Ok(parse_policies([args.policies.as_str()], args.labels.is_some())?);
    };
    let Some(scores) = swap.strip_prefix("score=") else {
        bail!("--swap {swap}: expected score=A,B,.., got something else");
    };
    let held = args.hold.as_deref().unwrap_or_default();
    scores.split(',').map(|score| Ok(NamedPolicy::swapped(score, held)?)).collect()
}

/// What the policies are compared with, by the names that the tables give them.
pub(super) fn comparisons(args: &EvictArgs) -> Result<Comparisons> {
    let name = |text: &str| Ok::<_, epikv_eviction::Error>(text.parse::<NamedPolicy>()?.name);
    let primary = args.primary.iter().map(|(a, b)| Ok((name(a)?, name(b)?))).collect::<Result<_>>()?;
    Ok(Comparisons { baseline: args.baseline.as_deref().map(name).transpose()?, primary, margin: args.margin })
}

/// The policies with all their parts, and warnings, before anything runs.
pub(super) fn announce(settings: &Settings) -> Result<()> {
    let mut err = std::io::stderr();
    for policy in &settings.ordered_policies()? {
        writeln!(err, "{policy}: {}", policy.policy)?;
        if policy.policy.position == PositionMode::Rewound {
            writeln!(
                err,
                "warning: {policy}: positions are rewound at each eviction, so that kept keys seem to lie in the future; \
                 only for reproducing runs that were made so"
            )?;
        }
    }
    Ok(())
}
