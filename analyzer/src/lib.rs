//! Records signals of traces and correlates them with labels.
