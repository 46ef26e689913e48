//! From a file, the environment and flags to one flat map of texts, each with its source.

use std::{collections::BTreeMap, path::Path};

use config::{Config, ConfigError, File, FileFormat, Value, ValueKind};

use super::{Mistake, Sources};

/// Double underscore after the prefix, too: with a single one, a variable like `RINGSAGA_HOME`, or
/// what Kubernetes makes for a service named `ringsaga`, would be taken for a key.
const PREFIX: &str = "RINGSAGA__";

/// A text and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Given {
    pub(super) text: String,
    pub(super) source: String,
}

pub(super) fn collect(sources: Sources) -> (BTreeMap<String, Given>, Vec<Mistake>) {
    let mut given = BTreeMap::new();
    let mut mistakes = Vec::new();
    if let Some(path) = &sources.file {
        let source = path.display().to_string();
        match read(path) {
            Ok(root) => flatten("", root, &source, &mut given),
            Err(error) => {
                // Only where: the parser goes on to show the line, which may hold a secret.
                let error = error.to_string();
                let place = error.lines().next().unwrap_or_default();
                mistakes.push(Mistake {
                    key: "config".to_owned(),
                    says: format!("can't be read: {place}"),
                    source: Some(source),
                });
            }
        }
    }
    for (name, value) in sources.environment {
        let name = name.to_string_lossy().into_owned();
        let Some(rest) = name.strip_prefix(PREFIX) else {
            continue;
        };
        let key = rest.to_lowercase().replace("__", ".");
        match value.into_string() {
            Ok(text) => {
                given.insert(key, Given { text, source: name });
            }
            Err(_) => mistakes.push(Mistake {
                key,
                source: Some(name),
                says: "is not UTF-8".to_owned(),
            }),
        }
    }
    for (key, text) in sources.flags {
        let source = "command line".to_owned();
        given.insert(key, Given { text, source });
    }
    (given, mistakes)
}

fn read(path: &Path) -> Result<Value, ConfigError> {
    // The format is said, not guessed from the name's ending.
    let file = File::from(path).format(FileFormat::Toml).required(true);
    Ok(Config::builder().add_source(file).build()?.cache)
}

fn flatten(prefix: &str, value: Value, source: &str, into: &mut BTreeMap<String, Given>) {
    let text = if let ValueKind::Table(table) = value.kind {
        for (name, value) in table {
            let key = match prefix {
                "" => name,
                prefix => format!("{prefix}.{name}"),
            };
            flatten(&key, value, source, into);
        }
        return;
    } else if let ValueKind::Array(items) = value.kind {
        let items: Vec<_> = items
            .into_iter()
            .map(|item| item.kind.to_string())
            .collect();
        items.join(",")
    } else {
        value.kind.to_string()
    };
    let source = source.to_owned();
    into.insert(prefix.to_owned(), Given { text, source });
}
