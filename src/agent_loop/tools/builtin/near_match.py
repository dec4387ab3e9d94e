"""What in a file is most like a text that was not found in it. Pure. Source: zidane, "nearest-match preview"."""

from difflib import SequenceMatcher

from agent_loop.tools.builtin.file_text import shown

MAX_LINES = 20_000
"""Of a file that are compared."""
MAX_COMPARED = 200
"""Characters of a line that are compared."""
MAX_SHOWN = 15
"""Lines of the preview."""
LEAST_LIKENESS = 0.6
"""From 0 to 1; what is less like it would mislead."""
SHOWN_WIDTH = 300


def preview_of(text: str, wanted: str) -> str:
    """The end of a sentence that says what is there instead; without anything like it, what to do."""
    lines = text.split("\n")[:MAX_LINES]
    sought = wanted.split("\n")
    anchor = next((number for number, line in enumerate(sought) if line.strip()), None)
    best = None if anchor is None else _most_like(lines, _comparable(sought[anchor]))
    if best is None or anchor is None:
        return "; read the file again and copy the text exactly"
    first = max(0, best - anchor)
    window = lines[first : first + min(len(sought), MAX_SHOWN)]
    preview = "\n".join(f"{number}\t{line[:SHOWN_WIDTH]}" for number, line in enumerate(window, first + 1))
    return f"; the nearest match is at line {first + 1}, copy it exactly:\n{shown(preview)}"


def _most_like(lines: list[str], sought: str) -> int | None:
    """The index of the line that is most like it."""
    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(sought)
    best, likeness = None, LEAST_LIKENESS
    for index, line in enumerate(lines):
        matcher.set_seq1(_comparable(line))
        if matcher.real_quick_ratio() >= likeness and matcher.quick_ratio() >= likeness:
            ratio = matcher.ratio()
            if ratio > likeness or (best is None and ratio >= likeness):
                best, likeness = index, ratio
        if likeness == 1:
            break
    return best


def _comparable(line: str) -> str:
    return line.strip()[:MAX_COMPARED]
