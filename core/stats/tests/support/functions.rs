//! The functions that golden cases name, in terms of the library.

use epikv_stats::agreement::rank_agreement;
use epikv_stats::bootstrap::bootstrap_interval;
use epikv_stats::circular_shift::circular_shift_test;
use epikv_stats::clustered::clustered_se;
use epikv_stats::dependent::{Test, dependent_correlations};
use epikv_stats::ema::ema;
use epikv_stats::mcnemar::mcnemar;
use epikv_stats::paired::paired_difference;
use epikv_stats::partial::partial_spearman;
use epikv_stats::pass_at_k::pass_at_k_over;
use epikv_stats::pool::{PoolWeight, pool_fisher};
use epikv_stats::rolling::rolling;
use epikv_stats::spearman::student_p;
use epikv_stats::trend::positional_trend;
use epikv_stats::{
    BinaryRanks, EmaInit, FisherMethod, RankScratch, RollingPoint, RollingSpec, Ties, adjust, fisher_interval,
    midranks, power, proportion, spearman,
};
use serde_json::{Value, json};

use crate::cases::{Failure, Inputs, column};

/// A defined number, its infinity as a string, or null.
fn value(x: Option<f64>) -> Value {
    match x {
        None => Value::Null,
        Some(x) if x.is_nan() => json!("a NaN that should have been undefined"),
        Some(x) if x.is_infinite() => json!(if x > 0.0 { "Infinity" } else { "-Infinity" }),
        Some(x) => json!(x),
    }
}

fn bounds(x: Option<(f64, f64)>) -> Value {
    x.map_or(Value::Null, |(lo, hi)| json!([lo, hi]))
}

/// Computes the function of a case; a field of the result for everything that a case may expect.
pub(crate) fn evaluate(function: &str, inputs: &Inputs<'_>) -> Result<Value, Failure> {
    match function {
        "midrank" => Ok(json!({ "ranks": midranks(&inputs.column("x")?) })),
        "spearman" => spearman_case(inputs),
        "spearman_binary" => spearman_binary(inputs),
        "fisher_ci" => fisher_ci(inputs),
        "pool_fisher" => pool_fisher_case(inputs),
        "dependent_corr_overlap" => dependent_corr_overlap(inputs),
        "adjust_pvalues" => adjust_pvalues(inputs),
        "partial_spearman" => partial_spearman_case(inputs),
        "causal_rolling" => causal_rolling(inputs),
        "ema" => ema_case(inputs),
        "mcnemar" => mcnemar_case(inputs),
        "pass_at_k" => pass_at_k_case(inputs),
        "proportion_ci" => proportion_ci(inputs),
        "paired_difference" => paired_difference_case(inputs),
        "clustered_se" => clustered_se_case(inputs),
        "bootstrap_interval" => bootstrap_interval_case(inputs),
        "rank_agreement" => rank_agreement_case(inputs),
        "circular_shift_test" => circular_shift_case(inputs),
        "power_corr" => power_corr(inputs),
        "positional_trend" => positional_trend_case(inputs),
        other => Err(format!("unknown function {other}")),
    }
}

/// `nan_policy` (or `nan`) = `omit` drops a pair with a `NaN`.
fn omits_nan(inputs: &Inputs<'_>) -> bool {
    inputs.word("nan_policy", "") == "omit" || inputs.word("nan", "") == "omit"
}

fn spearman_case(inputs: &Inputs<'_>) -> Result<Value, Failure> {
    let (mut x, mut y) = (inputs.column("x")?, inputs.column("y")?);
    if omits_nan(inputs) {
        (x, y) = x.into_iter().zip(y).filter(|(x, y)| !x.is_nan() && !y.is_nan()).unzip();
    }
    let rho = spearman(&x, &y);
    let p = rho.and_then(|r| student_p(r, x.len() as f64 - 2.0));
    Ok(json!({ "rho": value(rho), "p_t": value(p), "n": x.len() }))
}

fn spearman_binary(inputs: &Inputs<'_>) -> Result<Value, Failure> {
    let (mut x, mut labels) = (inputs.column("x")?, inputs.labels("labels")?);
    if omits_nan(inputs) {
        (x, labels) = x.into_iter().zip(labels).filter(|(x, _)| !x.is_nan()).unzip();
    }
    // Signals are f32; anything that is not goes through the general form.
    let narrow: Vec<f32> = x.iter().map(|&v| v as f32).collect();
    let exact = narrow.iter().zip(&x).all(|(&n, &x)| x.is_nan() || f64::from(n).to_bits() == x.to_bits());
    let ranks = if exact {
        BinaryRanks::from_f32(&narrow, &labels, &mut RankScratch::default())
    } else {
        BinaryRanks::from_f64(&x, &labels)
    };
    let n_pos = labels.iter().filter(|&&l| l).count();
    Ok(json!({
        "n": x.len(),
        "n_pos": n_pos,
        "n_neg": labels.len() - n_pos,
        "rank_sum_pos": value(ranks.map(|r| r.rank_sum_pos())),
        "tie_sum": value(ranks.map(|r| r.tie_sum as f64)),
        "u_pos": value(ranks.and_then(|r| r.u_pos())),
        "auc": value(ranks.and_then(|r| r.auc())),
        "rank_biserial": value(ranks.and_then(|r| r.rank_biserial())),
        "mwu_p_asymptotic_cc": value(ranks.and_then(|r| r.mann_whitney_p())),
        "rho": value(ranks.and_then(|r| r.rho())),
    }))
}

fn fisher_ci(inputs: &Inputs<'_>) -> Result<Value, Failure> {
    let method = match inputs.word("method", "plain").as_str() {
        "plain" | "fisher" => FisherMethod::Plain,
        "fieller" => FisherMethod::Fieller,
        "bonett_wright" | "bonettwright" | "bw" => FisherMethod::BonettWright,
        other => return Err(format!("unknown method {other}")),
    };
    let ci = fisher_interval(inputs.number("rho")?, inputs.count("n_eff")?, inputs.confidence()?, method);
    Ok(json!({
        "z": value(ci.z),
        "se_z": value(ci.se_z),
        "lo": value(ci.lo),
        "hi": value(ci.hi),
        "half_width_at_zero": value(ci.half_width_at_zero),
    }))
}

fn pool_fisher_case(inputs: &Inputs<'_>) -> Result<Value, Failure> {
    let weight = match inputs.word("weight", "equal").as_str() {
        "equal" => PoolWeight::Equal,
        "n_minus_3" => PoolWeight::NMinus3,
        "random" | "random_effects" | "dersimonian_laird" | "dl" => PoolWeight::RandomEffects,
        other => return Err(format!("unknown weight {other}")),
    };
    let rhos = inputs.column("rhos")?;
    let lengths = match inputs.counts("lengths") {
        Ok(lengths) => lengths,
        Err(_) if weight == PoolWeight::Equal => vec![0; rhos.len()],
        Err(why) => return Err(why),
    };
    // An undefined trace is left out, as the callers of the library do.
    let (rhos, lengths): (Vec<f64>, Vec<u64>) = rhos.into_iter().zip(lengths).filter(|(r, _)| !r.is_nan()).unzip();
    let pooled = pool_fisher(&rhos, &lengths, weight, inputs.confidence()?);
    Ok(json!({
        "k": rhos.len(),
        "k_clipped": pooled.map(|p| p.k_clipped),
        "mean_z": value(pooled.map(|p| p.mean_z)),
        "rho": value(pooled.map(|p| p.rho)),
        "mean_raw": value(pooled.map(|p| p.mean_raw)),
        "se_z": value(pooled.and_then(|p| p.se_z)),
        "lo": value(pooled.and_then(|p| p.lo)),
        "hi": value(pooled.and_then(|p| p.hi)),
        "tau2": value(pooled.and_then(|p| p.tau2)),
    }))
}

fn dependent_corr_overlap(inputs: &Inputs<'_>) -> Result<Value, Failure> {
    let n = inputs.count("n")?;
    let tests = dependent_correlations(inputs.number("r_xy")?, inputs.number("r_zy")?, inputs.number("r_xz")?, n);
    let statistic = |test: Option<Test>| value(test.map(|t| t.statistic));
    let p = |test: Option<Test>| value(test.map(|t| t.p));
    let (williams, meng, steiger) = tests.map_or((None, None, None), |t| (t.williams, t.meng, t.steiger));
    Ok(json!({
        "williams_t": statistic(williams),
        "williams_p": p(williams),
        "williams_df": n as f64 - 3.0,
        "meng_z": statistic(meng),
        "meng_p": p(meng),
        "steiger_z": statistic(steiger),
        "steiger_p": p(steiger),
    }))
}

fn adjust_pvalues(inputs: &Inputs<'_>) -> Result<Value, Failure> {
    let p = inputs.column("p")?;
    Ok(json!({
        "fdr_bh": adjust::benjamini_hochberg(&p),
        "fdr_by": adjust::benjamini_yekutieli(&p),
        "holm": adjust::holm(&p),
        "bonferroni": adjust::bonferroni(&p),
    }))
}

fn partial_spearman_case(inputs: &Inputs<'_>) -> Result<Value, Failure> {
    let (x, y) = (inputs.column("x")?, inputs.column("y")?);
    let controls = inputs.0["controls"]
        .as_array()
        .ok_or("no input controls")?
        .iter()
        .map(column)
        .collect::<Result<Vec<_>, _>>()?;
    let borrowed: Vec<&[f64]> = controls.iter().map(Vec::as_slice).collect();
    let partial = partial_spearman(&x, &y, &borrowed);
    Ok(json!({
        "r": value(partial.map(|p| p.r)),
        "n": x.len(),
        "k": controls.len(),
        "dof": x.len() as f64 - controls.len() as f64 - 2.0,
        "p": value(partial.and_then(|p| p.p)),
    }))
}

fn causal_rolling(inputs: &Inputs<'_>) -> Result<Value, Failure> {
    let spec = || {
        let spec = RollingSpec::new(inputs.count("window").unwrap_or(64) as usize)?
            .with_ddof(inputs.count("ddof").unwrap_or(0) as usize)
            .with_eps(inputs.number("eps").unwrap_or(1e-6))?
            .with_min_periods(inputs.count("min_periods").unwrap_or(1) as usize)?;
        Ok(if inputs.0["lagged"] == json!(true) { spec.lagged() } else { spec })
    };
    let spec = spec().map_err(|e: epikv_stats::Error| e.to_string())?;
    let points = rolling(&inputs.column("x")?, spec);
    let field =
        |f: fn(&RollingPoint) -> f64| -> Vec<Value> { points.iter().map(|p| value(p.as_ref().map(f))).collect() };
    Ok(json!({ "mean": field(|p| p.mean), "std": field(|p| p.sd), "z": field(|p| p.z) }))
}

fn ema_case(inputs: &Inputs<'_>) -> Result<Value, Failure> {
    let init = match inputs.word("init", "first").as_str() {
        "first" => EmaInit::First,
        "debiased" | "adjust" | "adjusted" => EmaInit::Debiased,
        "zero" | "zeros" => EmaInit::Zero,
        other => return Err(format!("unknown init {other}")),
    };
    let ema = ema(&inputs.column("x")?, inputs.number("decay")?, init).map_err(|e| e.to_string())?;
    Ok(json!({ "ema": ema }))
}

fn mcnemar_case(inputs: &Inputs<'_>) -> Result<Value, Failure> {
    let test = mcnemar(inputs.count("only_a")?, inputs.count("only_b")?);
    Ok(json!({
        "p_exact": test.p_exact,
        "p_mid": test.p_mid,
        "chi2": test.chi2,
        "p_chi2": test.p_chi2,
        "chi2_cc": test.chi2_cc,
        "p_cc": test.p_cc,
    }))
}

fn pass_at_k_case(inputs: &Inputs<'_>) -> Result<Value, Failure> {
    let correct = inputs.counts("correct")?;
    let n = match inputs.counts("n") {
        Ok(n) => n,
        Err(_) => vec![inputs.count("n")?; correct.len()],
    };
    let problems: Vec<(u64, u64)> = n.into_iter().zip(correct).collect();
    let got = pass_at_k_over(&problems, inputs.count("k")?);
    Ok(json!({
        "per_problem": got.as_ref().map(|g| g.per_problem.clone()),
        "mean": got.as_ref().map(|g| g.mean),
        "se_problems": got.and_then(|g| g.se_problems),
    }))
}

fn proportion_ci(inputs: &Inputs<'_>) -> Result<Value, Failure> {
    let (s, n, confidence) = (inputs.count("successes")?, inputs.count("n")?, inputs.confidence()?);
    Ok(json!({
        "wilson": bounds(proportion::wilson(s, n, confidence)),
        "beta": bounds(proportion::clopper_pearson(s, n, confidence)),
        "agresti_coull": bounds(proportion::agresti_coull(s, n, confidence)),
        "se": value(proportion::standard_error(s, n)),
    }))
}

fn paired_difference_case(inputs: &Inputs<'_>) -> Result<Value, Failure> {
    let got = paired_difference(&inputs.column("a")?, &inputs.column("b")?);
    Ok(json!({
        "mean_diff": value(got.map(|g| g.mean_diff)),
        "se": value(got.and_then(|g| g.se)),
        "p_signflip_exact": value(got.and_then(|g| g.p_signflip_exact)),
        "n_discordant": got.map_or(0, |g| g.n_discordant),
    }))
}

fn clustered_se_case(inputs: &Inputs<'_>) -> Result<Value, Failure> {
    let groups: Vec<String> =
        inputs.0["groups"].as_array().ok_or("no input groups")?.iter().map(Value::to_string).collect();
    let got = clustered_se(&inputs.column("values")?, &groups);
    Ok(json!({
        "mean": value(got.map(|g| g.mean)),
        "se_cr0": value(got.and_then(|g| g.se_cr0)),
        "se_cr1": value(got.and_then(|g| g.se_cr1)),
        "se_iid": value(got.and_then(|g| g.se_iid)),
    }))
}

fn bootstrap_interval_case(inputs: &Inputs<'_>) -> Result<Value, Failure> {
    let jackknife = inputs.column("jackknife").unwrap_or_default();
    let got = bootstrap_interval(
        inputs.number("theta_hat")?,
        &inputs.column("replicates")?,
        &jackknife,
        inputs.confidence()?,
    );
    Ok(json!({
        "percentile": bounds(got.map(|g| g.percentile)),
        "basic": bounds(got.map(|g| g.basic)),
        "bca": bounds(got.and_then(|g| g.bca)),
    }))
}

fn rank_agreement_case(inputs: &Inputs<'_>) -> Result<Value, Failure> {
    let ties = match inputs.word("ties", "lower_index").as_str() {
        "lower_index" | "older" => Ties::Older,
        "higher_index" | "newer" => Ties::Newer,
        other => return Err(format!("unknown ties {other}")),
    };
    let got = rank_agreement(&inputs.column("a")?, &inputs.column("b")?, inputs.count("k")? as usize, ties);
    let top = got.and_then(|g| g.top);
    Ok(json!({
        "spearman": value(got.and_then(|g| g.spearman)),
        "kendall_tau_b": value(got.and_then(|g| g.kendall_tau_b)),
        "overlap": top.map(|t| t.overlap),
        "precision": value(top.map(|t| t.precision)),
        "jaccard": value(top.map(|t| t.jaccard)),
        "expected_precision": value(top.map(|t| t.expected_precision)),
        "hypergeom_p": value(top.map(|t| t.hypergeom_p)),
    }))
}

fn circular_shift_case(inputs: &Inputs<'_>) -> Result<Value, Failure> {
    let x = inputs.column("x")?;
    let got = circular_shift_test(&x, &inputs.labels("labels")?);
    Ok(json!({
        "rho": value(got.map(|g| g.rho)),
        "n_shifts": x.len().saturating_sub(1),
        "count_ge": got.map(|g| g.count_ge),
        "p": value(got.map(|g| g.p)),
        "max_abs": value(got.map(|g| g.max_abs)),
    }))
}

fn power_corr(inputs: &Inputs<'_>) -> Result<Value, Failure> {
    let (rho, n) = (inputs.number("rho")?, inputs.count("n")?);
    let alpha = inputs.number_or("alpha", 0.05)?;
    Ok(json!({
        "power_fisher_z": value(power::power(rho, n, alpha)),
        "min_detectable_rho_80": value(power::min_detectable_rho(n, alpha, 0.8)),
        "n_for_80": power::n_for_power(rho, alpha, 0.8),
    }))
}

fn positional_trend_case(inputs: &Inputs<'_>) -> Result<Value, Failure> {
    let got = positional_trend(&inputs.column("x")?);
    Ok(json!({
        "spearman": value(got.and_then(|g| g.spearman)),
        "kendall_tau_b": value(got.and_then(|g| g.kendall_tau_b)),
        "theil_sen_slope": value(got.and_then(|g| g.theil_sen_slope)),
        "theil_sen_intercept": value(got.and_then(|g| g.theil_sen_intercept)),
        "lag1_autocorr": value(got.and_then(|g| g.lag1_autocorr)),
    }))
}
