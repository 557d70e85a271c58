//! Pages show what their commands print.

use std::fs;
use std::process::Command;

use crate::root;

const CALL: &str = "cargo run -p pingsix-gatewayctl -- ";

/// Each block of a command of ours that a block of its output follows.
fn examples(page: &str) -> Vec<(&str, &str)> {
    let blocks = page.split("```sh\n").skip(1);
    blocks
        .filter_map(|rest| {
            let (command, rest) = rest.split_once("\n```\n\n```text\n")?;
            let (output, _) = rest.split_once("```")?;
            Some((command.strip_prefix(CALL)?, output))
        })
        .collect()
}

/// Words as a shell reads them, with single quotes.
fn words(command: &str) -> Vec<String> {
    let parts = command.split('\'').enumerate();
    parts
        .flat_map(|(index, part)| match index % 2 {
            0 => part.split_whitespace().map(str::to_owned).collect(),
            _ => vec![part.to_owned()],
        })
        .collect()
}

#[test]
fn commands_print_what_the_pages_show() {
    let mut shown = 0;
    // A page writes files there, and those of an earlier run may have other names.
    for directory in
        ["target/migration", "target/migration-nginx", "target/migration-nginx-causes", "target/migration-go"]
    {
        let _ = fs::remove_dir_all(root().join(directory));
    }
    let pages = [
        "README.md",
        "docs/tutorial/first-routes.md",
        "docs/how-to/protect-a-route.md",
        "docs/how-to/from-apisix.md",
        "docs/how-to/from-ingress-nginx.md",
        "docs/how-to/from-the-go-controller.md",
    ];
    for page in pages {
        let text = fs::read_to_string(root().join(page)).unwrap();
        for (command, expected) in examples(&text) {
            let mut program = Command::new(env!("CARGO_BIN_EXE_pingsix-gatewayctl"));
            let output = program.args(words(command)).current_dir(root()).output().unwrap();
            assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{page}: {command}");
            shown += 1;
        }
    }
    assert_eq!(shown, 15);
}

#[test]
fn the_readme_shows_a_command_and_its_output_within_thirty_lines() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let beginning = readme.lines().take(30).collect::<Vec<_>>().join("\n");
    assert_eq!(examples(&beginning).len(), 1);
}
