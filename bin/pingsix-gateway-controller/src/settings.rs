//! From flags, environment and file to a configuration.
//!
//! Precedence: flag, variable, file, default. Values are text until all sources are merged. So all sources share one
//! parser for each key, and all errors are reported at once, each under the name that its source uses.

mod endpoints;
mod file;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error as _;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use clap::builder::{Resettable, ValueParser};
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command, CommandFactory as _, FromArgMatches as _, Parser};
use garde::Validate as _;
use pingsix_translate::DataPlaneKey;
use strsim::levenshtein;

use crate::configuration::Configuration;
use crate::values::{SinkChoice, StatusTarget};

/// The prefix of variables.
const PREFIX: &str = "PINGSIX_GATEWAY_";

/// Serves the Gateways, routes and Ingresses of a Kubernetes cluster with PingSIX.
///
/// Watches a cluster, translates its objects to PingSIX's configuration, and serves the configuration over the protocol of
/// etcd.
///
/// Each option is a flag, --feed-tls-cert FILE; a variable, PINGSIX_GATEWAY_FEED_TLS_CERT; or a key in the file of
/// --config, cert below tls below feed. A flag overrides the variable, and the variable overrides the file. The values of
/// a repeatable option are a list in the file, and separated by commas in the variable. Times have units: 500ms, 15s, 1m 30s.
///
/// Exit codes: 0 after SIGTERM or SIGINT, 1 after a failure, 2 for a configuration that cannot be used.
#[expect(clippy::doc_markdown, reason = "the comments are help texts, not Markdown")]
#[derive(Debug, Parser)]
#[command(name = "pingsix-gateway-controller", version, max_term_width = 110)]
struct Arguments {
    /// A YAML file with options.
    #[arg(id = "config", value_name = "FILE")]
    config: Option<PathBuf>,

    /// Check the configuration, and end.
    #[arg(long, conflicts_with = "print_config")]
    check_config: bool,

    /// Print the configuration in force as a file for --config, and end. The output contains names of files with secrets,
    /// but no secrets.
    #[arg(long)]
    print_config: bool,

    #[command(flatten)]
    configuration: Configuration,
}

/// The command.
#[derive(Debug, PartialEq)]
pub(crate) struct Settings {
    pub(crate) task: Task,
    pub(crate) configuration: Configuration,
}

/// The action with the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    Run,
    Check,
    Print,
}

/// The reason for which the controller does not start.
#[derive(Debug)]
pub(crate) enum SettingsError {
    /// The arguments are unknown, or request help.
    Usage(clap::Error),
    /// All errors of keys.
    Keys(Vec<KeyError>),
}

/// An error of one key of the configuration. Displays as `--feed-address: message`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct KeyError {
    /// The key as it was given.
    name: String,
    message: String,
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.message)
    }
}

/// A key with a value.
#[derive(Debug)]
struct Given {
    /// The key as it was given.
    name: String,
    texts: Vec<String>,
}

/// The command line, with the flag and the variable that follow from the path of each key.
pub(crate) fn command() -> Command {
    // In the order of their declaration.
    let mut order = 0;
    Arguments::command().mut_args(|arg| {
        order += 1;
        let arg = arg.display_order(order);
        if !is_key(&arg) {
            return arg;
        }
        let flag = arg.get_id().as_str().replace('.', "-");
        let variable = format!("{PREFIX}{}", flag.replace('-', "_").to_uppercase());
        // The help text must not show the values of variables.
        arg.long(flag).env(variable).hide_env_values(true)
    })
}

/// Whether it has a value that can come from elsewhere.
fn is_key(arg: &Arg) -> bool {
    !matches!(arg.get_id().as_str(), "check_config" | "print_config" | "help" | "version")
}

impl Settings {
    /// Reads the arguments, the program's name first, with the variables and the file.
    pub(crate) fn read(arguments: impl IntoIterator<Item = OsString>) -> Result<Self, SettingsError> {
        let command = command();
        let any_text = command
            .clone()
            .mut_args(|arg| if is_key(&arg) { arg.value_parser(ValueParser::string()) } else { arg });
        let matches = any_text.try_get_matches_from(arguments).map_err(SettingsError::Usage)?;
        let variables = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
        let mut errors = unknown_variables(variables, &command);
        let mut given = from_command_line(&command, &matches);
        if let Some(file) = given.remove("config").and_then(|mut config| config.texts.pop()) {
            add_file(Path::new(&file), &command, &mut given, &mut errors);
        }
        errors.extend(unreadable(&command, &mut given));
        let arguments = readable(&command, &given).map_err(SettingsError::Usage)?;
        if let Err(report) = arguments.configuration.validate() {
            let known: BTreeSet<String> = errors.iter().map(|error| error.name.clone()).collect();
            let broken =
                report.iter().map(|(path, error)| key_error(&path.to_string(), error.message(), &given));
            errors.extend(broken.filter(|error| !known.contains(&error.name)));
        }
        errors.extend(taken_twice(&arguments.configuration, &given));
        errors.extend(sinks_that_clash(&arguments.configuration, &given));
        errors.extend(proved_twice(&arguments.configuration, &given));
        errors.extend(endpoints::endpoints_of_no_use(&arguments.configuration, &given));
        if !errors.is_empty() {
            errors.sort();
            errors.dedup();
            return Err(SettingsError::Keys(errors));
        }
        let task = match (matches.get_flag("check_config"), matches.get_flag("print_config")) {
            (true, _) => Task::Check,
            (false, true) => Task::Print,
            (false, false) => Task::Run,
        };
        Ok(Self { task, configuration: arguments.configuration })
    }
}

/// The values of flags and variables.
fn from_command_line(command: &Command, matches: &ArgMatches) -> BTreeMap<String, Given> {
    let mut given = BTreeMap::new();
    for arg in command.get_arguments().filter(|arg| is_key(arg)) {
        let id = arg.get_id().as_str();
        let name = match matches.value_source(id) {
            Some(ValueSource::CommandLine) => format!("--{}", arg.get_long().unwrap_or(id)),
            Some(ValueSource::EnvVariable) => {
                arg.get_env().map_or_else(|| id.to_owned(), |name| name.to_string_lossy().into_owned())
            }
            _ => continue,
        };
        let texts = matches.get_many::<String>(id).into_iter().flatten().cloned().collect();
        given.insert(id.to_owned(), Given { name, texts });
    }
    given
}

/// Variables with the prefix that are no option. Kubernetes makes some for Services of the namespace, such as
/// `PINGSIX_GATEWAY_FEED_SERVICE_HOST` and `PINGSIX_GATEWAY_FEED_PORT_2379_TCP`.
fn unknown_variables(names: impl Iterator<Item = String>, command: &Command) -> Vec<KeyError> {
    let is_of_service = |name: &str| {
        name.ends_with("_SERVICE_HOST")
            || name.contains("_SERVICE_PORT")
            || name.ends_with("_PORT")
            || name.contains("_PORT_")
    };
    let known: BTreeSet<String> = command
        .get_arguments()
        .filter(|arg| is_key(arg))
        .filter_map(|arg| Some(arg.get_env()?.to_str()?.to_owned()))
        .collect();
    let unknown =
        names.filter(|name| name.starts_with(PREFIX) && !known.contains(name) && !is_of_service(name));
    let errors = unknown.map(|name| {
        let message = no_such("option", &name, known.iter().map(String::as_str));
        KeyError { name, message }
    });
    errors.collect()
}

/// Adds the values of the file for keys without a flag or a variable.
fn add_file(path: &Path, command: &Command, given: &mut BTreeMap<String, Given>, errors: &mut Vec<KeyError>) {
    let of_file = |message| KeyError { name: path.display().to_string(), message };
    let keys = match file::read(path) {
        Ok(keys) => keys,
        Err(message) => return errors.push(of_file(message)),
    };
    for (key, value) in keys {
        let name = format!("{key} in {}", path.display());
        let arg = command.get_arguments().find(|arg| arg.get_id().as_str() == key);
        let Some(arg) = arg.filter(|arg| is_key(arg) && key != "config") else {
            let known = command.get_arguments().filter(|arg| is_key(arg)).map(|arg| arg.get_id().as_str());
            let message = no_such("key", &key, known.filter(|known| *known != "config"));
            errors.push(KeyError { name, message });
            continue;
        };
        let is_repeatable = matches!(arg.get_action(), clap::ArgAction::Append);
        let texts = match value {
            file::Value::One(text) => vec![text],
            file::Value::List(texts) if is_repeatable => texts,
            file::Value::List(_) => {
                errors.push(KeyError { name, message: "is a list, and should be one value".to_owned() });
                continue;
            }
        };
        if !texts.is_empty() {
            given.entry(key).or_insert(Given { name, texts });
        }
    }
}

/// The message about an unknown name, with the known name that differs from it in a few letters.
fn no_such<'k>(what: &str, name: &str, known: impl Iterator<Item = &'k str>) -> String {
    match known.map(|known| (levenshtein(name, known), known)).min() {
        Some((0..=2, known)) => format!("there is no such {what}; is {known} meant?"),
        Some(_) | None => format!("there is no such {what}"),
    }
}

/// Removes the keys whose values cannot be read, and returns their errors.
fn unreadable(command: &Command, given: &mut BTreeMap<String, Given>) -> Vec<KeyError> {
    let mut errors = Vec::new();
    for arg in command.get_arguments() {
        let id = arg.get_id().as_str();
        let Some(key) = given.get(id) else { continue };
        let before = errors.len();
        for text in &key.texts {
            // The value's own reader, without the other arguments.
            let alone = Command::new("value")
                .no_binary_name(true)
                .disable_help_flag(true)
                .arg(without_sources(arg.clone()));
            if let Err(error) = alone.try_get_matches_from([flag(arg, text)]) {
                let reason = error.source().map_or_else(|| "is no value".to_owned(), ToString::to_string);
                errors.push(KeyError { name: key.name.clone(), message: described(text, &reason) });
            }
        }
        if errors.len() > before {
            given.remove(id);
        }
    }
    errors
}

/// The message about a text. User information and the parameters of a URL are not repeated.
fn described(text: &str, reason: &str) -> String {
    if let Some((url, _)) = text.split_once('?').filter(|_| text.contains(':')) {
        return described(url, reason);
    }
    if text.contains('@') { reason.to_owned() } else { format!("\"{}\": {reason}", text.escape_debug()) }
}

/// Takes the text as one value, with commas and blanks.
fn without_sources(arg: Arg) -> Arg {
    arg.env(Resettable::Reset).value_delimiter(Resettable::Reset).default_value(Resettable::Reset)
}

fn flag(arg: &Arg, text: &str) -> String {
    format!("--{}={text}", arg.get_long().unwrap_or_default())
}

/// The configuration without what could not be read.
fn readable(command: &Command, given: &BTreeMap<String, Given>) -> Result<Arguments, clap::Error> {
    let plain = command.clone().no_binary_name(true).mut_args(|arg| {
        if is_key(&arg) { arg.env(Resettable::Reset).value_delimiter(Resettable::Reset) } else { arg }
    });
    let mut flags = Vec::new();
    for arg in command.get_arguments() {
        if let Some(key) = given.get(arg.get_id().as_str()) {
            flags.extend(key.texts.iter().map(|text| flag(arg, text)));
        }
    }
    Arguments::from_arg_matches(&plain.try_get_matches_from(flags)?)
}

/// An error of the value at a path of the configuration, such as `watch.namespaces[1]`.
fn key_error(path: &str, message: &str, given: &BTreeMap<String, Given>) -> KeyError {
    let path = path.replace('_', "-");
    let (id, index) = path.split_once('[').unwrap_or((&path, ""));
    let key = given.get(id);
    let index = index.trim_end_matches(']').parse::<usize>().ok();
    let text = key.and_then(|key| key.texts.get(index.unwrap_or_default()));
    KeyError {
        name: key.map_or_else(|| id.to_owned(), |key| key.name.clone()),
        message: text
            .map_or_else(|| message.to_owned(), |text| format!("\"{}\" {message}", text.escape_debug())),
    }
}

/// Files of certificates for a feed that the controller makes certificates for.
fn proved_twice(configuration: &Configuration, given: &BTreeMap<String, Given>) -> Vec<KeyError> {
    if configuration.feed.authority.secret.is_none() {
        return Vec::new();
    }
    let tls = &configuration.feed.tls;
    let files =
        [("feed.tls.cert", &tls.cert), ("feed.tls.key", &tls.key), ("feed.tls.client-ca", &tls.client_ca)];
    let files = files.iter().filter(|(_, file)| file.is_some());
    let message = "excludes feed.authority.secret, which is given as well";
    files.map(|(key, _)| key_error(key, message, given)).collect()
}

/// Targets that a data plane has twice, that several share though they are for one, and status pages that could confirm
/// nothing.
fn sinks_that_clash(configuration: &Configuration, given: &BTreeMap<String, Given>) -> Vec<KeyError> {
    let mut errors = Vec::new();
    let mut taken: BTreeMap<String, &Option<DataPlaneKey>> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for (index, SinkChoice { data_plane, target }) in configuration.sink.iter().enumerate() {
        let path = format!("sink[{index}]");
        if !seen.insert((data_plane, target.to_string())) {
            errors.push(key_error(&path, "is there twice", given));
        } else if target.is_for_one_scope()
            && taken.insert(target.to_string(), data_plane).is_some_and(|other| other != data_plane)
        {
            errors.push(key_error(&path, "is for one data plane, and another has it as well", given));
        }
    }
    let sinks = configuration.sinks();
    for (index, StatusTarget { data_plane, .. }) in configuration.status.url.iter().enumerate() {
        if sinks.read_from(data_plane).is_some_and(|target| target.kind() == "file") {
            let message = "confirms nothing: the data plane is published to a file (sink), which PingSIX reads when it starts";
            errors.push(key_error(&format!("status.url[{index}]"), message, given));
        }
    }
    errors
}

/// Addresses that two servers would listen on. Port 0 is a free one, each time another.
fn taken_twice(configuration: &Configuration, given: &BTreeMap<String, Given>) -> Vec<KeyError> {
    let Configuration { feed, health, debug, .. } = configuration;
    let addresses = [
        ("feed.address", Some(feed.address)),
        ("health.address", Some(health.address)),
        ("debug.address", debug.address.address()),
    ];
    let mut errors = Vec::new();
    let mut earlier: Vec<(&str, std::net::SocketAddr)> = Vec::new();
    for (id, address) in addresses {
        let Some(address) = address.filter(|address| address.port() != 0) else { continue };
        let overlapping = earlier.iter().find(|(_, other)| {
            let (one, two) = (other.ip(), address.ip());
            other.port() == address.port() && (one == two || one.is_unspecified() || two.is_unspecified())
        });
        if let Some((other, taken)) = overlapping {
            errors.push(key_error(id, &format!("is taken by {other}, which is {taken}"), given));
        }
        earlier.push((id, address));
    }
    errors
}
