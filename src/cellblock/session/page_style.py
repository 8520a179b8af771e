"""Style of a notebook's page: one style sheet, light and dark after the reader's setting."""

STYLE = """
:root { color-scheme: light dark; --back: #fff; --text: #1c1e21; --soft: #626a73; --line: #dfe3e8; --code: #f5f6f8;
  --good: #1a7f4b; --bad: #b42318; --busy: #9a6700; --warn: #fff5f4; --link: #0b5cad; }
@media (prefers-color-scheme: dark) { :root { --back: #15171a; --text: #e4e6e9; --soft: #979fa8; --line: #32373d;
  --code: #1e2125; --good: #4cc38a; --bad: #ff8f82; --busy: #e3b341; --warn: #2a1d1c; --link: #6cb2ff; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--text); font: 15px/1.55 system-ui, sans-serif; }
main { max-width: 60rem; margin: 0 auto; padding: 2rem 1.25rem 4rem; }
header { display: flex; align-items: baseline; gap: 1rem; border-bottom: 1px solid var(--line); }
h1 { margin: 0 0 .5rem; font-size: 1.35rem; font-weight: 600; }
header p, .note, .head { color: var(--soft); font-size: .82rem; }
header p { margin: 0; }
.cell { margin-top: 1.75rem; }
.head { display: flex; gap: .9rem; margin-bottom: .3rem; }
.number, .state { font-variant-numeric: tabular-nums; font-weight: 600; }
.number { color: var(--text); }
.completed .state { color: var(--good); }
.error .state, .timeout .state { color: var(--bad); }
.running .state { color: var(--busy); }
.undone { opacity: .6; }
.undone pre.source { text-decoration: line-through; }
pre { margin: 0; font: 13px/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; white-space: pre-wrap;
  overflow-wrap: anywhere; tab-size: 4; }
pre.source { padding: .7rem .9rem; background: var(--code); border: 1px solid var(--line); border-radius: 6px; }
.output { padding: .55rem .9rem 0; }
pre.stderr { color: var(--soft); }
pre.error { padding: .6rem .8rem; color: var(--bad); background: var(--warn); border-radius: 6px; }
.note { margin: .35rem 0 0; }
.lost { padding: .4rem .9rem 0; font-size: .9rem; }
.lost p, .lost ul { margin: 0; }
img { max-width: 100%; background: #fff; border-radius: 4px; }
iframe { width: 100%; max-height: 36rem; border: 1px solid var(--line); border-radius: 6px; resize: vertical; }
.table { overflow-x: auto; }
table { border-collapse: collapse; font-size: .87rem; }
th, td { padding: .22rem .7rem; border-bottom: 1px solid var(--line); text-align: left; white-space: nowrap; }
thead th { border-bottom-width: 2px; }
tbody th { color: var(--soft); font-weight: 400; }
td.n { text-align: right; font-variant-numeric: tabular-nums; }
.text { margin-top: 1.75rem; overflow-wrap: anywhere; }
.text :is(h2, h3, h4, h5, h6) { margin: 1.2em 0 .4em; line-height: 1.25; font-weight: 600; font-size: 1rem; }
.text h2 { font-size: 1.5rem; }
.text h3 { font-size: 1.25rem; }
.text h4 { font-size: 1.1rem; }
.text :is(p, ul, ol, blockquote, pre, table) { margin: 0 0 .7em; }
.text > :is(h2, h3, h4, h5, h6):first-child { margin-top: 0; }
.text :is(ul, ol) { padding-left: 1.6em; }
.text li :is(ul, ol) { margin-bottom: 0; }
.text blockquote { padding-left: 1em; border-left: 3px solid var(--line); color: var(--soft); }
.text code { padding: .1em .3em; background: var(--code); border-radius: 4px;
  font: .87em ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
.text pre { padding: .6rem .9rem; background: var(--code); border-radius: 6px; }
.text pre code { padding: 0; background: none; font-size: 1em; }
.text table { display: block; overflow-x: auto; }
.text :is(th, td) { color: inherit; white-space: normal; }
.text hr { border: 0; border-top: 1px solid var(--line); }
.text a { color: var(--link); }
@media print { main { max-width: none; padding: 0; } .cell { break-inside: avoid-page; } }
"""

FRAME_STYLE = """<!doctype html><meta charset="utf-8"><meta name="color-scheme" content="light dark"><style>
body { margin: 8px; font: 14px/1.5 system-ui, sans-serif; } table { border-collapse: collapse; }
th, td { padding: 3px 10px; text-align: left; } img, svg { max-width: 100%; }</style>
"""
