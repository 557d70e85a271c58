// Adds a button to each command line that copies it. Without this script, the reader selects the text.
"use strict";
const status = document.createElement("p");
status.className = "hidden";
status.setAttribute("role", "status");
document.body.append(status);
for (const command of document.querySelectorAll(".command")) {
  const line = command.querySelector("code");
  if (!navigator.clipboard || !line) continue;
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(line.textContent);
      status.textContent = "The command is copied.";
      button.textContent = "Copied";
    } catch {
      status.textContent = "The browser does not allow the copy.";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
  command.append(button);
}
