"""What stands above each table of the report."""

FORWARD = """\
Median times in milliseconds. Ours is the forward with all that the page is computed from recorded; beside
it `transformers` runs its fused (sdpa) forward on the same weights in the same process, in the order a b b
a … Both compute the logits of the last position alone (smollm2, whisper-tiny.en) or none (minilm, rxnmapper).
N counts tokens; whisper-tiny.en's are those of its target, and every run encodes 30 s of sound, 1500
positions, from its spectrogram on. The ratio is the median over pairs, its quartiles in brackets. For
information: the eager forward with `output_attentions`, which other viewers need."""
MEMORY = """\
Resident memory in KB (1000 bytes) a token that one run adds, at its peak and after it while the result is
kept; each number from a fresh process that has loaded the model, touched every weight and run the same
length once. glibc is told to map blocks from 64 KiB on their own, so that memory counts only while it is in
use. The slope is that of the least-squares line of the peak over the lengths; off the line is the largest
distance from it, relative to the mean. N of whisper-tiny.en is the length of its target; 30 s of sound are
part of every run and are divided by N too, so that its slope alone says what a token adds."""
PICTURES = """\
From pasting a text that the server has not seen to all heads, the chosen head and its numbers painted, in
Chromium, server and Plotly loaded; medians. The forward is that of these very runs, as the server timed it.
BertViz: making the page from attention that is already there + opening it until its last line is painted;
its forward is not counted."""
SIZES = """\
For one text: bytes received on the wire, later requests for figures included, beside the size of BertViz's
page; and the peak of the renderer's resident memory, ours after the runs and after a dozen other heads."""
QUICK = """\
Another head: from the click to matrix, mask and numbers painted (two frames of it, 33 ms, are the floor).
Hover: script, style and layout of one move over the matrix."""
OPENINGS = """\
From opening the address to overview and matrix painted and heads that can be chosen; Plotly comes after
that. The server is warm."""
LESSONS = """\
Each page of the tour in a fresh browser, minilm and smollm2 loaded. From opening the address to the first
picture: every chart of the first lab, and what the widgets of its section draw, painted; quartiles in
brackets. Asked, answered and painted are the medians of its three parts: until the page asked the lab, until
it had the answer, until that was on the screen. The lab alone: the same request with no browser at work.
First visit: the first since the server was started, which also loads the lab's code, and counts in no other
column. Bytes and the renderer's peak of resident memory include Plotly, which comes after the picture."""
STARTS = """\
Seconds from the start of the process, the files in the system's cache: of one process that loads all models
one after the other, as `make run` does it, so that the later ones wait for the earlier; and of processes
that load one model alone. whisper-tiny.en is given a second of sound and writes the target itself."""
