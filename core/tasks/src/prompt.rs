//! Problem to prompt tokens.
//!
//! The instruction stands in the user's turn, after the problem and a line break. There is no system message unless one
//! is asked for: the R1 distillations are used without one, and models that need one have it in their template. A chat
//! prompt is encoded without adding special tokens, since its template has written them; a plain prompt gets what the
//! tokenizer adds. Either way there is at most the one begin-of-sequence.

use epikv_model::chat::{ChatTemplate, Message, RenderOptions};
use epikv_model::tokenizer::Tokenizer;

use crate::error::{Error, Result};

/// What a model is asked to do, besides solving the problem.
pub const INSTRUCTION: &str = r"Please reason step by step, and put your final answer within \boxed{}.";

/// The tag that opens a reasoning span.
pub const THINK_START: &str = "<think>";
/// The tag that closes a reasoning span.
pub const THINK_END: &str = "</think>";

epikv_words::words! {
    /// How a problem becomes a prompt.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub enum PromptStyle {
        /// Render the model's chat template.
        #[default]
        Chat = "chat",
        /// Feed the text of the problem as it is.
        Plain = "plain",
    }
}

/// Everything that a prompt depends on besides problem and model.
#[derive(Debug, Clone)]
pub struct PromptOptions {
    /// Chat or plain.
    pub style: PromptStyle,
    /// A system message, for chat prompts.
    pub system: Option<String>,
    /// What follows the problem in the user's turn, for chat prompts; may be empty.
    pub instruction: String,
    /// Variables of the template and the date it may ask for.
    pub render: RenderOptions,
}

impl Default for PromptOptions {
    fn default() -> Self {
        Self {
            style: PromptStyle::Chat,
            system: None,
            instruction: INSTRUCTION.to_owned(),
            render: RenderOptions::generation(),
        }
    }
}

/// A prompt, as text and as tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// The text, special tokens of the template included.
    pub text: String,
    /// The tokens.
    pub ids: Vec<u32>,
    /// True if the prompt ends inside a think tag that it opened, so that the model goes on with its reasoning.
    pub opens_think: bool,
}

impl Prompt {
    /// The prompt of a problem.
    ///
    /// # Errors
    /// If a chat prompt is asked for and the model has no template, or its template refuses.
    pub fn of_problem(
        problem: &str,
        tokenizer: &Tokenizer,
        template: Option<&ChatTemplate>,
        options: &PromptOptions,
    ) -> Result<Self> {
        match options.style {
            PromptStyle::Plain => Self::of_text(problem.to_owned(), tokenizer),
            PromptStyle::Chat => {
                let template = template.ok_or_else(|| Error::NoChatTemplate { place: tokenizer.place().to_owned() })?;
                let text = template.render(&messages(problem, options), &options.render)?;
                // Many templates trim what they are given.
                if !text.contains(problem.trim()) {
                    return Err(Error::ProblemLeftOut { place: template.place().to_owned() });
                }
                let ids = tokenizer.encode(&text, false)?;
                Ok(Self::assemble(text, ids))
            }
        }
    }

    /// A prompt that is text already: as it is, with what the tokenizer adds, but no second begin-of-sequence.
    pub fn of_text(text: String, tokenizer: &Tokenizer) -> Result<Self> {
        let ids = tokenizer.encode_once(&text)?;
        Ok(Self::assemble(text, ids))
    }

    /// What to say where a model cannot go on from the prompt of a problem; `None` where it can.
    pub fn refusal(&self, problem: &str, max_positions: usize) -> Option<String> {
        let n = self.ids.len();
        (n == 0 || n >= max_positions).then(|| {
            format!(
                "{problem}: expected a prompt of 1 to {} tokens, the model's context, got {n}",
                max_positions.saturating_sub(1)
            )
        })
    }

    fn assemble(text: String, ids: Vec<u32>) -> Self {
        Self { opens_think: text.trim_end().ends_with(THINK_START), text, ids }
    }
}

/// The conversation of a problem.
pub fn messages(problem: &str, options: &PromptOptions) -> Vec<Message> {
    let system = options.system.iter().map(|text| Message::new("system", text.as_str()));
    let user =
        if options.instruction.is_empty() { problem.to_owned() } else { format!("{problem}\n{}", options.instruction) };
    system.chain([Message::user(user)]).collect()
}

#[cfg(test)]
mod tests {
    use epikv_words::Hint;

    use super::*;

    fn parts() -> (Tokenizer, ChatTemplate) {
        (Tokenizer::builtin_bytes().unwrap(), ChatTemplate::builtin().unwrap())
    }

    #[test]
    fn the_instruction_follows_the_problem() {
        let mut options = PromptOptions::default();
        assert_eq!(messages("2+2?", &options), [Message::user(format!("2+2?\n{INSTRUCTION}"))]);
        options.system = Some("Be brief.".to_owned());
        options.instruction.clear();
        assert_eq!(messages("2+2?", &options), [Message::new("system", "Be brief."), Message::user("2+2?")]);
    }

    #[test]
    fn a_chat_prompt_has_one_bos_and_may_open_the_tag() {
        let (tokenizer, template) = parts();
        let prompt = Prompt::of_problem("2+2?", &tokenizer, Some(&template), &PromptOptions::default()).unwrap();
        assert!(prompt.opens_think && prompt.text.starts_with("<s><|user|>2+2?"));
        assert_eq!(prompt.ids.iter().filter(|id| Some(**id) == tokenizer.bos_id()).count(), 1);
        assert_eq!(tokenizer.decode(&prompt.ids).unwrap(), prompt.text);
        // Rendered text that comes back from a file is the same prompt.
        assert_eq!(Prompt::of_text(prompt.text.clone(), &tokenizer).unwrap(), prompt);
    }

    #[test]
    fn a_plain_prompt_is_the_problem() {
        let (tokenizer, template) = parts();
        let options = PromptOptions { style: PromptStyle::Plain, ..PromptOptions::default() };
        let prompt = Prompt::of_problem("2+2?", &tokenizer, Some(&template), &options).unwrap();
        assert_eq!((prompt.text.as_str(), prompt.ids.len(), prompt.opens_think), ("2+2?", 4, false));
    }

    #[test]
    fn without_a_template_chat_is_an_error_with_a_way_out() {
        let (tokenizer, _) = parts();
        let error = Prompt::of_problem("2+2?", &tokenizer, None, &PromptOptions::default()).unwrap_err();
        assert!(matches!(error, Error::NoChatTemplate { .. }));
        assert!(error.hint().unwrap().contains("--prompt-style plain"));
    }
}
