"""The style of pages, in the colours of their notebook, light or dark."""

from __future__ import annotations

from typing import Final

STYLE: Final = """
[data-jp-theme-light=true] .thinkwell-run,.vscode-light .thinkwell-run{color-scheme:light}
[data-jp-theme-light=false] .thinkwell-run,.vscode-dark .thinkwell-run,
html[theme=dark] .thinkwell-run{color-scheme:dark}
.thinkwell-run{
 --tw-ok:light-dark(#1a7f37,#3fb950);--tw-bad:light-dark(#cf222e,#ff7b72);--tw-ask:light-dark(#9a6700,#d29922);
 --tw-now:light-dark(#0969da,#58a6ff);--tw-line:rgba(128,128,128,.28);--tw-soft:rgba(128,128,128,.09);
 --tw-text:var(--jp-content-font-color1,var(--vscode-foreground,CanvasText));
 --tw-mono:var(--jp-code-font-family,ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace);
 font:13px/1.5 var(--jp-content-font-family,system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif);
 color:var(--jp-content-font-color1,var(--vscode-foreground,inherit));
 max-width:62em;margin:.3em 0;padding:.6em .9em;border:1px solid var(--tw-line);border-radius:6px;
 overflow-wrap:anywhere;
 & .tw-head,& .tw-fold{display:flex;gap:0 .55em;align-items:baseline;margin:.1em 0}
 & .tw-head{flex-wrap:wrap}
 & summary{cursor:pointer}
 & .tw-fold::before{content:'';flex:none;width:.8em;font-size:.7em}
 & summary.tw-fold::before{content:'▶'}
 & [open]>summary.tw-fold::before{content:'▼'}
 & .tw-dim,& .tw-fold>.tw-end>:not([class]),& .tw-since,& .tw-gap,& .tw-host,& .tw-label,& .tw-divider,
 & .tw-verb,& .tw-type,& .tw-thinking,& .tw-thought-body,& blockquote{opacity:.7}
 & .tw-mark{flex:none;min-width:1em;text-align:center}
 & .tw-verb{flex:none;min-width:3.6em}
 & .tw-end{display:flex;gap:.8em;margin-left:auto;flex:none;font-variant-numeric:tabular-nums}
 & .tw-mark.tw-done,& .tw-plus{color:var(--tw-ok)}
 & .tw-mark.tw-failed,& .tw-minus{color:var(--tw-bad)}
 & .tw-mark:is(.tw-cancelled,.tw-denied),& .tw-title,& .tw-badge{color:var(--tw-ask)}
 & .tw-warning,& .tw-error,& .tw-answer{color:var(--tw-ask)}
 & .tw-mark.tw-running,& .tw-now{color:var(--tw-now)}
 & .tw-plus+.tw-minus{margin-left:.4em}
 & .tw-target,& .tw-mono,& .tw-address{font:.93em/1.45 var(--tw-mono)}
 & .tw-fold>.tw-target{display:-webkit-box;-webkit-box-orient:vertical;-webkit-line-clamp:2;overflow:hidden}
 & .tw-h2,& .tw-h3,& .tw-h4,& .tw-h5,& .tw-h6{font-weight:600;margin:.5em 0 .2em}
 & .tw-meter{font-weight:400;opacity:.5;margin-left:.6em;letter-spacing:-.1em}
 & .tw-timeline,& .tw-foot{margin-top:.5em;padding-top:.45em;border-top:1px solid var(--tw-line)}
 & .tw-body,& .tw-thought-body{margin:.15em 0 .45em 1.6em}
 & .tw-text,& .tw-bubble,& .tw-divider,& .tw-thinking{margin:.35em 0 .35em 1.15em}
 & blockquote{margin:.3em 0}
 & .tw-bubble,& blockquote{padding-left:.8em;border-left:3px solid var(--tw-line)}
 & .tw-thinking,& .tw-thought-body{font-style:italic}
 & p,& .tw-thinking,& .tw-box .tw-text{white-space:pre-wrap;margin:.3em 0}
 & ul,& ol{margin:.3em 0;padding-left:1.6em}
 & ol.tw-steps{display:flex;flex-wrap:wrap;gap:0 1.1em;list-style:none;padding:0}
 & .tw-steps .tw-mark{margin-right:.3em}
 & .tw-steps .tw-completed{opacity:.6;text-decoration:line-through}
 & .tw-steps .tw-in_progress{font-weight:600}
 & .tw-badge{margin-left:.4em}
 & pre{font:.93em/1.45 var(--tw-mono);color:inherit;background:var(--tw-soft);border:0;border-radius:4px;
  margin:.3em 0;padding:.4em .7em;overflow-x:auto;white-space:pre;max-height:32em}
 & pre.tw-wrap{white-space:pre-wrap}
 & code{font:.93em var(--tw-mono);color:inherit;background:var(--tw-soft);border-radius:3px;
  padding:.05em .3em}
 & pre.tw-changed{padding:.4em 0}
 & .tw-changed>span{display:block;padding:0 .7em;min-width:max-content}
 & .tw-changed>.tw-added{background:rgba(46,160,67,.17)}
 & .tw-changed>.tw-removed{background:rgba(248,81,73,.16)}
 & .tw-changed mark{color:inherit;background:rgba(46,160,67,.38);border-radius:2px}
 & .tw-changed .tw-removed mark{background:rgba(248,81,73,.36)}
 & .tw-path{display:flex;gap:.8em}
 & .tw-call .tw-diff:first-child:last-child>.tw-path{display:none}
 & .tw-box{margin:.5em 0;padding:.45em .8em;border-left:3px solid var(--tw-ask);background:var(--tw-soft)}
 & .tw-box.tw-failed{border-left-color:var(--tw-bad)}
 & .tw-title{font-weight:600}
 & .tw-title>.tw-dim{font-weight:400;color:var(--tw-text)}
 & .tw-keyword,& .tw-builtin{color:var(--tw-now)}
 & .tw-string,& .tw-number{color:var(--tw-ok)}
 & .tw-comment{opacity:.7;font-style:italic}
 & table{border-collapse:collapse;font-size:1em;margin:.3em 0;color:inherit;border:0}
 & tr:nth-child(n){background:none}
 & td,& th{text-align:left;vertical-align:top;padding:.2em 1em .2em 0;border:0;max-width:none;color:inherit;
  border-bottom:1px solid var(--tw-line);background:none;white-space:pre-wrap}
 & .tw-right{text-align:right}
 & .tw-middle{text-align:center}
 & .tw-value{display:grid;grid-template-columns:max-content 1fr;gap:.15em 1em;margin:.3em 0}
 & dt{font-weight:600;max-width:16em}
 & dd{margin:0;white-space:pre-wrap}
 & .tw-type{font-weight:400;font-size:.85em;margin-left:.5em}
 & .tw-dim{font-family:inherit}
 & .thinkwell-run{border:0;padding:.2em 0 .2em 1.2em;margin:0}
}
"""
"""Every rule applies to our pages only. Colours of text follow ``color-scheme``, which notebooks seldom set:
so the marks of their themes are checked. The colours of areas are transparent enough for light and dark."""
