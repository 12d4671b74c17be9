//! Rendering rules, one a test; whole templates are in the tokenizer's parity tests.

use epikv_words::Hint;

use super::*;
use crate::tokenizer::Tokenizer;

fn render(source: &str, options: &RenderOptions) -> Result<String> {
    let special = SpecialTokens::from_pairs([("bos_token", "<s>")]);
    ChatTemplate::new(source, special, "test".to_owned())?.render(&[Message::user("2+2?")], options)
}

fn text_of(error: &Error) -> String {
    let source = std::error::Error::source(error).map(ToString::to_string).unwrap_or_default();
    format!("{error}: {source}")
}

#[test]
fn blocks_are_trimmed_and_python_methods_exist() {
    let source = "{{ bos_token }}{% for m in messages %}\n  {% if loop.first %}\n{{ m['role'].upper() }}: {{ m.content.split('+')[-1] }}\n  {% endif %}\n{% endfor %}\n";
    assert_eq!(render(source, &RenderOptions::default()).unwrap(), "<s>USER: 2?\n");
}

#[test]
fn namespace_loop_controls_and_generation_tags() {
    let source = "{% set ns = namespace(n=0) %}{% for i in range(9) %}{% if i == 3 %}{% break %}{% endif %}{% set ns.n = ns.n + i %}{% endfor %}{%- generation -%} {{ ns.n }}{% endgeneration %}";
    assert_eq!(render(source, &RenderOptions::default()).unwrap(), "3");
}

#[test]
fn variables_reach_the_template() {
    let source =
        "{% if enable_thinking is defined and not enable_thinking %}off{% else %}on{% endif %}{{ tools is none }}";
    let mut options = RenderOptions::default();
    assert_eq!(render(source, &options).unwrap(), "onTrue");
    options.variables.insert("enable_thinking".to_owned(), false.into());
    assert_eq!(render(source, &options).unwrap(), "offTrue");
}

#[test]
fn the_date_is_an_argument() {
    let guarded = "{% if strftime_now is defined %}{{ strftime_now('%d %b %Y') }}{% else %}26 Jul 2024{% endif %}";
    let mut options = RenderOptions::default();
    assert_eq!(render(guarded, &options).unwrap(), "26 Jul 2024");
    let error = render("{{ strftime_now('%Y') }}", &options).unwrap_err();
    assert!(text_of(&error).contains("strftime_now"), "{}", text_of(&error));
    assert!(error.hint().is_some_and(|hint| hint.contains("--template-date")));
    options.date = Some("09 Feb 2026".to_owned());
    assert_eq!(render(guarded, &options).unwrap(), "09 Feb 2026");
}

#[test]
fn a_template_may_refuse() {
    let error = render("{{ raise_exception('roles must alternate') }}", &RenderOptions::default()).unwrap_err();
    assert!(text_of(&error).contains("roles must alternate"), "{}", text_of(&error));
    assert!(matches!(render("{% if %}", &RenderOptions::default()), Err(Error::ChatTemplate { .. })));
}

#[test]
fn the_built_in_prompt_opens_the_think_tag_and_has_one_bos() {
    let template = ChatTemplate::builtin().unwrap();
    let text = template.render(&[Message::user("2+2?")], &RenderOptions::generation()).unwrap();
    assert_eq!(text, "<s><|user|>2+2?<|assistant|><think>\n");
    let tokenizer = Tokenizer::builtin_bytes().unwrap();
    let ids = tokenizer.encode(&text, false).unwrap();
    assert_eq!(ids.iter().filter(|id| Some(**id) == tokenizer.bos_id()).count(), 1);
    assert_eq!(template.sha256().len(), 64);
}

#[test]
fn folders_with_named_templates_files_and_none() {
    let folder = tempfile::tempdir().unwrap();
    assert!(ChatTemplate::from_folder(folder.path()).unwrap().is_none());
    let config = folder.path().join("tokenizer_config.json");
    let named = r#"{"chat_template": [{"name": "tool_use", "template": "t"}, {"name": "default", "template": "d"}]}"#;
    std::fs::write(&config, named).unwrap();
    assert_eq!(ChatTemplate::from_folder(folder.path()).unwrap().unwrap().source(), "d");
    std::fs::write(folder.path().join("chat_template.jinja"), "file").unwrap();
    assert_eq!(ChatTemplate::from_folder(folder.path()).unwrap().unwrap().source(), "file");
    std::fs::remove_file(folder.path().join("chat_template.jinja")).unwrap();
    std::fs::write(&config, r#"{"chat_template": [{"name": "tool_use", "template": "t"}]}"#).unwrap();
    assert!(matches!(ChatTemplate::from_folder(folder.path()), Err(Error::Config { .. })));
}

/// Templates whose text differs from Jinja's, in a way that no chat template depends on.
const DIFFERENT: [&str; 6] = [
    "{{ messages | groupby('role') }}",
    "{{ {1: 2, none: 3, true: 4} | tojson }}",
    "{{ range(3) }}",
    "{{ self }}",
    "{{ {'items': 5}.items is callable }}",
    "{% set t = 1, 2 %}{{ t }}",
];

/// Templates that Jinja refuses and that render here.
const ACCEPTED: [&str; 5] = [
    "{{ undef | indent }}",
    "{{ 'a' < 1 }}",
    "{{ none < 1 }}",
    "{{ [3, 'a'] | sort }}",
    "{% for i in none %}x{% endfor %}",
];

/// Names of what is refused here and not by Jinja.
const REFUSED: [&str; 8] =
    ["encode", "wordwrap", "striptags", "filesizeformat", "'x y'} | urlencode", "attr", "pprint", "xmlattr"];

#[test]
fn small_templates_render_as_in_jinja() {
    let folder = format!("{}/../../tests/golden/model/chat", env!("CARGO_MANIFEST_DIR"));
    let read = |name: &str| std::fs::read_to_string(format!("{folder}/{name}")).unwrap();
    let context: serde_json::Value = serde_json::from_str(&read("context.json")).unwrap();
    let cases: Vec<(String, Option<String>)> = serde_json::from_str(&read("chat.json")).unwrap();
    assert!(cases.len() > 590);
    for (source, expected) in cases {
        let text = environment::run(&source, Some(Value::from_serialize(&context)), None);
        match (text, expected) {
            (Ok(text), Some(expected)) if DIFFERENT.contains(&source.as_str()) => {
                assert_ne!(text, expected, "{source}");
            }
            (Ok(text), Some(expected)) => assert_eq!(text, expected, "{source}"),
            (Ok(_), None) => assert!(ACCEPTED.contains(&source.as_str()), "{source}"),
            (Err(error), Some(_)) => assert!(REFUSED.iter().any(|name| source.contains(name)), "{source}: {error}"),
            (Err(_), None) => {}
        }
    }
}

#[test]
fn a_template_without_bounds_is_an_error() {
    let deep = format!("{{{{ {}1{} }}}}", "[".repeat(3000), "]".repeat(3000));
    let nested = format!("{}{}", "{% if 1 %}".repeat(1000), "{% endif %}".repeat(1000));
    for source in [
        "{% for i in range(100000) %}{% for i in range(100000) %}{% endfor %}{% endfor %}",
        "{% set n = namespace(x='a') %}{% for i in range(1000) %}{% set n.x = n.x + n.x %}{% endfor %}",
        "{% set n = namespace(x='a') %}{% for i in range(1000) %}{% set n.x = n.x ~ n.x %}{% endfor %}",
        "{% set n = namespace(x='a') %}{% for i in range(1000) %}{% set n.x = [n.x, n.x] | join %}{% endfor %}",
        "{% set n = namespace(x='a') %}{% for i in range(1000) %}{% set n.x = n.x.replace('a', 'b' ~ n.x ~ n.x) %}{% endfor %}",
        "{% set n = namespace(x='a') %}{% for i in range(1000) %}{% set x %}{{ n.x }}{{ n.x }}{% endset %}{% set n.x = x %}{% endfor %}",
        "{% set n = namespace(x='a') %}{% for i in range(1000) %}{% set n.x = [n.x] %}{% endfor %}{{ n.x }}",
        "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
        "{{ 'a' * 100000000000 }}",
        "{{ [1] * 100000000000 }}",
        "{{ '%99999999999d' % 3 }}",
        "{{ '{:99999999999}'.format(3) }}",
        "{{ 'a' | center(99999999999) }}",
        "{{ 'a' | indent(99999999999, true) }}",
        "{{ 2 ** 99999 }}",
        &deep,
        &nested,
    ] {
        let error = render(source, &RenderOptions::default()).unwrap_err();
        assert!(matches!(&error, Error::ChatTemplate { place, .. } if place == "test"), "{source}: {error}");
    }
}
