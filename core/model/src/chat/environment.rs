//! Jinja as Transformers sets it up: what minijinja lacks or does differently is replaced, what Jinja lacks is removed.
//!
//! A template is the file of a stranger, so it runs within limits: steps, bytes and nesting, each with an error.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use minijinja::{Environment, Error, ErrorKind, UndefinedBehavior, Value};

use super::values::{LARGEST, invalid, within};
use super::{filters, json, methods, rewrite};
use super::{operators, python};
use crate::error::STRFTIME_NOW;

/// Steps of the engine that a rendering may take.
const MOST_STEPS: u64 = 2_000_000;
/// Bytes that literal text of a template may come to, over all its steps.
const LITERAL_BYTES: u64 = 4 << 30;
/// Calls of macros and loops inside each other.
const DEEPEST: usize = 100;
/// Memory for calls. Values inside values are freed by calls inside calls, as many as a template has steps.
const STACK_BYTES: usize = 512 << 20;

/// Renders `source`, or with no context only compiles it.
pub(super) fn run(source: &str, context: Option<Value>, date: Option<&str>) -> Result<String, Error> {
    let source = python::without_generation_tags(source);
    let source = rewrite::operators_as_calls(&source);
    let rendering = || {
        let environment = environment(&source, date);
        let template = environment.template_from_str(&source)?;
        let Some(context) = context else { return Ok(String::new()) };
        let mut out = Limited(Vec::new());
        template.render_captured_to(context, &mut out)?;
        String::from_utf8(out.0).map_err(|error| invalid(error.to_string()))
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
        let thread = thread.spawn_scoped(scope, || epikv_words::caught(rendering));
        let thread = thread.map_err(|error| invalid(format!("no thread to render in: {error}")))?;
        let outcome = thread.join().unwrap_or_else(|_| Err("the thread ended".to_owned()));
        outcome.unwrap_or_else(|panic| Err(invalid(format!("the template engine failed: {panic}"))))
    })
}

/// What has been written, up to the limit.
struct Limited(Vec<u8>);

impl Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.0.len() + bytes.len() > LARGEST {
            return Err(std::io::Error::other(format!("expected a prompt of at most {LARGEST} bytes, got more")));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn environment(source: &str, date: Option<&str>) -> Environment<'static> {
    let mut environment = Environment::new();
    let size = u64::try_from(source.len()).unwrap_or(u64::MAX).max(1);
    environment.set_fuel(Some(MOST_STEPS.min((LITERAL_BYTES / size).max(100_000))));
    environment.set_recursion_limit(DEEPEST);
    environment.set_trim_blocks(true);
    environment.set_lstrip_blocks(true);
    environment.set_undefined_behavior(UndefinedBehavior::Lenient);
    environment.set_unknown_method_callback(methods::call);
    // Counts what goes into variables as well, which no writer sees.
    let written = Arc::new(AtomicUsize::new(0));
    environment.set_formatter(move |out, _, value| {
        let text = python::text(value)?;
        within(written.fetch_add(text.len(), Ordering::Relaxed) + text.len())?;
        out.write_str(&text).map_err(Error::from)
    });
    filters::add(&mut environment);
    environment.add_filter("tojson", json::to_json);
    environment.add_function(rewrite::OPERATOR, operators::operator);
    environment.add_function(rewrite::TUPLE, operators::tuple);
    environment.add_function("cycler", operators::cycler);
    environment.add_function("joiner", minijinja_contrib::globals::joiner);
    environment.remove_global("debug");
    environment.add_function("raise_exception", |message: String| -> Result<String, Error> {
        Err(Error::new(ErrorKind::InvalidOperation, message))
    });
    if let Some(date) = date.map(str::to_owned) {
        environment.add_function(STRFTIME_NOW, move |_: String| date.clone());
    }
    environment
}
