"""The style of a report's page, light or dark as the browser is."""

from __future__ import annotations

from typing import Final

from thinkwell._display.html_style import STYLE as RUN_STYLE

PAGE_STYLE: Final = f"""
:root{{color-scheme:light dark;
 --page:light-dark(#f7f7f5,#131312);--sheet:light-dark(#fff,#1b1b1a);--line:light-dark(#e1e1dc,#343432);
 --text:light-dark(#1b1b19,#ecece7);--dim:light-dark(#5d5d57,#a8a8a0);--accent:light-dark(#4b45d6,#aab0ff);
 --ok:light-dark(#177331,#56c271);--bad:light-dark(#c02a2a,#ff8b82);--ask:light-dark(#8a5600,#e5b455);
 --now:light-dark(#0b62b8,#74b3f5);--bar:light-dark(#b9b6f0,#4a4a86);--rail:light-dark(#ecece8,#2b2b29)}}
*{{box-sizing:border-box}}
body{{margin:0;background:var(--page);color:var(--text);overflow-wrap:anywhere;
 font:14px/1.55 system-ui,-apple-system,'Segoe UI',Roboto,'Liberation Sans','DejaVu Sans',sans-serif}}
main{{max-width:1100px;margin:0 auto;padding:28px 16px 60px}}
h1{{font-size:22px;margin:0}}
h2{{font-size:16px;margin:32px 0 10px}}
h3{{font-size:14px;margin:22px 0 6px}}
p{{margin:2px 0}}
a{{color:var(--accent);text-underline-offset:2px}}
:focus-visible{{outline:2px solid var(--accent);outline-offset:2px;border-radius:4px}}
.dim{{color:var(--dim)}}
.passed{{color:var(--ok)}} .failed,.error{{color:var(--bad)}} .cancelled{{color:var(--ask)}}
.running{{color:var(--now)}} .waiting{{color:var(--dim)}}
.sheet{{background:var(--sheet);border:1px solid var(--line);border-radius:12px;padding:12px 14px;
 overflow-x:auto}}
.plots{{display:grid;grid-template-columns:repeat(auto-fit,minmax(280px,1fr));gap:12px}}
figure{{margin:0}}
.plots~.sheet{{margin-top:12px}}
.plots~p{{margin-top:8px}}
figcaption{{font-weight:600;margin-bottom:6px}}
.row{{display:grid;grid-template-columns:1fr auto;gap:0 12px;margin:8px 0}}
.row svg{{grid-column:1/-1;width:100%;height:14px;display:block}}
.row .figure{{font-variant-numeric:tabular-nums}}
.rail{{fill:var(--rail)}} .bar{{fill:var(--bar)}} .interval{{fill:var(--text)}}
table{{border-collapse:collapse}}
main th,main td{{text-align:left;vertical-align:top}}
.matrix :is(th,td),.chances :is(th,td){{padding:5px 16px 5px 0;border-bottom:1px solid var(--line)}}
.matrix tr:last-child>*,.chances tr:last-child>*{{border-bottom:0}}
.matrix th,.chances th{{font-weight:600}}
.matrix tbody th{{min-width:9em;max-width:24em}}
.matrix td{{min-width:6.5em}}
.marks{{display:flex;flex-wrap:wrap;gap:1px}}
.marks a{{text-decoration:none;font-weight:600;display:inline-grid;place-items:center;min-width:24px;
 min-height:24px;border-radius:6px}}
.marks a:hover{{background:var(--rail)}}
.chances td{{font-variant-numeric:tabular-nums;white-space:nowrap}}
details.trial{{background:var(--sheet);border:1px solid var(--line);border-radius:10px;margin:6px 0}}
.trial>summary{{cursor:pointer;padding:7px 12px;display:flex;flex-wrap:wrap;gap:0 10px;align-items:baseline}}
.trial>summary::before{{content:'▸';width:.8em}}
.trial>summary>span:first-child{{min-width:1em;text-align:center}}
.trial[open]>summary::before{{content:'▾'}}
.trial .facts{{margin-left:auto;color:var(--dim);font-variant-numeric:tabular-nums}}
.trial>div{{padding:2px 12px 12px;scroll-margin-top:54px}}
.trial .thinkwell-run{{border:0;padding:0;margin:0;max-width:none}}
.trial pre,.trial .thinkwell-run pre{{margin:4px 0;white-space:pre-wrap;max-height:none}}
.trial .thinkwell-run .tw-changed>span{{min-width:0}}
.label{{font-weight:600;margin-top:8px}}
@media (max-width:500px){{
 .trial .facts{{margin-left:1.8em}} .trial>div{{scroll-margin-top:98px}}
 main .matrix :is(th,td){{min-width:4.5em;padding-right:8px}}}}
@media print{{body{{background:none}}}}
{RUN_STYLE}"""
"""The colours are those of the page of `thinkwell.web`; the rules of the runs are those of notebooks."""
