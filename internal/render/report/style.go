package report

import (
	"fmt"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/render"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// style returns the style sheet of the page.
func style() string {
	return "\n:root{" + light + "}\n" + areaColours(render.PaletteOf) +
		"@media screen and (prefers-color-scheme:dark){\n:root{" + dark + "}\n" + areaColours(render.DarkPaletteOf) + "}\n" +
		render.InlineRules() + "\n" + rules
}

// areaColours sets the colours of each area.
func areaColours(of func(plan.Area) render.Palette) string {
	var b strings.Builder
	for _, a := range render.Areas() {
		c := of(a)
		fmt.Fprintf(&b, ".%s{--fill:%s;--stroke:%s;--ink:%s}\n", render.AreaClass(a), c.Fill, c.Line, c.Text)
	}
	return b.String()
}

const light = `color-scheme:light dark;--page:#ffffff;--raised:#f6f8fa;--rule:#d8dee4;--text:#1f2328;--muted:#59636e;--link:#0b57c2;--good:#1a7f37;--good-back:#dcf5e3;--bad:#c11f2c;--bad-back:#fdeaec;--odd:#8a5a00;--odd-back:#fdf1d8;--thread:#c11f2c`

const dark = `--page:#0f1318;--raised:#181d24;--rule:#303842;--text:#e6e9ed;--muted:#9aa4af;--link:#7ab4ff;--good:#56c274;--good-back:#12301c;--bad:#ff7b82;--bad-back:#3d181c;--odd:#e3b04b;--odd-back:#38280b;--thread:#ff7b82`

const rules = `
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;scroll-padding-top:1rem}
body{margin:0;background:var(--page);color:var(--text);font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,Helvetica,Arial,sans-serif}
main,footer{max-width:76rem;margin:0 auto;padding:0 1.5rem}
header{padding:2.5rem 0 0}
h1{margin:.1rem 0 1.25rem;font-size:2.1rem;line-height:1.2;letter-spacing:-.02em;overflow-wrap:anywhere}
h2{margin:0 0 .35rem;font-size:1.2rem;letter-spacing:-.01em}
section{margin:2.75rem 0 0}
p{margin:0}
a{color:var(--link);text-decoration-thickness:1px;text-underline-offset:2px}
:focus-visible{outline:2px solid var(--link);outline-offset:2px;border-radius:4px}
.eyebrow{color:var(--muted);font-size:.85rem;font-weight:600;letter-spacing:.06em;text-transform:uppercase}
.lead{color:var(--muted);max-width:46rem;margin-bottom:.9rem}
.pill{display:inline-block;vertical-align:.25em;padding:.15rem .7rem;border-radius:2rem;font-size:.85rem;font-weight:600;letter-spacing:0;line-height:1.5}
.pill.good{background:var(--good-back);color:var(--good)}
.pill.bad{background:var(--bad-back);color:var(--bad)}
.pill.odd{background:var(--odd-back);color:var(--odd)}
dl,dd,ul,ol{margin:0;padding:0}
.facts{display:flex;flex-wrap:wrap;gap:.75rem 2.5rem}
dt{color:var(--muted);font-size:.8rem}
.facts dd{overflow-wrap:anywhere}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(8.5rem,1fr));gap:.75rem;margin-top:1.75rem}
.card{padding:.85rem 1rem;border:1px solid var(--rule);border-radius:10px;background:var(--raised)}
.card b{display:block;font-size:1.55rem;line-height:1.25;font-weight:650;letter-spacing:-.02em;font-variant-numeric:tabular-nums}
.card span{color:var(--muted);font-size:.85rem;line-height:1.35;display:block}
.card.bad b{color:var(--bad)}
.card.odd b{color:var(--odd)}
.messages{padding:1rem 1.25rem;border-radius:10px;border-left:4px solid var(--odd);background:var(--odd-back)}
.messages.errors{border-color:var(--bad);background:var(--bad-back)}
.messages h2{font-size:1rem}
.messages ul{list-style:none}
.messages li{white-space:pre-wrap;overflow-wrap:anywhere;padding:.2rem 0}
.legend{display:flex;flex-wrap:wrap;gap:.3rem 1.1rem;list-style:none;color:var(--muted);font-size:.85rem;margin-bottom:.75rem}
.legend li{display:flex;align-items:center;gap:.4rem}
.legend i{width:.8rem;height:.8rem;border-radius:3px;background:var(--fill);border:1.5px solid var(--stroke)}
.graph.scroll{overflow-x:auto;border:1px solid var(--rule);border-radius:10px}
.name,.path a,.row dl,tbody th{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;font-size:.8rem}
.tag{white-space:nowrap;margin-left:.5em;padding:.05rem .4rem;border-radius:4px;background:var(--raised);border:1px solid var(--rule);color:var(--muted);font:600 .7rem/1.4 system-ui,sans-serif}
.rows{list-style:none;border-top:1px solid var(--rule);border-bottom:1px solid var(--rule)}
.axis,summary{display:grid;grid-template-columns:minmax(10rem,20rem) minmax(0,1fr) 5.5rem;column-gap:.9rem}
.axis svg{grid-column:2;display:block;overflow:visible}
.axis text{fill:var(--muted);font:11px system-ui,sans-serif;font-variant-numeric:tabular-nums}
summary{position:relative;height:26px;align-items:center;cursor:pointer;list-style:none}
summary::-webkit-details-marker{display:none}
summary:hover,.looked summary{background:var(--raised)}
.name{overflow:hidden;text-overflow:ellipsis;white-space:nowrap;color:var(--text);padding-left:.5rem;border-left:3px solid var(--stroke)}
.bars{display:block;height:26px;overflow:visible}
.grid{y:0;height:100%;fill:var(--rule);opacity:.6}
.others{y:calc(50% - .5px);height:1px;fill:var(--muted);opacity:.5}
.calling{y:calc(50% - 6px);height:12px;rx:2px;fill:var(--stroke)}
.aws{y:calc(50% - 6px);height:12px;rx:2px;fill:var(--fill);stroke:var(--stroke)}
.end{y:calc(50% - 9px);height:18px;fill:var(--bad)}
.legend .done{--fill:var(--good);--stroke:var(--good)}
.legend .failed{--fill:var(--bad);--stroke:var(--bad)}
.legend .not-started,.legend .in-progress{--fill:var(--odd);--stroke:var(--odd)}
.legend .unchanged{--fill:var(--raised);--stroke:var(--rule)}
.key{--fill:var(--raised);--stroke:var(--muted)}
.thread{y:0;height:100%;fill:var(--thread)}
.thread.below{y:50%;height:50%}
.thread.above{y:0;height:50%}
.took{text-align:right;white-space:nowrap;color:var(--muted);font-size:.8rem;font-variant-numeric:tabular-nums;padding-right:.4rem}
.took.failed{color:var(--bad);font-weight:600}
.took.not-started,.took.in-progress{color:var(--odd)}
.critical .name{font-weight:650}
.critical .took{color:var(--text);font-weight:600}
.looking .row:not(.looked):not(.needed) .name,.looking .row:not(.looked):not(.needed) .took{opacity:.4}
.needed .name{background:var(--fill);color:var(--ink)}
.row dl{margin:.2rem 0 .8rem .2rem;padding:.6rem .9rem;border-radius:8px;background:var(--raised);display:grid;gap:.4rem}
.row dl ul{list-style:none}
.row dt{font-family:system-ui,sans-serif}
.row dd{overflow-wrap:anywhere;white-space:pre-wrap}
.row dd ul{white-space:normal}
.path{list-style:none;counter-reset:n;max-width:46rem}
.path li{display:grid;grid-template-columns:1.6rem minmax(0,1fr) 5rem 7rem;gap:.6rem;align-items:baseline;padding:.28rem 0;border-bottom:1px solid var(--rule);counter-increment:n}
.path li::before{content:counter(n);color:var(--muted);font-size:.8rem;text-align:right}
.path a{overflow-wrap:anywhere}
.path .took{color:var(--text)}
.path .when{color:var(--muted);font-size:.8rem;text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
table{border-collapse:collapse;width:100%;max-width:52rem;font-size:.85rem}
thead th{color:var(--muted);font-weight:600;font-size:.8rem;text-align:right;padding:.3rem .5rem;border-bottom:1px solid var(--rule)}
thead th:first-child,tbody th{text-align:left}
tbody th{font-weight:400;overflow-wrap:anywhere}
tbody th,td{padding:.25rem .5rem;border-bottom:1px solid var(--rule);vertical-align:top}
td{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}
tr.service th{padding-top:1rem;font:600 .9rem/1.4 system-ui,sans-serif}
.calls{display:flex;flex-wrap:wrap;gap:3px;margin:.4rem 0 1.1rem}
.calls b{display:grid;gap:1px;width:9px}
.calls i,.key i{display:block;height:9px;border-radius:2px;background:var(--good)}
.calls i.bad{background:var(--bad);outline:2px solid var(--bad)}
.calls i.none{background:var(--rule)}
.legend i.same{background:var(--good);border-color:var(--good)}
.legend i.differs{background:var(--bad);border-color:var(--bad)}
.legend i.none{background:var(--rule);border-color:var(--rule)}
h3{margin:1.1rem 0 .3rem;font-size:.95rem}
.all{margin:.9rem 0 0;max-width:52rem;border:1px solid var(--rule);border-radius:10px;background:var(--raised)}
.all>summary{display:list-item;list-style:disclosure-closed inside;height:auto;padding:.55rem .9rem;font-weight:600}
.all[open]>summary{list-style-type:disclosure-open}
.all table{background:var(--page);border-radius:0 0 10px 10px}
.all ul{columns:16rem;list-style:none;padding:.4rem .9rem .8rem;font:.8rem/1.6 ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace}
.all li{overflow-wrap:anywhere}
td.good{color:var(--good)}
td.bad,.bad .item{color:var(--bad);font-weight:600}
.code{display:block;color:var(--odd);font-size:.75rem}
.item{display:block;color:var(--muted);font:.8rem/1.4 system-ui,sans-serif}
footer{padding-top:3rem;padding-bottom:2.5rem;color:var(--muted);font-size:.8rem}
.graph svg{display:block;height:auto}
.graph .title{display:none}
.graph .legend text{fill:var(--muted)}
.graph .legend path{stroke:var(--muted)}
.graph g.legend{display:inline}
.graph rect{fill:var(--fill);stroke:var(--stroke)}
.graph text{fill:var(--ink)}
.graph .arrow{stroke:var(--stroke)}
.graph .tip{fill:var(--stroke)}
.graph .unchanged{opacity:.55}
.graph .mark circle{stroke:var(--page);stroke-width:1.5}
.graph .mark path{fill:none;stroke:var(--page);stroke-width:1.8;stroke-linecap:round;stroke-linejoin:round}
.graph .done .mark circle{fill:var(--good)}
.graph .failed .mark circle{fill:var(--bad)}
.graph .not-started .mark circle,.graph .in-progress .mark circle{fill:var(--odd)}
@media (max-width:44rem){
main,footer{padding-left:1rem;padding-right:1rem}
header{padding-top:1.5rem}
h1{font-size:1.7rem}
.facts{display:grid;grid-template-columns:1fr 1fr;gap:.6rem 1rem}
.cards{grid-template-columns:repeat(3,minmax(0,1fr));gap:.5rem}
.card{padding:.6rem .7rem}
.card b{font-size:1rem}
.card span{font-size:.75rem}
.axis{display:block}
.row summary{grid-template-columns:minmax(0,1fr) auto;grid-template-rows:24px 18px;height:42px;align-items:end}
.bars{position:absolute;inset:0;width:100%;height:42px}
.name{position:relative;z-index:1}
.took{position:relative;z-index:1}
.bars .others{y:31px}
.bars .calling,.bars .aws{y:27px;height:9px}
.bars .end{y:24px;height:15px}
.thread{opacity:.55}
.thread.below{y:31px;height:11px}
.thread.above{y:0;height:31px}
.path li{grid-template-columns:1.2rem minmax(0,1fr) auto}
.path .when{grid-column:2 / 4;text-align:left;margin-top:-.5rem}
}
@page{size:A4;margin:14mm}
@media print{
body{font-size:10pt;print-color-adjust:exact;-webkit-print-color-adjust:exact}
.axis,summary{grid-template-columns:minmax(9rem,15rem) minmax(0,1fr) 5rem}
main,footer{max-width:none;padding:0}
header{padding-top:0}
.row,.path li,tr,.card{break-inside:avoid}
h2{break-after:avoid}
.graph.scroll{border:0;overflow:visible}
.graph svg{width:100%}
a{color:inherit;text-decoration:none}
}
@media (prefers-reduced-motion:no-preference){html{scroll-behavior:smooth}}
`
