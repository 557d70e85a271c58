//! Pages of the documentation whose commands tests run.

/// The lines of the blocks of a page in the language `sh`, in order, without their indentation.
pub fn commands(page: &str) -> Vec<&str> {
    let mut commands = Vec::new();
    let mut inside = false;
    for line in page.lines().map(str::trim_start) {
        match line {
            "```sh" => inside = true,
            "```" => inside = false,
            command if inside => commands.push(command),
            _ => {}
        }
    }
    commands
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_the_lines_of_blocks_for_a_shell() {
        let page = "text\n```sh\none\ntwo   # 2\n```\n```text\nno\n```\n1. then\n   ```sh\n   three\n   ```";
        assert_eq!(commands(page), ["one", "two   # 2", "three"]);
    }
}
