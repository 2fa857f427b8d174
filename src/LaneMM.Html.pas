/// Profiles as one page that needs nothing else: a table that can be sorted, a flame graph.
//
// Owns:       nothing.
// Invariants: the data of the page are the objects that LaneMM.Speedscope writes.
// Callers:    any thread.
unit LaneMM.Html;

{$I LaneMM.inc}

interface

uses
  LaneMM.Text, LaneMM.ProfileData;

/// Adds what stands before the profiles.
procedure HtmlAddHead(var Text: TText);
/// Adds one profile.
procedure HtmlAdd(var Text: TText; const Profile: TProfile);
/// Adds what stands behind the profiles.
procedure HtmlAddTail(var Text: TText);

implementation

uses
  LaneMM.Speedscope;

const
  HeadLines: array[0..16] of PAnsiChar = (
    '<!DOCTYPE html><html><head><meta charset="utf-8"><title>LaneMM profile</title><style>',
    'body{font:14px sans-serif;margin:1em}select,input{font:inherit;margin-right:1em}',
    'table{border-collapse:collapse;margin-top:1em}td,th{padding:2px 8px;text-align:right}',
    'th{cursor:pointer;border-bottom:1px solid}td:last-child,th:last-child{text-align:left}',
    'tr:hover{background:#eee}#flame{position:relative;margin-top:1em}',
    '#flame div{position:absolute;height:17px;font:11px sans-serif;line-height:17px;',
    'overflow:hidden;white-space:nowrap;border-right:1px solid #fff;box-sizing:border-box;',
    'padding-left:2px;cursor:pointer}#flame div:hover{filter:brightness(.9)}',
    '</style></head><body><h1>LaneMM profile</h1>',
    '<select id="what"></select><select id="value"></select>',
    '<input id="find" placeholder="find a routine"><button id="all">all</button>',
    '<div id="flame"></div><table><thead><tr><th>self</th><th>self %</th><th>with calls</th>',
    '<th>routine</th></tr></thead><tbody id="rows"></tbody></table>',
    '<noscript>This page draws itself with JavaScript.</noscript>',
    '<script>',
    '"use strict";',
    'const files=[');

  TailLines: array[0..52] of PAnsiChar = (
    '];',
    'const $=id=>document.getElementById(id);',
    'let file,profile,root,shown,order=0;',
    'const label=f=>f.name+(f.line?" "+f.file+":"+f.line:"");',
    'const number=n=>Math.round(n).toLocaleString("en");',
    'function amount(n){',
    '  if(profile.unit!="bytes"||n<1e4)return number(n);',
    '  return n<2**20?(n/2**10).toFixed(1)+" KB":n<2**30?(n/2**20).toFixed(1)+" MB":',
    '    (n/2**30).toFixed(2)+" GB";',
    '}',
    'function build(){',
    '  root={name:"all",total:0,self:0,calls:new Map(),parent:null};',
    '  profile.samples.forEach((stack,i)=>{',
    '    const weight=profile.weights[i];let node=root;node.total+=weight;',
    '    for(const frame of stack){',
    '      const name=label(file.shared.frames[frame]);',
    '      if(!node.calls.has(name))',
    '        node.calls.set(name,{name,total:0,self:0,calls:new Map(),parent:node});',
    '      node=node.calls.get(name);node.total+=weight;',
    '    }',
    '    node.self+=weight;',
    '  });',
    '  shown=root;',
    '}',
    'function bar(node,depth,left,width,box){',
    '  if(width<.1)return depth;',
    '  const div=document.createElement("div");let deepest=depth;',
    '  const find=$("find").value.toLowerCase();',
    '  const hue=node.name.split("").reduce((a,c)=>(a*31+c.charCodeAt(0))%50,7);',
    '  const isFound=find&&node.name.toLowerCase().includes(find);',
    '  div.style.cssText=`left:${left}%;width:${width}%;top:${depth*18}px;background:`',
    '    +(isFound?"#c8f":`hsl(${hue},80%,70%)`);',
    '  div.textContent=node.name;div.title=node.name+"\n"+amount(node.total);',
    '  div.onclick=()=>{shown=node==shown&&node.parent?node.parent:node;draw();};',
    '  box.appendChild(div);',
    '  for(const call of [...node.calls.values()].sort((a,b)=>b.total-a.total)){',
    '    const part=width*call.total/(node.total||1);',
    '    deepest=Math.max(deepest,bar(call,depth+1,left,part,box));left+=part;',
    '  }',
    '  return deepest;',
    '}',
    'function rows(){',
    '  const sums=new Map();',
    '  (function walk(node,above){',
    '    const sum=sums.get(node.name)||{name:node.name,self:0,total:0};',
    '    sum.self+=node.self;if(!above.has(node.name))sum.total+=node.total;',
    '    sums.set(node.name,sum);const names=new Set(above).add(node.name);',
    '    for(const call of node.calls.values())walk(call,names);',
    '  })(shown,new Set());',
    '  const keys=[r=>-r.self,r=>-r.self,r=>-r.total,r=>r.name];',
    '  const key=keys[order],find=$("find").value.toLowerCase();',
    '  return [...sums.values()].filter(r=>r.name.toLowerCase().includes(find))',
    '    .sort((a,b)=>key(a)<key(b)?-1:1);');
  LastLines: array[0..23] of PAnsiChar = (
    '}',
    'function draw(){',
    '  $("flame").textContent="";$("rows").textContent="";',
    '  $("flame").style.height=(bar(shown,0,0,100,$("flame"))+1)*18+"px";',
    '  for(const row of rows()){',
    '    const line=$("rows").insertRow();',
    '    const share=(100*row.self/(root.total||1)).toFixed(1);',
    '    for(const cell of [amount(row.self),share,amount(row.total),row.name])',
    '      line.insertCell().textContent=cell;',
    '  }',
    '}',
    'function options(id,names,chosen){',
    '  $(id).textContent="";',
    '  names.forEach((name,i)=>$(id).add(new Option(name,i,i==chosen,i==chosen)));',
    '}',
    'function choose(){profile=file.profiles[$("value").value];build();draw();}',
    'function open(){file=files[$("what").value];',
    '  options("value",file.profiles.map(p=>p.name),file.activeProfileIndex);choose();}',
    'document.querySelectorAll("th").forEach((th,i)=>th.onclick=()=>{order=i;draw();});',
    '$("what").onchange=open;$("value").onchange=choose;$("find").oninput=draw;',
    '$("all").onclick=()=>{shown=root;draw();};',
    'options("what",files.map(f=>f.name),0);open();',
    '</script></body></html>',
    '');

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
  AddLines(Text, @TailLines, Length(TailLines));
  AddLines(Text, @LastLines, Length(LastLines));
end;

end.
