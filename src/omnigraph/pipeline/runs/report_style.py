"""The style sheet of report pages."""

STYLE = """
:root { color-scheme: light dark; --bg: #f6f7f9; --card: #ffffff; --ink: #1a202c; --soft: #5a6577;
  --line: #e2e6ec; --ok: #2f8f6b; --bad: #d2691e; --info: #3b6fb6; --track: #e9edf2; }
@media (prefers-color-scheme: dark) { :root { --bg: #12161c; --card: #1b212a; --ink: #e8ecf2;
  --soft: #9aa7b8; --line: #2c3440; --ok: #4fbf94; --bad: #f0945a; --info: #7aa7e0;
  --track: #2a323d; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--bg); color: var(--ink); line-height: 1.45;
  font: 16px/1.45 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
main { max-width: 60rem; margin: 0 auto; padding: 1.5rem 1rem 3rem; }
h1 { font-size: 1.5rem; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 1.05rem; margin: 0 0 .8rem; }
header { display: flex; flex-wrap: wrap; gap: .4rem .8rem; align-items: center; }
.badge { border-radius: 99px; padding: .1rem .7rem; font-size: .85rem; font-weight: 600;
  color: var(--card); background: var(--ok); }
.badge.bad { background: var(--bad); }
.under { color: var(--soft); margin: .3rem 0 1.2rem; overflow-wrap: anywhere; }
.numbers { display: grid; grid-template-columns: repeat(auto-fit, minmax(8.5rem, 1fr)); gap: .7rem;
  margin-bottom: .9rem; }
.number, section { background: var(--card); border: 1px solid var(--line); border-radius: .7rem; }
.number { padding: .7rem .9rem; }
.number b { display: block; font-size: 1.35rem; white-space: nowrap;
  font-variant-numeric: tabular-nums; }
.number span { color: var(--soft); font-size: .85rem; }
section { padding: 1rem; margin-bottom: .9rem; }
.bar { display: grid; grid-template-columns: 10rem 1fr 16rem;
  gap: .2rem .7rem; align-items: center; margin: .35rem 0; font-size: .92rem; }
.bar .name { overflow-wrap: anywhere; }
.bar .value { text-align: right; color: var(--soft); font-variant-numeric: tabular-nums; }
svg { display: block; width: 100%; height: .8rem; border-radius: .3rem; }
.track { fill: var(--track); } .ok { fill: var(--ok); } .bad { fill: var(--bad); }
.info { fill: var(--info); }
.legend { display: flex; flex-wrap: wrap; gap: .3rem 1rem; margin: .6rem 0 0; padding: 0;
  list-style: none; font-size: .9rem; }
.legend svg { display: inline-block; width: .7rem; height: .7rem; margin-right: .35rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; }
th, td { text-align: left; padding: .35rem .7rem .35rem 0; border-bottom: 1px solid var(--line);
  vertical-align: top; }
th { color: var(--soft); font-weight: 500; white-space: nowrap; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
tr:last-child td { border-bottom: 0; }
code { font: .88em ui-monospace, SFMono-Regular, Menlo, Consolas, monospace;
  overflow-wrap: anywhere; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .3rem 1rem; margin: 0;
  font-size: .92rem; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: 0; font-size: .88rem; }
footer { color: var(--soft); font-size: .85rem; }
ol { margin: 0; padding-left: 1.2rem; } ol li + li { margin-top: .5rem; }
.command { display: block; background: var(--bg); border: 1px solid var(--line);
  border-radius: .4rem; padding: .4rem .6rem; margin-top: .25rem; user-select: all; }
p { margin: .7rem 0 0; } p.lead { margin: 0 0 .6rem; }
a { color: var(--info); overflow-wrap: anywhere; }
.delta { display: block; font-size: .8rem; }
@media (max-width: 34rem) { .bar { grid-template-columns: 1fr auto; }
  .bar .chart { grid-column: 1 / -1; grid-row: 2; } dl { grid-template-columns: 1fr; gap: 0; }
  dd { margin-bottom: .5rem; } main { padding: 1rem .7rem 2rem; }
  .numbers { grid-template-columns: 1fr 1fr; }
  thead { display: none; } table, tbody, tr, td { display: block; }
  tr { border-bottom: 1px solid var(--line); padding: .5rem 0; }
  tr:last-child { border-bottom: 0; }
  td, td.n { border: 0; padding: .1rem 0; display: grid; grid-template-columns: 7rem 1fr;
    gap: .6rem; text-align: left; white-space: normal; overflow-wrap: anywhere; }
  td::before { content: attr(data-label); color: var(--soft); }
  td:first-child { font-weight: 600; } td:empty { display: none; } }
"""
