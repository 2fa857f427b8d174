/// Profiles as one self-contained HTML page: a sortable table and a flame graph.
//
// Owns:       nothing.
// Invariants: the data of the page are the objects that LaneMM.Speedscope writes.
// Callers:    any thread. HtmlAddHead, any number of HtmlAdd, HtmlAddTail, in this order.
unit LaneMM.Html;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Text, LaneMM.ProfileData;

/// Adds the page up to the first profile.
procedure HtmlAddHead(var Text: TText);
/// Adds one profile.
procedure HtmlAdd(var Text: TText; const Profile: TProfile);
/// Adds the page after the last profile.
procedure HtmlAddTail(var Text: TText);

implementation

uses
  LaneMM.Speedscope;

const
  // The page up to the data, a list of objects; the script that builds a tree; the one that draws.
  HeadLines: array[0..29] of PAnsiChar = (
    '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">',
    '<meta name="viewport" content="width=device-width"><title>LaneMM profile</title><style>',
    ':root{color-scheme:light dark}',
    'body{font:14px/1.4 system-ui,sans-serif;margin:1em auto;padding:0 1em;max-width:100em}',
    'h1{font-size:1.4em;margin:0}form{display:flex;flex-wrap:wrap;gap:.6em;align-items:center}',
    'select,input,button{font:inherit}#sum{margin:.6em 0}',
    'table{border-collapse:collapse;margin-top:1em;width:100%}',
    'td,th{padding:2px 10px;text-align:right;white-space:nowrap}',
    'th{cursor:pointer;border-bottom:1px solid;position:sticky;top:0;background:Canvas}',
    'th[aria-sort]::after{content:" \25be"}th[aria-sort=ascending]::after{content:" \25b4"}',
    'td:nth-child(n+4),th:nth-child(n+4){text-align:left}td:last-child{width:99%}',
    'td:nth-child(4){min-width:20em;max-width:45em;white-space:normal;overflow-wrap:anywhere}',
    'tbody tr:hover{background:#8883}',
    '#flame{position:relative;margin-top:1em}#flame div{position:absolute;height:18px;',
    'font:12px/18px system-ui,sans-serif;color:#000;overflow:hidden;white-space:nowrap;',
    'text-overflow:ellipsis;border:solid Canvas;border-width:0 1px 1px 0;box-sizing:border-box;',
    'text-indent:3px;cursor:pointer}#flame div:hover{filter:brightness(.85)}',
    '#flame .above{filter:saturate(.3)}',
    '</style></head><body><h1>LaneMM profile</h1>',
    '<form onsubmit="return false"><select id="what" title="profile"></select>',
    '<select id="value" title="sample value"></select>',
    '<input id="find" type="search" placeholder="search routines">',
    '<button id="all">whole program</button></form>',
    '<div id="sum"></div><div id="flame"></div>',
    '<table><thead><tr><th>self</th><th>self %</th><th>total</th><th>routine</th>',
    '<th>line</th></tr></thead><tbody id="rows"></tbody></table>',
    '<noscript>This page requires JavaScript.</noscript>',
    '<script>',
    '"use strict";',
    'const files=[');

  TreeLines: array[0..40] of PAnsiChar = (
    '];',
    'const $=id=>document.getElementById(id);',
    'const titles={contentions:"events",reallocs:"reallocations",',
    '  copied_space:"bytes copied",alloc_objects:"blocks allocated",alloc_space:"bytes allocated",',
    '  inuse_objects:"blocks in use",inuse_space:"bytes in use"};',
    'let file,profile,root,shown,order=2,isUp=false;',
    '// Amounts with their unit: the sizes of each, and its name.',
    'const units={bytes:[[2**30,"GB"],[2**20,"MB"],[1e4,"KB",2**10],[0,"B",1]]};',
    'function amount(n){',
    '  for(const [least,name,size=least] of units[profile.unit]||[])',
    '    if(n>=least)',
    '      return (n/size).toLocaleString("en",{minimumFractionDigits:size>1?1:0,',
    '        maximumFractionDigits:size>1?1:0})+" "+name;',
    '  return Math.round(n).toLocaleString("en");',
    '}',
    'const share=n=>(100*n/(root.total||1)).toFixed(1);',
    '// The tree of calls: a node for each routine and line, below its caller.',
    'function add(parent,frame){',
    '  const line=frame.line?frame.file+":"+frame.line:"",key=frame.name+"\n"+line;',
    '  if(!parent.calls.has(key))',
    '    parent.calls.set(key,{name:frame.name,line,key,total:0,self:0,calls:new Map(),parent});',
    '  return parent.calls.get(key);',
    '}',
    'function build(){',
    '  root={name:"whole program",line:"",key:"",total:0,self:0,calls:new Map(),parent:null};',
    '  profile.samples.forEach((stack,i)=>{',
    '    let node=root;node.total+=profile.weights[i];',
    '    for(const frame of stack){',
    '      node=add(node,file.shared.frames[frame]);node.total+=profile.weights[i];',
    '    }',
    '    node.self+=profile.weights[i];',
    '  });',
    '  shown=root;',
    '}',
    'const wanted=()=>$("find").value.toLowerCase();',
    'const isFound=node=>(node.name+" "+node.line).toLowerCase().includes(wanted());',
    'function hue(name){',
    '  let sum=7;',
    '  for(const sign of name)sum=(sum*31+sign.charCodeAt(0))%997;',
    '  return sum%50;',
    '}');

  PageLines: array[0..75] of PAnsiChar = (
    '// One bar, depth lines below the top; left and width are shares of the page.',
    'function bar(node,depth,left,width){',
    '  const div=document.createElement("div");',
    '  const color=wanted()&&isFound(node)?"#c8f":`hsl(${hue(node.name)},75%,70%)`;',
    '  div.style.cssText=`left:${left}%;width:${width}%;top:${depth*19}px;background:${color}`;',
    '  if(width>1.5)div.textContent=node.name+(node.line?" "+node.line:"");',
    '  div.title=`${node.name} ${node.line}\n${amount(node.total)}, ${share(node.total)} %`;',
    '  div.onclick=()=>{shown=node;draw();};',
    '  $("flame").append(div);',
    '  return div;',
    '}',
    '// The node and what it calls; returns the lines below the top that they take.',
    'function bars(node,depth,left,width){',
    '  if(width<.05)return depth;',
    '  bar(node,depth,left,width);',
    '  let deepest=depth+1;',
    '  for(const call of [...node.calls.values()].sort((a,b)=>b.total-a.total)){',
    '    const part=width*call.total/(node.total||1);',
    '    deepest=Math.max(deepest,bars(call,depth+1,left,part));left+=part;',
    '  }',
    '  return deepest;',
    '}',
    'function flame(){',
    '  const above=[];',
    '  for(let node=shown.parent;node;node=node.parent)above.unshift(node);',
    '  $("flame").textContent="";',
    '  above.forEach((node,depth)=>bar(node,depth,0,100).className="above");',
    '  $("flame").style.height=bars(shown,above.length,0,100)*19+"px";',
    '}',
    '// Sums by routine and line; a routine that calls itself counts once with its calls.',
    'function rows(){',
    '  const sums=new Map();',
    '  (function walk(node,above){',
    '    const sum=sums.get(node.key)||{...node,self:0,total:0};',
    '    sum.self+=node.self;if(!above.has(node.key))sum.total+=node.total;',
    '    sums.set(node.key,sum);const keys=new Set(above).add(node.key);',
    '    for(const call of node.calls.values())walk(call,keys);',
    '  })(shown,new Set());',
    '  sums.delete("");',
    '  const keys=[r=>r.self,r=>r.self,r=>r.total,r=>r.name,r=>r.line],key=keys[order];',
    '  const compare=(a,b)=>a<b?-1:a>b?1:0;',
    '  return [...sums.values()].filter(isFound).sort((a,b)=>',
    '    compare(key(a),key(b))*(isUp?1:-1)||b.total-a.total||compare(a.name,b.name));',
    '}',
    'function table(){',
    '  $("rows").textContent="";',
    '  for(const row of rows()){',
    '    const line=$("rows").insertRow();',
    '    [amount(row.self),share(row.self),amount(row.total),row.name,row.line]',
    '      .forEach(cell=>line.insertCell().textContent=cell);',
    '  }',
    '  heads.forEach((th,i)=>i==order?th.ariaSort=isUp?"ascending":"descending":',
    '    th.removeAttribute("aria-sort"));',
    '}',
    'function draw(){',
    '  $("sum").textContent=`${titles[profile.name]||profile.name}: ${amount(root.total)}`+',
    '    (shown==root?"":`; ${shown.name}: ${amount(shown.total)}, ${share(shown.total)} %`);',
    '  flame();table();',
    '}',
    'const heads=[...document.querySelectorAll("th")];',
    'heads.forEach((th,i)=>th.onclick=()=>{',
    '  isUp=i==order?!isUp:i>2;order=i;table();',
    '});',
    'function options(id,names,chosen){',
    '  $(id).textContent="";',
    '  names.forEach((name,i)=>$(id).add(new Option(titles[name]||name,i,i==chosen,i==chosen)));',
    '}',
    'function choose(){profile=file.profiles[$("value").value];build();draw();}',
    'function openFile(){',
    '  file=files[$("what").value];',
    '  options("value",file.profiles.map(p=>p.name),file.activeProfileIndex);choose();',
    '}',
    '$("what").onchange=openFile;$("value").onchange=choose;$("find").oninput=draw;',
    '$("all").onclick=()=>{shown=root;draw();};',
    'options("what",files.map(f=>f.name),files.length-1);openFile();',
    '</script></body></html>');

procedure AddLines(var Text: TText; const Lines: PPAnsiChar; Count: Cardinal);
var
  Index: Cardinal;
begin
  for Index := 0 to Count - 1 do
  begin
    TextAddChars(Text, Lines[Index]);
    TextAdd(Text, LineEnd);
  end;
end;

procedure HtmlAddHead(var Text: TText);
begin
  AddLines(Text, @HeadLines, Length(HeadLines));
end;

procedure HtmlAdd(var Text: TText; const Profile: TProfile);
begin
  SpeedscopeAdd(Text, Profile);
  TextAdd(Text, ','#10);
end;

procedure HtmlAddTail(var Text: TText);
begin
  AddLines(Text, @TreeLines, Length(TreeLines));
  AddLines(Text, @PageLines, Length(PageLines));
end;

end.
