"""How the pages look: in the colours of the notebook that they stand in, light or dark."""

from __future__ import annotations

from typing import Final

STYLE: Final = """
.thinkwell-run{
 --tw-ok:light-dark(#1a7f37,#3fb950);--tw-bad:light-dark(#cf222e,#ff7b72);--tw-ask:light-dark(#9a6700,#d29922);
 --tw-now:light-dark(#0969da,#58a6ff);--tw-line:rgba(128,128,128,.28);--tw-soft:rgba(128,128,128,.09);
 --tw-mono:var(--jp-code-font-family,ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace);
 font:13px/1.5 var(--jp-content-font-family,system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif);
 color:var(--jp-content-font-color1,var(--vscode-foreground,inherit));
 max-width:62em;margin:.3em 0;padding:.6em .9em;border:1px solid var(--tw-line);border-radius:6px;
 overflow-wrap:anywhere}
[data-jp-theme-light=true] .thinkwell-run,.vscode-light .thinkwell-run{color-scheme:light}
[data-jp-theme-light=false] .thinkwell-run,.vscode-dark .thinkwell-run,
html[theme=dark] .thinkwell-run{color-scheme:dark}
.thinkwell-run .tw-head{display:flex;flex-wrap:wrap;gap:0 .6em;align-items:baseline}
.thinkwell-run .tw-head .tw-phase{margin-left:auto}
.thinkwell-run .tw-dim,.thinkwell-run .tw-time,.thinkwell-run .tw-thought{opacity:.68}
.thinkwell-run .tw-ok{color:var(--tw-ok)}.thinkwell-run .tw-bad{color:var(--tw-bad)}
.thinkwell-run .tw-ask{color:var(--tw-ask)}.thinkwell-run .tw-now{color:var(--tw-now)}
.thinkwell-run .tw-plan{display:flex;flex-wrap:wrap;gap:0 1.1em;margin:.35em 0 .1em}
.thinkwell-run .tw-plan .tw-over{opacity:.6;text-decoration:line-through}
.thinkwell-run .tw-plan .tw-here{font-weight:600}
.thinkwell-run .tw-line{margin-top:.5em;padding-top:.45em;border-top:1px solid var(--tw-line)}
.thinkwell-run details>summary{cursor:pointer;list-style:revert}
.thinkwell-run .tw-item{margin:.1em 0;padding:0}
.thinkwell-run .tw-row{display:inline-flex;gap:.55em;align-items:baseline;width:calc(100% - 1.4em);
 vertical-align:top}
.thinkwell-run div.tw-item>.tw-row{margin-left:1.1em;width:calc(100% - 1.45em)}
.thinkwell-run .tw-mark{flex:none;min-width:1em;text-align:center}
.thinkwell-run .tw-verb{flex:none;min-width:3.6em;opacity:.75}
.thinkwell-run .tw-target{font-family:var(--tw-mono);font-size:.93em}
.thinkwell-run .tw-time{margin-left:auto;flex:none;padding-left:1em;font-variant-numeric:tabular-nums}
.thinkwell-run .tw-counts{flex:none}
.thinkwell-run .tw-body{margin:.15em 0 .45em 1.5em}
.thinkwell-run .tw-text,.thinkwell-run .tw-heading{white-space:pre-wrap;margin:.3em 0}
.thinkwell-run .tw-heading{font-weight:600;margin-top:.6em}
.thinkwell-run .tw-thought .tw-text{font-style:italic}
.thinkwell-run .tw-said{margin:.35em 0 .35em 1.15em}
.thinkwell-run .tw-user{margin:.35em 0 .35em 1.15em;padding-left:.8em;border-left:3px solid var(--tw-line)}
.thinkwell-run pre{font:.93em/1.45 var(--tw-mono);color:inherit;background:var(--tw-soft);border:0;
 border-radius:4px;margin:.3em 0;padding:.4em .7em;overflow-x:auto;white-space:pre;max-height:32em}
.thinkwell-run pre.tw-wrap{white-space:pre-wrap}
.thinkwell-run code{font:.93em var(--tw-mono);color:inherit;background:var(--tw-soft);
 padding:.05em .3em;border-radius:3px}
.thinkwell-run pre.tw-diff{padding:.4em 0}
.thinkwell-run pre.tw-diff span{display:block;padding:0 .7em;min-width:max-content}
.thinkwell-run pre.tw-diff .tw-plus{background:rgba(46,160,67,.17)}
.thinkwell-run pre.tw-diff .tw-minus{background:rgba(248,81,73,.16)}
.thinkwell-run pre.tw-diff mark{color:inherit;background:rgba(46,160,67,.38);border-radius:2px}
.thinkwell-run pre.tw-diff .tw-minus mark{background:rgba(248,81,73,.36)}
.thinkwell-run ins{color:var(--tw-ok);text-decoration:none}
.thinkwell-run del{color:var(--tw-bad);text-decoration:none}
.thinkwell-run .tw-box{margin:.5em 0;padding:.45em .8em;border-left:3px solid var(--tw-ask);
 background:var(--tw-soft)}
.thinkwell-run .tw-box.tw-bad{border-left-color:var(--tw-bad)}
.thinkwell-run .tw-box.tw-bad>*{color:var(--jp-content-font-color1,var(--vscode-foreground,CanvasText))}
.thinkwell-run .tw-box.tw-bad>b:first-child{color:var(--tw-bad)}
.thinkwell-run table.tw-fields{border-collapse:collapse;font-size:1em;margin:.3em 0;color:inherit;border:0}
.thinkwell-run .tw-fields tr.tw-field:nth-child(n){background:none}
.thinkwell-run .tw-fields .tw-field>*{text-align:left;vertical-align:top;padding:.2em 1em .2em 0;border:0;
 border-bottom:1px solid var(--tw-line);background:none;color:inherit;white-space:pre-wrap;max-width:none}
.thinkwell-run .tw-fields .tw-field>th{font-weight:600;white-space:nowrap}
.thinkwell-run td pre{margin:0}
.thinkwell-run .thinkwell-run{border:0;padding:.2em 0 .2em 1.2em;margin:0}
"""
"""Every rule is for our pages only. The colours of words follow ``color-scheme``, which notebooks seldom set:
the marks of their themes are looked for. The colours of areas are thin enough for light and dark."""
