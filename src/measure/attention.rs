//! Attention maps in numbers, as JSON and as a page to look at. Knows no network and no tensor: maps come in as
//! rows of weights.

use serde::Serialize;
use serde_json::json;

use crate::model::AttentionMaps;

use super::evaluate::plot::escape;
use super::page;

/// Largest difference of a row's sum from 1, of fp32 sums.
const SUM_TOLERANCE: f64 = 1e-3;

/// One head in numbers, means over its rows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HeadFigures {
    /// From 0.
    pub layer: usize,
    /// From 0.
    pub head: usize,
    /// Weight on the previous move: on the squares it left and reached, or on the token before.
    pub previous_move: Option<f64>,
    /// Kullback–Leibler divergence from looking at everything visible alike, in nats.
    pub divergence: f64,
    /// Weight on tokens that are no move.
    pub control: Option<f64>,
}

/// Checks that maps are what a softmax gives: sizes, rows that sum to 1, nothing seen of what comes later.
///
/// # Errors
/// Names the first head and row that is not.
pub fn check(maps: &AttentionMaps) -> Result<(), String> {
    let n = maps.labels.len();
    for (layer, heads) in maps.layers.iter().enumerate() {
        for (head, map) in heads.iter().enumerate() {
            let at = |row: usize| format!("layer {layer} head {head} row {row}");
            if n == 0 || map.len() != n * n {
                return Err(format!(
                    "layer {layer} head {head} has {} weights, expected {n} x {n}",
                    map.len()
                ));
            }
            for (row, weights) in map.chunks_exact(n).enumerate() {
                if let Some(bad) = weights.iter().find(|w| !(0.0..=1.001).contains(*w)) {
                    return Err(format!("{}: weight {bad}, expected 0 to 1", at(row)));
                }
                let sum: f64 = weights.iter().map(|&w| f64::from(w)).sum();
                if (sum - 1.0).abs() > SUM_TOLERANCE {
                    return Err(format!("{}: sums to {sum}, expected 1", at(row)));
                }
                if maps.causal
                    && let Some(column) = (row + 1..n).find(|&column| weights[column] != 0.0)
                {
                    return Err(format!(
                        "{}: sees column {column}, which comes later; expected 0",
                        at(row)
                    ));
                }
            }
        }
    }
    Ok(())
}

/// Every head in numbers. `last_move` are the columns of the squares that the last move left and reached, where
/// columns are squares.
pub fn figures(maps: &AttentionMaps, last_move: Option<[usize; 2]>) -> Vec<HeadFigures> {
    let n = maps.labels.len().max(1);
    let mut list = Vec::new();
    for (layer, heads) in maps.layers.iter().enumerate() {
        for (head, map) in heads.iter().enumerate() {
            let rows: Vec<&[f32]> = map.chunks_exact(n).collect();
            let mean = |of: &dyn Fn(usize, &[f32]) -> Option<f64>| {
                let values: Vec<f64> = rows
                    .iter()
                    .enumerate()
                    .filter_map(|(i, row)| of(i, row))
                    .collect();
                let count = values.len() as f64;
                (!values.is_empty()).then(|| values.iter().sum::<f64>() / count)
            };
            let previous_move = match (maps.causal, last_move) {
                (true, _) => mean(&|i, row| Some(f64::from(row[i.checked_sub(1)?]))),
                (false, Some([from, to])) => {
                    mean(&|_, row| Some(f64::from(*row.get(from)?) + f64::from(*row.get(to)?)))
                }
                (false, None) => None,
            };
            let divergence = mean(&|i, row| {
                let visible = if maps.causal { i + 1 } else { n };
                Some(
                    row[..visible]
                        .iter()
                        .map(|&w| f64::from(w))
                        .filter(|w| *w > 0.0)
                        .map(|w| w * (w * visible as f64).ln())
                        .sum(),
                )
            });
            let control = maps.control.as_ref().and_then(|control| {
                let share = |row: &[f32]| control.iter().map(|&c| f64::from(row[c])).sum();
                mean(&|_, row| Some(share(row)))
            });
            list.push(HeadFigures {
                layer,
                head,
                previous_move,
                divergence: divergence.unwrap_or(0.0),
                control,
            });
        }
    }
    list
}

/// What is said of the maps besides them.
#[derive(Clone, Debug, Serialize)]
pub struct Subject {
    /// The network's name.
    pub network: String,
    /// The position looked at, FEN.
    pub fen: String,
    /// The moves before it, UCI.
    pub moves: Vec<String>,
}

/// Everything as JSON: labels, figures, and maps by layer and head, row by row, rounded to six places.
pub fn to_json(subject: &Subject, maps: &AttentionMaps, figures: &[HeadFigures]) -> String {
    let rounded: Vec<Vec<Vec<f64>>> = maps
        .layers
        .iter()
        .map(|heads| heads.iter().map(|map| round(map, 1e6)).collect())
        .collect();
    json!({
        "network": subject.network,
        "fen": subject.fen,
        "moves": subject.moves,
        "labels": maps.labels,
        "causal": maps.causal,
        "heads": figures,
        "layers": rounded,
    })
    .to_string()
}

fn round(map: &[f32], places: f64) -> Vec<f64> {
    let round = |&w: &f32| (f64::from(w) * places).round() / places;
    map.iter().map(round).collect()
}

const STYLE: &str = "\
:root{--hot:31,111,139}@media(prefers-color-scheme:dark){:root{--hot:91,179,207}}
label{display:inline-block;margin:0 1rem .5rem 0}select{font:inherit}
.maps{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,20rem),1fr));gap:1.5rem}
canvas{width:100%;max-width:36rem;aspect-ratio:1;display:block;border:1px solid var(--line);image-rendering:pixelated}
th,td{white-space:nowrap}tr.on td{color:var(--b)}
";

const SCRIPT: &str = "\
const D=JSON.parse(document.getElementById('data').textContent),n=D.labels.length,$=i=>document.getElementById(i);
const fill=(e,c,f)=>{for(let i=0;i<c;i++){const o=document.createElement('option');o.value=i;o.textContent=f(i);e.append(o)}};
fill($('layer'),D.layers.length,i=>i+1);fill($('row'),n,i=>D.labels[i]);
const heads=()=>{const h=$('head').value||0;$('head').textContent='';fill($('head'),D.layers[$('layer').value].length,i=>i+1);$('head').value=Math.min(h,D.layers[$('layer').value].length-1)};
const cell=(c,x,y,s,v,m)=>{c.fillStyle='rgba('+getComputedStyle(document.documentElement).getPropertyValue('--hot')+','+(m>0?v/m:0)+')';c.fillRect(x*s,y*s,s,s)};
function draw(){const m=D.layers[$('layer').value][$('head').value],top=Math.max(...m),r=+$('row').value;
let c=$('all').getContext('2d'),s=$('all').width/n;c.clearRect(0,0,9999,9999);
for(let y=0;y<n;y++)for(let x=0;x<n;x++)cell(c,x,y,s,m[y*n+x],top);
c.strokeStyle=getComputedStyle(document.documentElement).getPropertyValue('--b');c.strokeRect(0,r*s,n*s,s);
if(!D.causal){c=$('one').getContext('2d');s=$('one').width/8;c.clearRect(0,0,9999,9999);const row=m.slice(r*n,r*n+n),best=Math.max(...row);
row.forEach((v,i)=>cell(c,i%8,7-(i>>3),s,v,best));c.lineWidth=3;c.strokeStyle=getComputedStyle(document.documentElement).getPropertyValue('--b');c.strokeRect((r%8)*s,(7-(r>>3))*s,s,s)}
const list=m.slice(r*n,r*n+n).map((v,i)=>[v,D.labels[i]]).sort((a,b)=>b[0]-a[0]).slice(0,8);
$('most').textContent=D.labels[r]+' looks at '+list.map(([v,l])=>l+' '+(100*v).toFixed(1)+' %').join(', ');
document.querySelectorAll('tbody tr').forEach(t=>t.classList.toggle('on',t.dataset.l===$('layer').value&&t.dataset.h===$('head').value))}
$('layer').onchange=()=>{heads();draw()};$('head').onchange=$('row').onchange=draw;
document.querySelectorAll('tbody tr').forEach(t=>t.onclick=()=>{$('layer').value=t.dataset.l;heads();$('head').value=t.dataset.h;draw()});
$('all').onclick=e=>{const b=e.target.getBoundingClientRect();$('row').value=Math.floor((e.clientY-b.top)/b.height*n);draw()};
if(!D.causal)$('one').onclick=e=>{const b=e.target.getBoundingClientRect();$('row').value=(7-Math.floor((e.clientY-b.top)/b.height*8))*8+Math.floor((e.clientX-b.left)/b.width*8);draw()};
matchMedia('(prefers-color-scheme: dark)').onchange=draw;heads();draw();
";

/// The page: selectors of layer, head and row, the whole map and, for squares, the row on a board.
pub fn page(subject: &Subject, maps: &AttentionMaps, figures: &[HeadFigures]) -> String {
    let coarse: Vec<Vec<Vec<f64>>> = maps
        .layers
        .iter()
        .map(|heads| heads.iter().map(|map| round(map, 1e4)).collect())
        .collect();
    let data = json!({ "labels": maps.labels, "causal": maps.causal, "layers": coarse })
        .to_string()
        .replace('<', "\\u003c");
    let board = match maps.causal {
        false => {
            "<div><p>The row on the board</p><canvas id=\"one\" width=\"512\" height=\"512\"></canvas></div>"
        }
        true => "",
    };
    let number = |x: Option<f64>| x.map_or("n/a".to_owned(), |x| format!("{:.1} %", 100.0 * x));
    let rows: String = figures
        .iter()
        .map(|f| {
            format!(
                "<tr data-l=\"{}\" data-h=\"{}\"><td>{}<td>{}<td>{}<td>{:.3}<td>{}</tr>\n",
                f.layer,
                f.head,
                f.layer + 1,
                f.head + 1,
                number(f.previous_move),
                f.divergence,
                number(f.control)
            )
        })
        .collect();
    let moves = match subject.moves.is_empty() {
        true => "no move before".to_owned(),
        false => escape(&subject.moves.join(" ")),
    };
    let body = format!(
        "<p>{fen}<br>{moves}</p>\n\
         <label>Layer <select id=\"layer\"></select></label><label>Head <select id=\"head\"></select></label>\
         <label>Row <select id=\"row\"></select></label>\n<p id=\"most\"></p>\n\
         <div class=\"maps\"><div><p>Rows look at columns; colours are relative to the head</p>\
         <canvas id=\"all\" width=\"1024\" height=\"1024\"></canvas></div>{board}</div>\n\
         <h2>Heads in numbers</h2>\n<p>Means over rows. Divergence from uniform in nats: 0 looks at everything alike, \
         {most:.2} at one thing only.</p>\n<div class=\"wide\"><table><thead><tr><th>layer<th>head<th>on the previous move\
         <th>divergence<th>on control tokens</tr></thead><tbody>\n{rows}</tbody></table></div>\n\
         <script id=\"data\" type=\"application/json\">{data}</script>\n<script>\n{SCRIPT}</script>\n",
        fen = escape(&subject.fen),
        most = (maps.labels.len().max(1) as f64).ln(),
    );
    page::page(&format!("Attention of {}", subject.network), STYLE, &body)
}
