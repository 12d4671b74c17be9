//! `--config FILE.toml`.

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
    assert_eq!(ran.code(), 2);
    assert!(ran.stderr().contains("--max-nwe"), "{}", ran.stderr());
    place.write("broken.toml", "max_new = = 3");
    place.epikv(&["trace", "--config", "broken.toml", "--out", "a.parquet"]).refused(&["broken.toml", "TOML"]);
}
