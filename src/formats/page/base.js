"use strict";
// What all pages share: amounts, tabs, tables, and pictures of trees.

const $=id=>document.getElementById(id);

// A new element; functions among the attributes are listeners.
function make(tag,attributes,...inside){
  const element=document.createElement(tag);
  for(const [name,value] of Object.entries(attributes||{}))
    if(typeof value=="function")element.addEventListener(name,value);
    else if(value!=null)element.setAttribute(name,value);
  element.append(...inside.filter(part=>part!=null));
  return element;
}
function svg(tag,attributes,...inside){
  const space=document.documentElement.namespaceURI.replace("1999/xhtml","2000/svg");
  const element=document.createElementNS(space,tag);
  for(const [name,value] of Object.entries(attributes))element.setAttribute(name,value);
  element.append(...inside);
  return element;
}
const fill=(element,...inside)=>element.replaceChildren(...inside.filter(part=>part!=null));
const quiet=text=>make("p",{class:"quiet"},text);

// ---- Amounts

const scales=[["GB",2**30,2**30],["MB",2**20,2**20],["KB",2**10,1e4]];
function amount(number,unit){
  const size=Math.abs(number),sign=number<0?"\u2212":"";
  const scale=unit=="bytes"&&scales.find(scale=>size>=scale[2]);
  if(scale)
    return sign+(size/scale[1]).toLocaleString("en",
      {minimumFractionDigits:1,maximumFractionDigits:1})+" "+scale[0];
  return sign+Math.round(size).toLocaleString("en")+(unit=="bytes"?" B":"");
}
const change=(number,unit)=>(number>0?"+":"")+amount(number,unit);
// A count as a tab shows it.
const short=number=>Math.abs(number)<1e6?amount(number)
  :(number/1e6).toLocaleString("en",{maximumFractionDigits:1}).replace("-","\u2212")+" M";
const share=(part,whole)=>whole?(100*part/whole).toFixed(1)+" %":"";
const count=(number,noun)=>amount(number)+" "+noun+(number==1?"":"s");

// ---- The head

function facts(pairs){
  return make("dl",{},...pairs.filter(pair=>pair[1]).map(
    ([name,value])=>make("div",{},make("dt",{},name),make("dd",{},String(value)))));
}
function themeChoice(){
  const choice=make("select",{"aria-label":"Colors",change(){
    document.documentElement.dataset.theme=choice.value;
  }});
  for(const name of ["system","light","dark"])
    choice.add(new Option(name=="system"?"System colors":name[0].toUpperCase()+name.slice(1),name));
  return choice;
}
const timeText=seconds=>
  new Date(seconds*1000).toISOString().replace("T"," ").replace(".000Z"," UTC");
const baseName=path=>path.split(/[\\/]/).pop();
function showHead(title,kind,pairs,...tools){
  document.title=`${title}: ${kind}`;
  fill($("head"),
    make("div",{class:"top"},make("h1",{},title+" ",make("span",{class:"quiet"},kind)),
      make("div",{class:"tools"},...tools,themeChoice())),
    facts(pairs),make("p",{id:"note",role:"status"}));
}

// ---- Controls

// A set of radio buttons that look like one switch; options: [value, label].
function choices(legend,options,chosen,pick){
  const name="choice"+choices.next++;
  return make("fieldset",{},make("legend",{},legend),...options.map(([value,label])=>{
    const input=make("input",{type:"radio",name,value,change(){pick(value);}});
    input.checked=value==chosen;
    return make("label",{},input,make("span",{},label));
  }));
}
choices.next=0;

function checkBox(label,isOn,pick){
  const input=make("input",{type:"checkbox",change(){pick(input.checked);}});
  input.checked=isOn;
  return make("label",{},input," "+label);
}
function searchField(label,text,pick){
  const input=make("input",{type:"search",id:"find",placeholder:label+" ( / )","aria-label":label,
    input(){pick(input.value.toLowerCase());}});
  input.value=text;
  return input;
}
document.addEventListener("keydown",event=>{
  if(event.key!="/"||event.target.matches("input,select,textarea")||!$("find"))return;
  event.preventDefault();$("find").focus();
});

// Tabs: [{id, label, value, show(panel)}]; the address names the one that is open.
function showTabs(tabs,open){
  const buttons=tabs.map((tab,i)=>make("button",{role:"tab",id:"tab-"+tab.id,type:"button",
    "aria-controls":"panel",click(){choose(i);},keydown(event){
      const steps={ArrowRight:1,ArrowLeft:-1,Home:-i,End:tabs.length-1-i},step=steps[event.key];
      if(step===undefined)return;
      event.preventDefault();choose((i+step+tabs.length)%tabs.length);
      buttons[(i+step+tabs.length)%tabs.length].focus();
    }},tab.label,make("b",{},tab.value)));
  const panel=make("section",{role:"tabpanel",id:"panel"});
  function choose(index){
    buttons.forEach((button,i)=>{
      button.setAttribute("aria-selected",i==index);button.tabIndex=i==index?0:-1;
    });
    panel.setAttribute("aria-labelledby",buttons[index].id);
    history.replaceState(null,"","#"+tabs[index].id);
    fill(panel);tabs[index].show(panel);
  }
  fill($("main"),make("div",{class:"tabs",role:"tablist","aria-label":"Views"},...buttons),panel);
  choose(Math.max(0,tabs.findIndex(tab=>tab.id==open)));
}

// ---- Trees
// A node: name, place (file and line, or ""), total, self, span (its width, never negative), below
// (a list of nodes, widest first), parent.

function makeNode(name,parent){
  return {name,place:"",total:0,self:0,span:0,below:[],parent};
}
function pathOf(node){
  const path=[];
  for(;node;node=node.parent)path.unshift(node);
  return path;
}
// Sorts every list below a node.
function sortTree(node){
  node.below.sort((a,b)=>b.span-a.span||(a.name<b.name?-1:1));
  node.below.forEach(sortTree);
}
// The first places of a list, the file once: `Shop.lpr:12, 15`.
function placesOf(places){
  const most=4,file=places.length?places[0].slice(0,places[0].lastIndexOf(":")+1):"";
  return places.slice(0,most)
    .map((place,i)=>i&&place.startsWith(file)?place.slice(file.length):place).join(", ")+
    (places.length>most?", \u2026":"");
}
const isFound=(node,words)=>words!=""&&(node.name+" "+node.place).toLowerCase().includes(words);
// The total of the nodes that the words match; one below another counts with it.
function foundIn(node,words){
  if(isFound(node,words))return node.total;
  return node.below.reduce((sum,inner)=>sum+foundIn(inner,words),0);
}
// The line of a frame, or "".
const placeOf=frame=>frame.line?frame.file+":"+frame.line:"";
const itemOf=frame=>make("li",{class:frame.isLibrary?"quiet":undefined},frame.name," ",
  make("span",{class:"quiet"},placeOf(frame)));
// The tree of calls, outermost routine first; items: {stack, bytes, blocks}. A node has all items below.
function callTree(items){
  const newNode=(name,parent,frame)=>{
    const node={...makeNode(name,parent),frame,blocks:0,items:[],calls:new Map(),lines:new Set()};
    if(parent)parent.below.push(node);
    return node;
  };
  const root=newNode("whole program",null);
  for(const item of items){
    let node=root;
    const add=()=>{
      node.total+=item.bytes;node.blocks+=item.blocks;node.items.push(item);
    };
    add();
    for(const frame of [...item.stack].reverse()){
      if(!node.calls.has(frame.name))node.calls.set(frame.name,newNode(frame.name,node,frame));
      node=node.calls.get(frame.name);add();
      if(frame.line)node.lines.add(placeOf(frame));
    }
    node.self+=item.bytes;
  }
  (function finish(node){
    node.span=node.total;node.place=placesOf([...node.lines]);node.below.forEach(finish);
  })(root);
  sortTree(root);
  return root;
}
// The names of a routine or class, longest first: with what comes before it, and its own alone,
// without types in brackets. An offset in a module has one.
function namesOf(name){
  let bare=name;
  for(let last;last!=bare;)[last,bare]=[bare,bare.replace(/<[^<>]*>|\([^()]*\)/g,"")];
  const parts=/\+0x/.test(name)?[]:bare.split(/\.|::/);
  return [name,...parts.slice(1).map((part,i)=>parts.slice(i+1).join("."))];
}
const hashOf=text=>[...text].reduce((sum,sign)=>(sum*31+sign.charCodeAt(0))%9973,7);
// Routines of one unit have hues near each other.
const hueOf=name=>(hashOf(name.split(/[.:(]/)[0])*137+hashOf(name)%70)%360;

// ---- Layouts: the boxes of a node and those below it

function barsOf(top,width,row){
  const boxes=[],path=pathOf(top);
  path.slice(0,-1).forEach((node,depth)=>
    boxes.push({node,left:0,top:depth*row,width,height:row,isAbove:true}));
  (function put(node,left,size,depth){
    boxes.push({node,left,top:depth*row,width:size,height:row});
    for(const inner of node.below){
      const part=size*inner.span/(node.span||1);
      if(part<1)break;
      put(inner,left,part,depth+1);left+=part;
    }
  })(top,0,width,path.length-1);
  return boxes;
}

// Source: Bruls, Huizing, van Wijk, "Squarified Treemaps", VisSym 2000.
function squarify(parts,box,put){
  let rest=parts.reduce((sum,part)=>sum+part.size,0),first=0;
  while(first<parts.length&&rest>0&&box.width>=3&&box.height>=3){
    const edge=Math.min(box.width,box.height),scale=box.width*box.height/rest;
    let sum=0,worst=Infinity,after=first;
    for(;after<parts.length;after++){
      const area=(sum+parts[after].size)*scale;
      const ratio=Math.max(edge*edge*parts[first].size*scale/area/area,
        area*area/(edge*edge*parts[after].size*scale));
      if(ratio>worst)break;
      worst=ratio;sum+=parts[after].size;
    }
    const thick=sum*scale/edge,isTall=box.width>=box.height;
    let at=0;
    for(;first<after;first++){
      const long=parts[first].size*scale/thick;
      put(parts[first].node,isTall?{left:box.left,top:box.top+at,width:thick,height:long}
        :{left:box.left+at,top:box.top,width:long,height:thick});
      at+=long;
    }
    box=isTall?{...box,left:box.left+thick,width:box.width-thick}
      :{...box,top:box.top+thick,height:box.height-thick};
    rest-=sum;
  }
}
// Tiles in tiles; what a node has itself is the space that its tiles leave.
function tilesOf(top,width,row){
  const boxes=[],height=Math.max(20*row,Math.min(innerHeight*.62,width*.6));
  (function put(node,box){
    if(!node||box.width<3||box.height<3)return;
    boxes.push({node,...box,isTile:true});
    if(box.width<2*row||box.height<1.8*row)return;
    const parts=node.below.filter(inner=>inner.span>0).map(inner=>({node:inner,size:inner.span}));
    const own=node.span-parts.reduce((sum,part)=>sum+part.size,0);
    if(own>0)parts.push({node:null,size:own});
    parts.sort((a,b)=>b.size-a.size);
    squarify(parts,{left:box.left+3,top:box.top+row,width:box.width-6,height:box.height-row-3},put);
  })(top,{left:0,top:0,width,height});
  return boxes;
}

// A picture of a tree: bars or tiles, one of them in the order of the Tab key.
// options: label; describe(node): its numbers; paint(node): {class, style}; pick(node);
// zooms: whether a click zooms, too.
class Picture{
  constructor(options){
    Object.assign(this,options);
    this.words="";this.layout="icicle";this.boxes=[];
    this.pen=document.createElement("canvas").getContext("2d");
    this.box=make("div",{class:"picture",role:"tree","aria-label":this.label,
      keydown:event=>this.keyDown(event),click:event=>this.clicked(event),
      dblclick:event=>this.zoomTo(this.nodeAt(event.target)),
      focusin:event=>this.tell(this.nodeAt(event.target)),
      mouseover:event=>this.tell(this.nodeAt(event.target)),
      mouseleave:()=>this.tell(this.current)});
    this.line=make("p",{class:"tell"});
    this.out=make("button",{type:"button",hidden:"",click:()=>this.zoomTo(this.root)},"Show all");
    let width=0;
    new ResizeObserver(()=>{
      if(this.box.clientWidth!=width&&this.top){width=this.box.clientWidth;this.draw();}
    }).observe(this.box);
  }
  show(root){
    this.root=this.top=this.current=root;this.draw();
  }
  nodeAt(element){
    return element.box?element.box.node:undefined;
  }
  tell(node){
    if(!node)return;
    fill(this.line,make("b",{},node.name)," ",make("span",{class:"quiet"},node.place),
      make("br"),this.describe(node));
  }
  // What of a node's text fits into a box; the routine comes before its unit.
  fit(node,width){
    const texts=[node.name+" "+node.place,...namesOf(node.name)];
    return texts.find(text=>this.pen.measureText(text).width<=width)||texts[texts.length-1];
  }
  place(){
    const width=this.box.clientWidth||this.box.parentNode.clientWidth;
    const row=parseFloat(getComputedStyle(document.documentElement).fontSize)*1.5;
    this.boxes=this.layout=="treemap"?tilesOf(this.top,width,row):barsOf(this.top,width,row);
    const height=Math.max(...this.boxes.map(box=>box.top+box.height));
    if(this.layout=="flame")
      for(const box of this.boxes)box.top=height-box.top-box.height;
    this.box.style.height=height+"px";
  }
  draw(){
    this.place();
    const {fontSize,fontFamily}=getComputedStyle(document.body);
    this.pen.font=`${.86*parseFloat(fontSize)}px ${fontFamily}`;
    const hasFocus=this.box.contains(document.activeElement);
    if(!this.boxes.some(box=>box.node==this.current))this.current=this.top;
    fill(this.box,...this.boxes.map(box=>this.element(box)));
    this.out.hidden=this.top==this.root;
    this.tell(this.current);
    if(hasFocus)this.elementOf(this.current).focus();
  }
  element(box){
    const node=box.node,paint=this.paint(node),level=pathOf(node).length;
    const near=node.parent?node.parent.below:[node];
    const element=make("div",{role:"treeitem",tabindex:node==this.current?0:-1,
      "aria-level":level,"aria-setsize":near.length,"aria-posinset":near.indexOf(node)+1,
      "aria-selected":node==this.current,
      "aria-label":`${node.name} ${node.place} ${this.describe(node)}`,
      style:`left:${box.left.toFixed(1)}px;top:${box.top.toFixed(1)}px;`+
        `width:${box.width.toFixed(1)}px;height:${box.height.toFixed(1)}px;${paint.style||""}`});
    const names=[paint.class,box.isAbove&&"above",box.isTile&&"tile",box.width<12&&"thin",
      isFound(node,this.words)&&"found",node==this.current&&node!=this.root&&"picked"];
    element.className=names.filter(Boolean).join(" ");
    if(box.width>28&&box.height>14)
      element.textContent=paint.text||this.fit(node,box.width-12);
    element.box=box;box.element=element;
    return element;
  }
  elementOf(node){
    return this.boxes.find(box=>box.node==node).element;
  }
  // Makes a node the one that is told; without a box its nearest caller that has one.
  choose(node,isFocused){
    while(node&&!this.boxes.some(box=>box.node==node))node=node.parent;
    if(!node)return;
    this.current=node;
    for(const box of this.boxes){
      box.element.tabIndex=box.node==node?0:-1;
      box.element.setAttribute("aria-selected",box.node==node);
      box.element.classList.toggle("picked",box.node==node&&node!=this.root);
    }
    if(isFocused)this.elementOf(node).focus();
    this.tell(node);
    if(this.pick)this.pick(node);
  }
  zoomTo(node){
    if(!node)return;
    this.top=node;this.current=node;this.draw();
    if(this.pick)this.pick(node);
  }
  clicked(event){
    const node=this.nodeAt(event.target);
    if(!node)return;
    if(this.zooms)this.zoomTo(node);else this.choose(node,true);
  }
  // The node that a key leads to, from Node.
  neighbour(key,node){
    const isFlame=this.layout=="flame",level=pathOf(node).length;
    const row=this.boxes.filter(box=>pathOf(box.node).length==level).map(box=>box.node);
    const at=row.indexOf(node);
    const below=node.below.find(inner=>this.boxes.some(box=>box.node==inner));
    return {ArrowDown:isFlame?node.parent:below,ArrowUp:isFlame?below:node.parent,
      ArrowRight:row[at+1],ArrowLeft:row[at-1],Home:row[0],End:row[row.length-1]}[key];
  }
  keyDown(event){
    const node=this.nodeAt(event.target);
    if(!node||event.ctrlKey||event.altKey||event.metaKey)return;
    if(event.key=="Enter"||event.key==" ")this.zoomTo(node);
    else if(event.key=="Escape")this.zoomTo(this.top.parent);
    else if(/^(Arrow|Home|End)/.test(event.key))this.choose(this.neighbour(event.key,node),true);
    else return;
    event.preventDefault();
  }
}

// ---- Tables
// columns: [{title, class, value(row), show(row), isText}]; the one with isText has the names. A
// row has a list `inner`, maybe empty, of the rows that it opens.

class Table{
  constructor(caption,columns,order,pick){
    Object.assign(this,{columns,order,pick,isUp:false,opened:new Set(),most:100,words:""});
    this.heads=columns.map((column,i)=>make("th",{scope:"col",class:classOf(column)},
      make("button",{type:"button",click:()=>this.sortBy(i)},column.title)));
    this.body=make("tbody",{keydown:event=>this.keyDown(event)});
    this.all=make("button",{type:"button",class:"all",click:()=>{this.most=Infinity;this.draw();}});
    this.box=make("div",{},make("table",{},make("caption",{},caption),
      make("thead",{},make("tr",{},...this.heads)),this.body),this.all);
  }
  sortBy(index){
    this.isUp=index==this.order?!this.isUp:!!this.columns[index].isText;
    this.order=index;this.draw();
  }
  show(rows){
    this.rows=rows;this.draw();
  }
  sorted(rows){
    const value=this.columns[this.order].value,up=this.isUp?1:-1;
    const compare=(a,b)=>a<b?-1:a>b?1:0;
    return [...rows].sort((a,b)=>compare(value(a),value(b))*up||compare(a.name,b.name));
  }
  draw(){
    this.heads.forEach((head,i)=>i==this.order
      ?head.setAttribute("aria-sort",this.isUp?"ascending":"descending")
      :head.removeAttribute("aria-sort"));
    const lines=[];
    let isCut=false,all=0;
    const add=(rows,depth)=>{
      isCut=isCut||rows.length>this.most;all+=rows.length;
      for(const row of this.sorted(rows).slice(0,this.most)){
        lines.push(this.line(row,depth));
        if(this.opened.has(row.key))add(row.inner,depth+1);
      }
    };
    add(this.rows,0);
    this.all.hidden=!isCut;
    this.all.textContent=`Show all ${count(all,"row")}`;
    fill(this.body,...lines);
  }
  line(row,depth){
    const names=[depth&&"inner",isFound(row,this.words)&&"found"];
    const line=make("tr",{class:names.filter(Boolean).join(" ")||undefined},
      ...this.columns.map(column=>
      make("td",{class:classOf(column),style:column.isText&&depth?`--depth:${depth}`:undefined},
        ...(column.isText?[...this.name(row,column),row.at
          &&make("span",{class:"place quiet"}," ",row.at)]:[column.show(row)]))));
    return Object.assign(line,{row,depth});
  }
  openAll(row){
    if(row.inner.length)this.opened.add(row.key);
    row.inner.forEach(inner=>this.openAll(inner));
  }
  // Opens the rows above those that the words match; true if Row is one of either.
  reveal(row){
    const isAbove=row.inner.filter(inner=>this.reveal(inner)).length>0;
    if(isAbove)this.opened.add(row.key);
    return isAbove||isFound(row,this.words);
  }
  find(words){
    this.words=words;this.rows.forEach(row=>this.reveal(row));this.draw();
  }
  // Up, Down, Home and End go to a row, Right opens it, Left closes it, * opens all below.
  keyDown(event){
    if(event.ctrlKey||event.altKey||event.metaKey)return;
    const lines=[...this.body.rows],line=event.target.closest("tr"),at=lines.indexOf(line);
    const row=line.row,isOpen=this.opened.has(row.key),key=event.key;
    let to=at;
    if(key=="ArrowRight"&&!isOpen&&row.inner.length)this.opened.add(row.key);
    else if(key=="ArrowLeft"&&isOpen)this.opened.delete(row.key);
    else if(key=="*")this.openAll(row);
    else to={ArrowDown:at+1,ArrowUp:at-1,Home:0,End:lines.length-1,ArrowRight:at+(isOpen?1:0),
      ArrowLeft:lines.findLastIndex((other,i)=>i<at&&other.depth<line.depth)}[key];
    if(to===undefined)return;
    event.preventDefault();
    if(to==at)this.draw();
    const next=this.body.rows[to]||this.body.rows[at];
    next.querySelector(".text>:first-child").focus();
    if(this.follows)this.pick(next.row);
  }
  // The button that opens a row, and its name: one button where nothing is picked.
  name(row,column){
    const isOpen=this.opened.has(row.key);
    const toggle=event=>{
      if(isOpen)this.opened.delete(row.key);else this.opened.add(row.key);
      const at=[...this.body.rows].indexOf(event.target.closest("tr"));
      this.draw();
      this.body.rows[at].querySelector(".open").focus();
    };
    const open=row.inner.length>0?make("button",{type:"button",class:"open",
      "aria-expanded":isOpen,"aria-label":this.pick?"Below "+row.name:undefined,click:toggle},
      this.pick?"":column.show(row)):null;
    if(!this.pick)return [open||make("span",{class:"closed",tabindex:-1},column.show(row))];
    const name=make("button",{type:"button",class:open?undefined:"closed",
      click:()=>this.pick(row)},column.show(row));
    return open?[open,name]:[name];
  }
}
function classOf(column){
  return [column.class,column.isText&&"text"].filter(Boolean).join(" ")||undefined;
}
const nameColumn=title=>({title,isText:true,value:row=>row.name,show:row=>row.name});
// Shows the rows that the words of the page match; returns the field for these.
function searchRows(table,rows){
  const show=words=>{
    state.words=words;table.show(rows.filter(row=>words==""||isFound(row,words)));
  };
  show(state.words);
  return searchField("Search",state.words,show);
}

// All data of a page, to read and to save.
function showData(panel,data,name){
  const most=200000,text=JSON.stringify(data,null,1);
  const file=make("a",{download:name,
    href:URL.createObjectURL(new Blob([text],{type:"application/json"}))},"Save as a file");
  fill(panel,make("p",{},file),make("pre",{},text.slice(0,most)+
    (text.length>most?"\n\u2026 the file has the rest":"")));
}

// ---- Stacks

const unitNames=names=>new RegExp("^\\$?("+names+")(\\.|_\\$|$)","i");
const runTime=unitNames("SYSTEM|OBJPAS|SYSUTILS|CLASSES|FGL|CONTNRS|GENERICS[A-Z.]*|"+
  "STRUTILS|VARIANTS|VARUTILS|TYPINFO|MATH|DATEUTILS|INIFILES|SYNCOBJS|CTHREADS|PTHREADS|"+
  "SI_[A-Z]+|LANEMM");
// Names that a program's unit may have, too: then its frames have lines where any have.
const packages=unitNames("FP[A-Z]*|JSON[A-Z]*|XML[A-Z]*|DOM|ZSTREAM|PASZLIB|SSOCKETS|SOCKETS|"+
  "PROCESS|PIPES|RTTI");
// Sets isLibrary in frames; where some have a line, also in all without one.
function markLibraries(frames){
  const hasLines=frames.some(frame=>frame.line);
  for(const frame of frames)
    frame.isLibrary=frame.name!="(cut)"
      &&(frame.library==1||runTime.test(frame.name)
        ||!frame.line&&(hasLines||packages.test(frame.name)));
}
