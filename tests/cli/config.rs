//! `--config FILE.toml`.

use epikv_schemas::{Trace, read_table};

use crate::support::{Place, bytes};

#[test]
fn a_config_file_does_what_flags_do_and_flags_win() {
    let place = Place::new();
    place.problems();
    place.write("run.toml", "problems = 'problems.jsonl'\nmax_new = 40\nquiet = true\nmodel = 'random:3,layers=2'\n");
    place.epikv(&["trace", "--config", "run.toml", "--out", "a.parquet"]).ok();
    let typed = ["trace", "--problems", "problems.jsonl", "--max-new", "40", "--quiet", "--model", "random:3,layers=2"];
    place.epikv(&[&typed[..], &["--out", "b.parquet"]].concat()).ok();
    assert_eq!(bytes(&place.path("a.parquet")), bytes(&place.path("b.parquet")));
    place.epikv(&["trace", "--config", "run.toml", "--out", "c.parquet", "--max-new", "7"]).ok();
    assert_ne!(bytes(&place.path("a.parquet")), bytes(&place.path("c.parquet")));
}

#[test]
fn an_unknown_key_is_an_error() {
    let place = Place::new();
    place.write("run.toml", "max_nwe = 40\n");
    let ran = place.epikv(&["trace", "--config", "run.toml", "--out", "a.parquet"]);
    ran.refused(&["run.toml: unknown key \"max_nwe\"", "hint: did you mean \"max-new\"?"]);
    place.write("run.toml", "limit = 'x'\n");
    let ran = place.epikv(&["trace", "--config", "run.toml", "--out", "a.parquet"]);
    ran.refused(&["run.toml: limit: expected a whole number", "got \"x\"", "hint: `epikv trace --help`"]);
    place.write("broken.toml", "max_new = = 3");
    place.epikv(&["trace", "--config", "broken.toml", "--out", "a.parquet"]).refused(&["broken.toml", "TOML"]);
}

#[test]
fn policies_from_a_file_are_those_that_were_typed() {
    let place = Place::new();
    place.problems();
    let common =
        "model = 'random:0'\nproblems = 'problems.jsonl'\nquiet = true\nmax_new = 24\nprompt_style = 'plain'\n";
    let policies = "budgets = [16, 'prompt+50%']\npolicies = ['window', { name = 'h2o', trigger = 'every(3)', scope = 'global' }]\n";
    place.write("run.toml", format!("{common}{policies}"));
    place.epikv(&["evict", "--config", "run.toml", "--out", "a"]).ok();
    let typed = ["--policies", "window,h2o;trigger=every(3);scope=global", "--budgets", "16,prompt+50%", "--out", "b"];
    let flags = ["evict", "--problems", "problems.jsonl", "--quiet", "--max-new", "24", "--prompt-style", "plain"];
    place.epikv(&[&flags[..], &typed].concat()).ok();
    let runs = |folder: &str| bytes(&place.path(folder).join("eviction_runs.parquet"));
    assert_eq!(runs("a"), runs("b"));
    place.write("run.toml", format!("{common}budgets = 16\npolicies = [{{ name = 'h2o', triger = 'each' }}]\n"));
    let ran = place.epikv(&["evict", "--config", "run.toml", "--out", "c"]);
    ran.refused(&["unknown part \"triger\"", "hint: did you mean \"trigger\"?"]);
}

#[test]
fn a_template_gets_the_day_and_the_variables_that_it_asks_for() {
    let place = Place::new();
    let template = "{{ strftime_now('%d %b %Y') }}{% if loud %}!{% endif %} {{ greeting }} {{ messages[0].content }}";
    std::fs::write(place.tiny_reasoner().join("chat_template.jinja"), template).unwrap();
    place.problems();
    let flags = ["trace", "--model", "model", "--problems", "problems.jsonl", "--max-new", "2", "--quiet"];
    let trace = |more: &[&str]| place.epikv(&[&flags[..], more].concat());
    trace(&["--out", "none.parquet"]).refused(&["the chat template failed", "hint: ", "--template-date"]);
    let broken = trace(&["--out", "none.parquet", "--template-variables", "loud"]);
    assert!(broken.code() == 2 && broken.stderr().contains("expected NAME=VALUE"), "{}", broken.stderr());
    let typed = ["--template-date", "26 Jul 2024", "--template-variables", "loud=true;greeting=a = b"];
    trace(&[&typed[..], &["--out", "typed.parquet"]].concat()).ok();
    place
        .write("run.toml", "template_date = '26 Jul 2024'\ntemplate_variables = { loud = true, greeting = 'a = b' }\n");
    trace(&["--config", "run.toml", "--out", "file.parquet"]).ok();
    let (traces, made) = read_table::<Trace>(&place.path("typed.parquet")).unwrap();
    assert!(traces[0].prompt.as_deref().unwrap().starts_with("26 Jul 2024! a = b 2+2?"), "{:?}", traces[0].prompt);
    let run = made.get("run").unwrap();
    assert_eq!((&run["template_date"], &run["template_variables"]["loud"]), (&"26 Jul 2024".into(), &true.into()));
    assert_eq!(bytes(&place.path("typed.parquet")), bytes(&place.path("file.parquet")));
}
