//! The text around the sections of a PEM file, and the notation of sections.

use super::super::der::{decode, encode};
use super::{Base, Odd};

/// The text around the sections, and the notation of sections.
#[expect(clippy::too_many_lines, reason = "it is a list of cases")]
pub(super) fn texts(base: &Base, other: &Base) -> Vec<Odd> {
    let Base { name, cert, key } = base;
    let (of_cert, of_key) = (decode(cert), decode(key));
    let label = "PRIVATE KEY";
    let mut all = Vec::new();
    let mut add = |what: &str, is_sound: bool, cert: &str, key: &str| {
        all.push(Odd { is_sound, ..Odd::new(format!("{name}, {what}"), cert, key) });
    };
    add("key twice", true, cert, &format!("{key}{key}"));
    add("another's key first", false, cert, &format!("{}{key}", other.key));
    add("another's key behind", true, cert, &format!("{key}{}", other.key));
    add("certificate before the key", true, cert, &format!("{cert}{key}"));
    add("key before the certificate", true, &format!("{key}{cert}"), key);
    add("another's certificate behind", true, &format!("{cert}{}", other.cert), key);
    add("another's certificate first", false, &format!("{}{cert}", other.cert), key);
    add("another's certificate first, as X509", false, &as_label(&other.cert, "X509 CERTIFICATE", cert), key);
    add(
        "another's certificate first, as trusted",
        false,
        &as_label(&other.cert, "TRUSTED CERTIFICATE", cert),
        key,
    );
    add("labelled X509", false, &cert.replace("CERTIFICATE", "X509 CERTIFICATE"), key);
    add("labelled trusted", false, &cert.replace("CERTIFICATE", "TRUSTED CERTIFICATE"), key);
    add("key labelled any", false, cert, &key.replace(label, "ANY PRIVATE KEY"));
    add("key labelled RSA", false, cert, &key.replace(label, "RSA PRIVATE KEY"));
    add("key labelled EC", false, cert, &key.replace(label, "EC PRIVATE KEY"));
    add("key labelled DSA", false, cert, &key.replace(label, "DSA PRIVATE KEY"));
    add("key labelled encrypted", false, cert, &key.replace(label, "ENCRYPTED PRIVATE KEY"));
    add(
        "a DSA key first",
        false,
        cert,
        &format!("-----BEGIN DSA PRIVATE KEY-----\nMAA=\n-----END DSA PRIVATE KEY-----\n{key}"),
    );
    add(
        "a broken key first",
        false,
        cert,
        &format!("-----BEGIN PRIVATE KEY-----\nMAA=\n-----END PRIVATE KEY-----\n{key}"),
    );
    add(
        "a broken certificate first",
        false,
        &format!("-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n{cert}"),
        key,
    );
    add(
        "a broken certificate behind",
        false,
        &format!("{cert}-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n"),
        key,
    );
    let headers = "-----BEGIN PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00000000000000000000000000000000\n\n";
    add("key said to be encrypted", false, cert, &key.replace("-----BEGIN PRIVATE KEY-----\n", headers));
    for (what, change) in [
        ("CRLF", (|text: &str| text.replace('\n', "\r\n")) as fn(&str) -> String),
        ("CR", |text| text.replace('\n', "\r")),
        ("no lines", |text| text.replace('\n', "")),
        ("no newline at the end", |text| text.trim_end().to_owned()),
        ("a byte order mark", |text| format!("\u{feff}{text}")),
        ("a line before", |text| format!("subject=CN = a.test\n{text}")),
        ("a line behind", |text| format!("{text}and so on\n")),
        ("text on the first line", |text| format!("text {text}")),
        ("an empty line inside", |text| text.replacen("-----\n", "-----\n\n", 1)),
        ("an empty line at the end", |text| text.replacen("\n-----END", "\n\n-----END", 1)),
        ("a line of spaces at the end", |text| text.replacen("\n-----END", "\n  \n-----END", 1)),
        ("an empty line in the middle", |text| {
            let middle = text.len() / 2 + text[text.len() / 2..].find('\n').unwrap_or_default();
            format!("{}\n{}", &text[..middle], &text[middle..])
        }),
        ("indented", |text| format!("  {}", text.trim_end().replace('\n', "\n  "))),
        ("indented but for the first", |text| text.replace('\n', "\n  ")),
        ("spaces behind lines", |text| text.replace('\n', "  \n")),
        ("tabs behind lines", |text| text.replace('\n', "\t\n")),
        ("four hyphens", |text| text.replace("-----", "----")),
        ("six hyphens", |text| text.replace("-----", "------")),
        ("another label at the end", |text| text.replace("-----END ", "-----END X")),
        ("no end", |text| text.split("-----END").next().unwrap_or_default().to_owned()),
        ("small letters", |text| text.to_lowercase()),
        ("padding in the middle", |text| text.replacen("\nM", "\n=M", 1)),
        ("too much padding", |text| text.replacen("\n-----END", "=\n-----END", 1)),
        ("an alien letter", |text| text.replacen("\nM", "\n!M", 1)),
        ("a comment inside", |text| text.replacen("-----\n", "-----\n# a comment\n", 1)),
        ("a header inside", |text| text.replacen("-----\n", "-----\nX-Note: something\n\n", 1)),
        ("a zero byte", |text| text.replacen("-----\n", "-----\n\0", 1)),
        ("half of it", |text| text[..text.len() / 2].to_owned()),
        ("a begin before it", |text| format!("-----BEGIN PRIVATE KEY-----\n{text}")),
        ("a begin of a certificate before it", |text| format!("-----BEGIN CERTIFICATE-----\n{text}")),
        ("an end before it", |text| format!("-----END PRIVATE KEY-----\n{text}")),
    ] {
        let is_sound = matches!(what, "CRLF" | "no newline at the end" | "a line before" | "a line behind");
        add(&format!("certificate with {what}"), is_sound, &change(cert), key);
        add(&format!("key with {what}"), is_sound, cert, &change(key));
    }
    for width in [1, 4, 48, 63, 65, 76, 77, 80, 100, 252, 253, 254, 255, 256, 300, 1000, 5000] {
        let is_sound = matches!(width, 48 | 76);
        add(
            &format!("certificate in lines of {width}"),
            is_sound,
            &encode("CERTIFICATE", &of_cert, width),
            key,
        );
        add(&format!("key in lines of {width}"), is_sound, cert, &encode(label, &of_key, width));
    }
    all
}

fn as_label(first: &str, label: &str, then: &str) -> String {
    format!("{}{then}", first.replace("CERTIFICATE", label))
}
