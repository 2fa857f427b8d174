// The page of profiles. Its data: docs/profile-data.md.

// What is shown by call stack: columns of a profile; isSum: the sum of what samples stand for.
const views=[
  {id:"inuse",label:"In use",kind:"heap",isSum:true,bytes:"inuse_space",count:"inuse_objects",
    about:()=>tellInUse()},
  {id:"peak",label:"Peak",kind:"heap",isSum:true,bytes:"peak_space",count:"peak_objects"},
  {id:"allocated",label:"Allocated",kind:"heap",isSum:true,bytes:"alloc_space",count:"alloc_objects"},
  {id:"temporary",label:"Temporary",kind:"heap",isSum:true,bytes:"temporary_space",
    count:"temporary_objects"},
  {id:"leaks",label:"Leaks",kind:"heap",isSum:true,bytes:"leak_space",count:"leak_objects",
    tell:(...rest)=>tellLeaks(leaksOf(state.after),rest)},
  {id:"slack",label:"Slack",kind:"heap",bytes:"slack_space",
    about:()=>quiet("Slack is what blocks hold beyond the requested bytes: each has the next size "+
      "that LaneMM has blocks of.")},
  {id:"fragments",label:"Fragments",kind:"heap",bytes:"fragment_space",
    about:()=>quiet("Blocks of one size lie together in spans, runs of pages. Fragments are the "+
      "free memory of spans in which a few blocks are left: by the lines that allocated those.")},
  {id:"growth",label:"Copied",kind:"growth",bytes:"copied_space",count:"reallocs",
    about:()=>adviceAll()},
  {id:"frees",label:"Remote frees",kind:"contention",count:"remote_frees",
    about:()=>quiet("Frees of another thread's blocks, by the line that frees. No thread waits. For "+
      "fewer, free blocks in the thread that allocates them, or hand over fewer and larger ones.")},
  {id:"locks",label:"Taken locks",kind:"contention",count:"taken_locks",
    about:()=>quiet("A thread found a lock of the memory manager taken and went another way. No "+
      "thread waits.")}];
const timeView={id:"time",label:"Time line",kind:"heap",bytes:"line"};

const state={measure:"bytes",layout:"icicle",isInverted:false,hasLibraries:false,words:"",point:0,
  before:null,after:null};

// ---- Data

const profileOf=(report,kind)=>report&&report.profiles.find(profile=>profile.kind==kind);
const indexOf=(profile,name)=>profile.columns.findIndex(column=>column.name==name);

// A function that returns an amount of a site; undefined where the profile does not have it.
function valueOf(profile,view,measure){
  const name=view[measure],index=indexOf(profile,name);
  if(name=="line")return site=>bytesAt(profile,site,state.point);
  return index<0?undefined:site=>site.values[index];
}
// The bytes of a site at a point of the time line; the list of a site ends with the last point.
function bytesAt(profile,site,point){
  const list=site.line||[];
  return list[point-profile.line.ms.length+list.length]||0;
}
// An amount of a report by call site; undefined where it has none.
function seriesOf(report,view,measure){
  const profile=profileOf(report,view.kind);
  const value=profile&&valueOf(profile,view,measure);
  if(!value||!(view==timeView||profile.sites.some(value)))return;
  return {profile,value,total:profile.sites.reduce((sum,site)=>sum+value(site),0)};
}
const totalOf=(report,view,measure)=>(seriesOf(report,view,measure)||{total:0}).total;
// What is in use, of all blocks, beside the requested bytes of the samples.
function tellInUse(){
  const {used,committed}=state.after.head;
  if(used&&committed&&!state.before)
    return quiet("Requested bytes, estimated from the samples. All blocks in use, as large as they "+
      `are, have ${amount(used,"bytes")}; the heap holds ${amount(committed,"bytes")} of memory from `+
      "the system.");
}
// How far the bytes of a view may be off: a sample stands for at most the rate more than its block has.
function errorOf(view){
  const rate=state.after.head.rate,total=totalOf(state.after,view,"bytes");
  if(state.before||!view.isSum||!(rate>1)||!total)return;
  return quiet("Standard error of these bytes by sampling: at most "+
    `${(100*Math.sqrt(rate/total)).toFixed(1)} %; of a part of them it is a larger share.`);
}
// What leaked, of all blocks: known at the end of a program that looked for leaks.
const leaksOf=report=>(profileOf(report,"heap")||{}).leaks;
const leakAmount=leaks=>leaks.objects==0?"nothing"
  :`${amount(leaks.space,"bytes")} in ${count(leaks.objects,"block")}`;
function tellLeaks(leaks,rest){
  if(leaks&&leaks.objects&&!state.before)
    return make("p",{class:"quiet"},
      `Not freed at the end: exactly ${leakAmount(leaks)}, as usable bytes. `,...rest);
}
// What grew most, by line, and how to avoid it.
function adviceAll(){
  const most=10,callBytes=128,lines=new Map(),profile=profileOf(state.after,"growth");
  const copied=indexOf(profile,"copied_space"),times=indexOf(profile,"reallocs");
  for(const site of profile.sites.filter(site=>site.advice&&site.values[copied])){
    const key=site.place+"\n"+site.grew+"\n"+site.advice;
    if(!lines.has(key))lines.set(key,{...site,copied:0,times:0});
    const line=lines.get(key);
    line.copied+=site.values[copied];line.times+=site.values[times];
  }
  const work=line=>line.copied+callBytes*line.times;
  const worst=[...lines.values()].sort((a,b)=>work(b)-work(a)).slice(0,most);
  if(worst.length&&!state.before)
    return make("ol",{class:"advice"},...worst.map(line=>make("li",{},make("b",{},line.place),
      ` grew ${line.grew} ${count(line.times,"time")}, ${amount(line.copied,"bytes")} copied: `,
      make("b",{},line.advice))));
}
// The lines with most, the first one first.
function firstLines(view){
  const lines=new Map();
  eachSite(view,state.measure,(frames,before,after,site)=>{
    const frame=frames[frames.length-1],place=placeOf(frame)||frame.name;
    if(!lines.has(place))lines.set(place,{place,name:frame.line?frame.name:"",value:0,sites:[]});
    lines.get(place).value+=after-before;lines.get(place).sites.push(site);
  });
  return [...lines.values()].filter(line=>line.value>0).sort((a,b)=>b.value-a.value);
}
// Whether one line accounts for the total, and which.
function verdictOf(view,total){
  const [first]=firstLines(view);
  if(!first||state.before||view.kind!="heap")return null;
  return make("p",{class:"verdict"},...first.value<total/10?[`No line has more than ${share(first.value,total)} of it.`]
    :[`${share(first.value,total)} of it was allocated at `,make("b",{},first.place),"."]);
}
// The lines that allocate most, with what is known of each, and how to have less.
function linesOf(view,total){
  const most=10,first=firstLines(view);
  if(!first.length||view.kind=="growth")return null;
  return make("div",{},make("h2",{},state.before?"Lines that grew most":"Lines with most"),
    make("ol",{class:"advice"},...first.slice(0,most).map(line=>make("li",{},
      make("b",{},line.place),state.before?" "+change(line.value,state.measure)
        :` ${amount(line.value,state.measure)}, ${share(line.value,total)}`,
      make("small",{},[line.name,...hintsOf(line,view)].filter(Boolean).join("; "))))));
}
// What to do about a line: it grows to the end, leaks, frees at once, or moves its blocks.
function hintsOf({sites,place},view){
  const heap=profileOf(state.after,"heap"),hints=[],isHeld=["inuse","peak"].includes(view.id);
  if(view.kind!="heap"||state.before)return hints;
  const sum=name=>sites.reduce((sum,site)=>sum+(site.values[indexOf(heap,name)]||0),0);
  const at=point=>sites.reduce((sum,site)=>sum+bytesAt(heap,site,point),0);
  const points=heap.line?heap.line.ms.length:0,grown=points>7?at(points-1)-at(points>>1):0;
  if(isHeld&&sum("leak_space"))
    hints.push(amount(sum("leak_space"),"bytes")+" of it was never freed: see Leaks");
  else if(isHeld&&points>7&&grown>at(points-1)/4)
    hints.push(`still growing: ${amount(grown,"bytes")} of it came in the second half of the run`);
  const mean=sum("life_ms")/sum("freed_objects");
  if(["allocated","temporary"].includes(view.id)&&mean<10)
    hints.push(`freed ${mean<1?"at once":`after ${duration(mean)}`}: allocate once, use it again`);
  const grew=(profileOf(state.after,"growth")||{sites:[]}).sites.find(site=>
    site.advice&&site.place==place);
  if(grew&&!isHeld)hints.push(`grew ${grew.grew} step by step: ${grew.advice}`);
  return hints;
}

// The frames of a site that are shown, outermost first: those of libraries only where wanted or
// where there is no other.
function framesOf(profile,site){
  const frames=site.stack.map(index=>profile.frames[index]);
  const kept=frames.filter(frame=>state.hasLibraries||!frame.isLibrary);
  return kept.length?kept:frames.slice(-1);
}

// Calls add(frames, before, after) for each site of both reports; without a comparison before is 0.
function eachSite(view,measure,add){
  const before=seriesOf(state.before,view,measure),after=seriesOf(state.after,view,measure);
  if(before)
    for(const site of before.profile.sites)
      add(framesOf(before.profile,site),before.value(site),0,site);
  if(after)
    for(const site of after.profile.sites)
      add(framesOf(after.profile,site),0,after.value(site),site);
}

// The tree of calls; inverted, the tree of callers. A routine is one node, whatever its line; its
// lines are kept with their amounts.
function treeOf(view){
  const root=newNode("whole program",null);
  eachSite(view,state.measure,(frames,before,after)=>{
    let node=addTo(root,before,after);
    for(const frame of state.isInverted?[...frames].reverse():frames){
      if(!node.calls.has(frame.name))node.calls.set(frame.name,newNode(frame.name,node,frame));
      node=addTo(node.calls.get(frame.name),before,after);
      node.lines.set(placeOf(frame),(node.lines.get(placeOf(frame))||0)+before+after);
    }
    node.self+=after-before;
  });
  finish(root);sortTree(root);
  return root;
}
function newNode(name,parent,frame){
  const node={...makeNode(name,parent),frame,before:0,after:0,calls:new Map(),lines:new Map()};
  if(parent)parent.below.push(node);
  return node;
}
function addTo(node,before,after){
  node.before+=before;node.after+=after;
  return node;
}
// Sets what follows from the sums; the width of a difference is that of all changes below.
function finish(node){
  node.below.forEach(finish);
  node.total=node.after-node.before;
  const inner=node.below.reduce((sum,inner)=>sum+inner.span,0);
  node.span=state.before?Math.abs(node.self)+inner:node.total;
  node.below=node.below.filter(inner=>inner.span>0);
  node.place=placesOf([...node.lines].sort((a,b)=>b[1]-a[1]).map(line=>line[0]).filter(Boolean));
}
// Sums by routine, opened by line; a routine that calls itself counts once.
function rowsOf(view){
  const rows=new Map();
  const rowOf=(rows,key,name)=>{
    if(!rows.has(key))
      rows.set(key,{key,name,place:"",self:0,total:0,before:0,after:0,lines:new Map(),inner:[]});
    return rows.get(key);
  };
  eachSite(view,state.measure,(frames,before,after)=>{
    const seen=new Set();
    frames.forEach((frame,i)=>{
      const row=rowOf(rows,frame.name,frame.name),place=placeOf(frame)||"no line";
      for(const item of [row,rowOf(row.lines,frame.name+"\n"+place,place)]){
        if(i==frames.length-1)item.self+=after-before;
        if(seen.has(item.key))continue;
        seen.add(item.key);
        item.total+=after-before;item.before+=before;item.after+=after;
      }
    });
  });
  const isUsed=row=>row.before||row.after;
  for(const row of rows.values()){
    const lines=[...row.lines.values()].filter(isUsed)
      .sort((a,b)=>Math.abs(b.total)-Math.abs(a.total));
    row.at=placesOf(lines.map(line=>line.name).filter(name=>name!="no line"));
    row.place=lines.map(line=>line.name).join(" ");
    if(lines.some(line=>line.name!="no line"))row.inner=lines;
  }
  return [...rows.values()].filter(isUsed);
}

// ---- By call stack

// Whether a change may come of sampling alone: it is below two standard errors of the difference.
function isNoise(node,view){
  const rateOf=report=>report.head.rate||0;
  return view.kind=="heap"&&state.measure=="bytes"&&Math.abs(node.total)<
    2*Math.sqrt(rateOf(state.before)*node.before+rateOf(state.after)*node.after);
}

function paint(node,view){
  if(!node.parent)return {class:"root"};
  if(state.before){
    if(isNoise(node,view))return {class:"same"};
    const much=Math.min(1,Math.abs(node.total)/(node.span||1));
    return {class:node.total>0?"more":node.total<0?"less":"same",style:"--much:"+much.toFixed(2)};
  }
  return node.frame.isLibrary?{class:"library"}:{style:"--hue:"+hueOf(node.name)};
}
function describe(node,total,view){
  if(state.before)
    return `${change(node.total,state.measure)}: ${amount(node.before,state.measure)} before, `+
      `${amount(node.after,state.measure)} after`+
      (isNoise(node,view)?"; within the error of sampling":"");
  return `${amount(node.total,state.measure)}, ${share(node.total,total)}`+
    (node.self&&!state.isInverted?`; ${amount(node.self,state.measure)} itself`:"");
}
// A column of amounts: of a comparison their changes, else their shares of the total, too.
const amountColumn=(title,value,unit,total)=>({title,value,show:row=>make("span",{},
  state.before?change(value(row),unit):amount(value(row),unit),
  state.before||!total?"":make("span",{class:"share"},share(value(row),total)))});
const plainColumn=(title,value,unit)=>({title,class:"far",value,
  show:row=>amount(value(row),unit)});

function columnsOf(total){
  const unit=state.measure;
  return [amountColumn("Self",row=>row.self,unit,total),
    amountColumn("Total",row=>row.total,unit,total),
    ...state.before?[plainColumn("Before",row=>row.before,unit),
      plainColumn("After",row=>row.after,unit)]:[],
    nameColumn("Routine")];
}

// Shows a view by call stack: controls, picture, table. Keeps what was typed when they change.
function showStacks(panel,view){
  const measures=["bytes","count"].filter(measure=>
    seriesOf(state.after,view,measure)||seriesOf(state.before,view,measure));
  if(!measures.includes(state.measure))state.measure=measures[0];
  const root=treeOf(view),rows=rowsOf(view);
  const picture=new Picture({label:view.label+", by call stack",zooms:true,
    paint:node=>paint(node,view),describe:node=>describe(node,root.total,view)});
  picture.layout=state.layout;picture.words=state.words;
  const table=new Table("By routine",columnsOf(root.total),0);
  const found=make("span",{class:"quiet",role:"status"});
  const search=words=>{
    state.words=picture.words=words;picture.draw();
    table.show(rows.filter(row=>words==""||isFound(row,words)));
    const sum=foundIn(root,words);
    found.textContent=words==""?"":`${amount(sum,state.measure)} found, ${share(sum,root.total)}`;
  };
  const redo=(name,value)=>{
    const at=[...panel.querySelectorAll("input")].indexOf(document.activeElement);
    state[name]=value;showStacks(panel,view);
    if(at>=0)panel.querySelectorAll("input")[at].focus();
  };
  fill(panel,view.tell&&view.tell("By call stack: requested bytes, estimated from the samples "+
      "among them."),
    verdictOf(view,root.total),view.about&&view.about(),errorOf(view),
    make("div",{class:"bar"},
      measures.length<2?null:choices("Measure",[["bytes","Bytes"],["count","Blocks"]],
        state.measure,value=>redo("measure",value)),
      choices("Picture",[["icicle","Icicle"],["flame","Flame graph"]],state.layout,
        value=>redo("layout",value)),
      checkBox("callers below",state.isInverted,value=>redo("isInverted",value)),
      checkBox("library frames",state.hasLibraries,value=>redo("hasLibraries",value)),
      searchField("Search routines",state.words,search),found,picture.out),
    make("div",{class:"split stacks"},
      make("div",{},picture.line,picture.box,make("p",{class:"quiet"},
        "Arrows move, Enter zooms in, Escape out.")),table.box,linesOf(view,root.total)));
  picture.show(root);search(state.words);
}

// ---- Time line

// The bytes in use of the routines with most of them at some point, and of all others, by point.
function areasOf(profile){
  const most=7,areas=new Map(),points=profile.line.ms.length;
  for(const site of profile.sites){
    const name=framesOf(profile,site).pop().name;
    if(!areas.has(name))areas.set(name,{name,values:new Array(points).fill(0)});
    for(let i=0;i<points;i++)areas.get(name).values[i]+=bytesAt(profile,site,i);
  }
  const sorted=[...areas.values()].filter(area=>Math.max(...area.values)>0)
    .sort((a,b)=>Math.max(...b.values)-Math.max(...a.values));
  const rest=sorted.splice(most);
  sorted.forEach((area,i)=>area.hue=(210+i*137)%360);
  if(rest.length)
    sorted.push({name:"others",values:profile.line.ms.map((_,i)=>
      rest.reduce((sum,area)=>sum+area.values[i],0))});
  return sorted;
}
const seconds=ms=>(ms/1000).toLocaleString("en",{maximumFractionDigits:1})+" s";

// Draws the areas on each other, the bytes from the system above them, and a mark at the chosen point.
function drawTime(box,profile,areas){
  const width=box.clientWidth,height=Math.round(Math.min(360,120+width*.16)),line=profile.line;
  const last=line.ms.length-1,span=line.ms[last]-line.ms[0]||1,side=74,foot=24;
  const top=Math.max(...line.committed,...line.inuse_space,1)*1.04;
  const x=i=>side+(width-side-8)*(line.ms[i]-line.ms[0])/span;
  const y=bytes=>(height-foot)*(1-bytes/top)+4;
  const path=values=>values.map((value,i)=>`${i?"L":"M"}${x(i).toFixed(1)},${y(value).toFixed(1)}`);
  const base=line.ms.map(()=>0),parts=[];
  for(const part of [0,.25,.5,.75,1]){
    const at=y(top*part/1.04);
    parts.push(svg("line",{class:"grid",x1:side,x2:width-8,y1:at,y2:at}),
      svg("text",{x:side-6,y:at+4,"text-anchor":"end"},amount(top*part/1.04,"bytes")));
  }
  for(const area of areas){
    const low=path(base);
    area.values.forEach((bytes,i)=>base[i]+=bytes);
    parts.push(svg("path",{style:`fill:${colorOf(area)}`,d:path(base).join("")+
      low.reverse().join("").replace(/M/g,"L")+"Z"}));
  }
  parts.push(svg("path",{class:"line",d:path(line.committed).join("")}));
  for(const i of [0,last])
    parts.push(svg("text",{x:x(i),y:height+4,"text-anchor":i?"end":"start"},seconds(line.ms[i])));
  const at=x(state.point);
  parts.push(svg("line",{class:"mark",x1:at,x2:at,y1:4,y2:height-foot+4}));
  const nearest=event=>{
    const left=event.clientX-box.getBoundingClientRect().left;
    return line.ms.reduce((best,_,i)=>Math.abs(x(i)-left)<Math.abs(x(best)-left)?i:best,0);
  };
  const chart=svg("svg",{viewBox:`0 0 ${width} ${height+8}`,role:"img",
    "aria-label":`Bytes in use from ${seconds(line.ms[0])} to ${seconds(line.ms[last])}`},...parts);
  chart.addEventListener("click",event=>box.dispatchEvent(
    new CustomEvent("pick",{detail:nearest(event)})));
  fill(box,chart);
}
const colorOf=area=>area.name=="others"?"light-dark(#c4cad3,#4a515d)"
  :`light-dark(hsl(${area.hue} 62% 70%),hsl(${area.hue} 40% 42%))`;

function showTime(panel){
  const profile=profileOf(state.after,"heap"),line=profile.line,areas=areasOf(profile);
  const box=make("div",{class:"time"}),told=make("output",{for:"point"}),below=make("div");
  const slider=make("input",{type:"range",id:"point",min:0,max:line.ms.length-1,
    "aria-label":"Point in time",input(){choose(Number(slider.value));}});
  const choose=point=>{
    state.point=point;slider.value=point;
    told.textContent=`After ${seconds(line.ms[point])}: `+
      `${amount(line.inuse_space[point],"bytes")} in use, `+
      `${amount(line.committed[point],"bytes")} held from the system`;
    slider.setAttribute("aria-valuetext",told.textContent);
    drawTime(box,profile,areas);showStacks(below,timeView);
  };
  box.addEventListener("pick",event=>choose(event.detail));
  fill(panel,box,make("ul",{class:"legend"},...areas.map(area=>make("li",{},
    make("i",{style:"background:"+colorOf(area)}),area.name)),
    make("li",{},make("i",{class:"committed"}),"held from the system")),
    make("div",{class:"bar"},slider,told),below);
  new ResizeObserver(()=>drawTime(box,profile,areas)).observe(box);
  choose(line.inuse_space.indexOf(Math.max(...line.inuse_space)));
}

// ---- Classes and sizes

// Amounts by a name out of both reports: each adds to the rows by add(row, item, sign).
function sumsOf(list,key){
  const rows=new Map();
  for(const [report,isAfter] of [[state.before,0],[state.after,1]])
    for(const item of list(profileOf(report,"heap")||{})){
      if(!rows.has(item[key]))
        rows.set(item[key],{key:item[key],name:String(item[key]),place:"",inner:[],
          before:{},after:{}});
      const side=rows.get(item[key])[isAfter?"after":"before"];
      for(const name of Object.keys(item))
        if(name!=key)side[name]=typeof item[name]=="number"?(side[name]||0)+item[name]:item[name];
    }
  return [...rows.values()];
}
const changeOf=name=>row=>(row.after[name]||0)-(row.before[name]||0);

// The classes of a profile with their sums, and the routines that allocated each.
function classesOf(profile){
  const all=[];
  for(const site of profile.sites||[])
    for(const [index,alloc_objects,alloc_space,inuse_objects,inuse_space] of site.classes||[])
      all.push({name:profile.classes[index].name,alloc_objects,alloc_space,inuse_objects,
        inuse_space});
  return all;
}
function showClasses(panel){
  const rows=sumsOf(classesOf,"name");
  for(const row of rows)row.inner=placesOfClass(row.name);
  showSums(panel,"By class","Class",rows);
}
function placesOfClass(name){
  const ofSite=profile=>(profile.sites||[]).flatMap(site=>(site.classes||[])
    .filter(([index])=>profile.classes[index].name==name)
    .map(([,alloc_objects,alloc_space,inuse_objects,inuse_space])=>{
      const frame=framesOf(profile,site).pop();
      return {name:(frame.name+" "+placeOf(frame)).trim(),alloc_objects,alloc_space,inuse_objects,
        inuse_space};
    }));
  return sumsOf(ofSite,"name").map(row=>({...row,key:name+"\n"+row.key}));
}
function showSizes(panel){
  const rows=sumsOf(profile=>profile.sizes||[],"size");
  for(const row of rows)row.name=amount(row.key,"bytes");
  showSums(panel,"By size of the blocks, up to","Size",rows,[
    plainColumn("Free beside them",changeOf("free_space"),"bytes")],
    quiet("Blocks of one size lie together; free beside them is room for more of that size."));
}
function showSums(panel,caption,title,rows,more=[],about=null){
  const sum=name=>rows.reduce((sum,row)=>sum+changeOf(name)(row),0);
  const widest=Math.max(...rows.map(row=>Math.abs(changeOf("inuse_space")(row))),1);
  const isBySize=title=="Size",names={...nameColumn(title),value:row=>row.key};
  const table=new Table(caption,[
    amountColumn("In use",changeOf("inuse_space"),"bytes",sum("inuse_space")),
    {title:"Share",class:"far left",value:row=>Math.abs(changeOf("inuse_space")(row)),
      show:row=>make("span",{class:"meter",
        style:`width:${(8*Math.abs(changeOf("inuse_space")(row))/widest).toFixed(2)}rem`})},
    plainColumn("Blocks",changeOf("inuse_objects"),"count"),
    plainColumn("Allocated",changeOf("alloc_space"),"bytes"),...more,names],
    isBySize?4+more.length:0);
  table.isUp=isBySize;
  fill(panel,about,make("div",{class:"bar"},searchRows(table,rows)),table.box);
}

// ---- Lifetimes

// Freed blocks by the routine that allocated them: their number, mean lifetime, and classes.
function livesOf(profile){
  const rows=new Map(),freed=indexOf(profile,"freed_objects"),life=indexOf(profile,"life_ms");
  for(const site of profile.sites.filter(site=>site.life)){
    const {name}=framesOf(profile,site).pop();
    if(!rows.has(name))
      rows.set(name,{key:name,name,place:"",inner:[],freed:0,ms:0,lives:site.life.map(()=>0)});
    const row=rows.get(name);
    row.freed+=site.values[freed];row.ms+=site.values[life];
    site.life.forEach((blocks,i)=>row.lives[i]+=blocks);
  }
  return [...rows.values()];
}
const duration=ms=>ms<1000?Math.round(ms)+" ms":seconds(ms);

function showLives(panel){
  const profile=profileOf(state.after,"heap"),rows=livesOf(profile);
  const limits=[...profile.life_limits.map(limit=>"< "+duration(limit)),"longer"];
  const table=new Table("Lifetimes of freed blocks",[
    {...plainColumn("Freed",row=>row.freed,"count"),class:undefined},
    {title:"Mean",value:row=>row.ms/row.freed,show:row=>duration(row.ms/row.freed)},
    ...limits.map((title,i)=>({title,class:"far",value:row=>row.lives[i]/row.freed,
      show:row=>row.lives[i]?share(row.lives[i],row.freed):""})),nameColumn("Routine")],0);
  fill(panel,make("div",{class:"bar"},searchRows(table,rows)),table.box);
}

// ---- Comparison

const note=text=>$("note").textContent=text;

// A report with what the page adds; files of speedscope become profiles, too.
function readReport(text){
  const mark='id="data">',start=text.indexOf(mark);
  let report=JSON.parse(start<0?text
    :text.slice(start+mark.length,text.indexOf("</"+"script>",start)));
  if(report.shared)report={profiles:[report]};
  const profiles=report.profiles.map(profile=>profile.shared?fromSpeedscope(profile):profile);
  for(const profile of profiles)markLibraries(profile.frames);
  return {head:{},...report,profiles};
}
function fromSpeedscope(file){
  const [first]=file.profiles;
  const [kind]=file.name.split(":");
  return {kind,frames:file.shared.frames,
    columns:file.profiles.map(profile=>({name:profile.name})),
    sites:first.samples.map((stack,i)=>({stack,
      values:file.profiles.map(profile=>profile.weights[i])}))};
}
async function compare(files){
  const reports=[];
  for(const file of files)
    try{
      reports.push({...readReport(await file.text()),file:file.name});
    }catch(error){
      note(`${file.name} holds no profile of LaneMM.`);return;
    }
  if(reports.length==0)return;
  if(reports.length==1)reports.push(own);
  reports.sort((a,b)=>(a.head.time||0)-(b.head.time||0));
  [state.before,state.after]=reports;
  start();
}
const nameOf=report=>(report.file||"this page")+
  (report.head.time?" of "+timeText(report.head.time):"");

function takeDrops(){
  document.addEventListener("dragover",event=>{event.preventDefault();$("drop").hidden=false;});
  document.addEventListener("dragleave",event=>{if(!event.relatedTarget)$("drop").hidden=true;});
  document.addEventListener("drop",event=>{
    event.preventDefault();$("drop").hidden=true;
    compare([...event.dataTransfer.files].slice(0,2));
  });
}

// ---- The page

function titleOf(report){
  const kinds=report.profiles.map(profile=>profile.kind);
  return kinds.includes("heap")||!kinds.length?"memory profile":kinds.join(" and ");
}
function showFacts(){
  const head=state.after.head,leaks=leaksOf(state.after);
  const picker=make("input",{type:"file",id:"file",accept:".html,.json",multiple:"",hidden:"",
    "aria-label":"Profiles to compare",
    change(){compare([...picker.files].slice(0,2));}});
  const button=(label,click)=>make("button",{type:"button",click},label);
  showHead(baseName(head.program||"LaneMM"),titleOf(state.after),[["Command",head.command],
    ["Process",head.process],["Report",head.report>1&&head.report],
    ["Time",head.time&&timeText(head.time)],
    ["Ran for",head.run_ms&&seconds(head.run_ms)],
    ["Rate",head.rate&&(head.rate>1?"a sample every "+amount(head.rate,"bytes"):"all blocks")],
    ["Samples",head.samples&&amount(head.samples)],
    ["Lost",head.samples_lost?count(head.samples_lost,"sample"):undefined],
    ["Leaked",leaks&&leakAmount(leaks)]],
    picker,button("Compare with\u2026",()=>picker.click()),
    state.before&&button("Swap",()=>{
      [state.before,state.after]=[state.after,state.before];start();
    }),
    state.before&&button("End comparison",()=>{
      state.before=null;state.after=own;start();
    }));
  if(state.before)
    note(`Difference: ${nameOf(state.after)} minus ${nameOf(state.before)}.`);
}
function tabsOf(){
  const tabs=[],heap=profileOf(state.after,"heap")||{};
  for(const view of views){
    const measure=view.bytes?"bytes":"count";
    const before=totalOf(state.before,view,measure),after=totalOf(state.after,view,measure);
    const told=view.tell&&view.tell("No sample is among them: a lower rate finds more, ",
      make("b",{},"leaks,stacks")," all.");
    if(before+after>0)
      tabs.push({id:view.id,label:view.label,show:panel=>showStacks(panel,view),
        value:(state.before&&after>before?"+":"")
          +(measure=="count"?short:amount)(after-before,measure)});
    else if(told)
      tabs.push({id:view.id,label:view.label,value:"not sampled",show:panel=>fill(panel,told)});
  }
  const more=[];
  if(heap.line&&heap.line.ms.length>1&&!state.before)
    more.push({id:"time",label:timeView.label,value:seconds(heap.line.ms[heap.line.ms.length-1]),
      show:showTime});
  if(heap.classes&&classesOf(heap).length)
    more.push({id:"classes",label:"Classes",value:amount(heap.classes.length),show:showClasses});
  if(heap.sizes&&heap.sizes.length)
    more.push({id:"sizes",label:"Sizes",value:amount(heap.sizes.length),show:showSizes});
  if(heap.life_limits&&!state.before&&livesOf(heap).length)
    more.push({id:"lives",label:"Lifetimes",show:showLives,
      value:short(livesOf(heap).reduce((sum,row)=>sum+row.freed,0))});
  const at=tabs.findIndex(tab=>!["inuse","peak","allocated","temporary","leaks"].includes(tab.id));
  tabs.splice(at<0?tabs.length:at,0,...more);
  return tabs;
}
function start(){
  showFacts();
  const tabs=tabsOf();
  if(tabs.length)showTabs(tabs,location.hash.slice(1));
  else fill($("main"),make("p",{},"No samples: nothing was counted."));
}
const own=readReport($("data").textContent);
state.after=own;
takeDrops();
start();
