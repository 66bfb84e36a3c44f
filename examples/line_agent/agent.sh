#!/bin/sh
# An agent: it writes one JSON object a line, and reads its prompts and answers line by line.
while IFS= read -r prompt; do
    printf '%s\n' '{"type":"progress","message":"Looking around","percent":10}'
    printf '%s\n' '{"type":"question","question":"What is the list called?","options":["Contents","Files"]}'
    IFS= read -r answer
    case $answer in *'"value":"Files"'*) title=Files ;; *) title=Contents ;; esac
    printf '%s\n' '{"type":"approval","description":"Write CONTENTS.md","risk_level":"low"}'
    IFS= read -r answer
    case $answer in
    *'"value":true'*)
        { printf '# %s\n\n' "$title"; for file in *.*; do printf -- '- %s\n' "$file"; done; } >CONTENTS.md
        printf '%s\n' '{"type":"result","text":"CONTENTS.md is written.","written":true}' ;;
    *)
        printf '%s\n' '{"type":"result","text":"Nothing is written.","written":false}' ;;
    esac
done
