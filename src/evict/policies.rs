//! The policies to run and to compare with, from the flags.

use std::io::Write;

use anyhow::{Result, bail};
use epikv_eviction::{Cells, Comparisons, NamedPolicy, PositionMode, Settings, parse_policies};

use crate::cli::{EvictArgs, PolicyArgs};
use crate::report::Refused;

/// The policies: those that were typed, or one for each score to swap.
pub(crate) fn policies(args: &PolicyArgs) -> Result<Vec<NamedPolicy>> {
    let Some(swap) = &args.swap else {
        // clap waives `requires` where the flag that is missing conflicts with one that is there.
        if let Some(hold) = &args.hold {
            let what = format!("--hold {hold}: expected it beside --swap, got no --swap");
            return Err(Refused::new(what, "--hold says which parts --swap keeps: --swap score=h2o,epikv").into());
        }
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

/// Refuses to compare with a policy that is neither run nor in the folder already: its column would be missing.
pub(super) fn check_compared(comparisons: &Comparisons, settings: &Settings, cells: &Cells) -> Result<()> {
    let mut known = cells.finished_policies();
    known.extend(settings.ordered_policies()?.into_iter().map(|policy| policy.name));
    let baseline = comparisons.baseline.iter().map(|name| ("--baseline", name));
    let primary = comparisons.primary.iter().flat_map(|(a, b)| [("--primary", a), ("--primary", b)]);
    if let Some((flag, name)) = baseline.chain(primary).find(|(_, name)| !known.contains(*name)) {
        let known = known.into_iter().collect::<Vec<_>>().join(", ");
        let what = format!("{flag}: expected a policy that is run, one of {known}, got {name}");
        return Err(Refused::new(what, format!("--policies has to name {name} too")).into());
    }
    Ok(())
}

/// The policies with all their parts, and warnings, before anything runs.
pub(crate) fn announce(settings: &Settings) -> Result<()> {
    let mut err = crate::terminal::err();
    for policy in &settings.ordered_policies()? {
        writeln!(err, "{policy}: {}", policy.policy)?;
        if policy.policy.position == PositionMode::Rewound {
            writeln!(
                err,
                "warning: {policy}: positions are rewound at each eviction, so new tokens can get smaller positions than kept \
                 keys; use it only to reproduce runs that did this"
            )?;
        }
    }
    Ok(())
}
