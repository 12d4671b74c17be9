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
