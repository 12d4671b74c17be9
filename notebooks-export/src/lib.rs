//! Looks at records: the HTML trace viewer and data-set cards.
