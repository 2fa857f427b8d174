// The page of a black box: what a process held that was killed.

const data=JSON.parse($("data").textContent);
const state={moment:"bytes",layout:"icicle",words:"",rate:""};
const blocksAt={bytes:"blocks",peak_bytes:"peak_blocks"};
const blocksOf=site=>site[blocksAt[state.moment]];
const grownOf=site=>site.bytes-(site.earlier_bytes||0);
const since=Math.max(1,data.time-data.heap.earlier_time);
const all=()=>state.moment=="bytes"?data.heap.sampled_in_use
  :data.sites.reduce((sum,site)=>sum+site.peak_bytes,0);
const inAll=bytes=>`${amount(bytes,"bytes")}, ${share(bytes,all())}`;
const nameOf=site=>site.class||"blocks";
markLibraries(data.sites.flatMap(site=>site.stack));

// ---- Call sites

// The sites that have allocated what was in use at the moment.
const usedSites=()=>data.sites.filter(site=>site[state.moment]>0);
const callsOf=sites=>callTree(sites.map(site=>
  ({stack:site.stack,bytes:site[state.moment],blocks:blocksOf(site),site})));
function siteParts(site){
  return [make("h2",{},nameOf(site)),facts([["In use",amount(site.bytes,"bytes")],
    ["Blocks",amount(site.blocks)],["At the peak",amount(site.peak_bytes,"bytes")],
    [`In the last ${since} s`,change(grownOf(site),"bytes")]]),
    make("ol",{},...site.stack.map(itemOf))];
}
const most=3;
function showNode(side,node){
  const sites=node.items.map(item=>item.site).sort((a,b)=>b[state.moment]-a[state.moment]);
  fill(side,make("h2",{},node.name),make("p",{class:"quiet"},node.place),
    facts([["Bytes",inAll(node.total)],["Call sites",amount(sites.length)]]),
    ...sites.slice(0,most).flatMap(siteParts),
    sites.length>most?make("p",{class:"quiet"},`and ${sites.length-most} more`):null);
}

const bytesColumn=(title,value,far)=>({title,value,class:far,
  show:row=>amount(value(row),"bytes")});
const countColumn=(title,value,far)=>({title,value,class:far,show:row=>amount(value(row))});

function siteTable(pick){
  return new Table("By call site",[
    {title:"Bytes",value:row=>row.site[state.moment],show:row=>make("span",{},
      amount(row.site[state.moment],"bytes"),
      make("span",{class:"share"},share(row.site[state.moment],all())))},
    {title:`Last ${since} s`,class:"far",value:row=>grownOf(row.site),
      show:row=>change(grownOf(row.site),"bytes")},
    countColumn("Blocks",row=>blocksOf(row.site),"far"),nameColumn("Class")],0,pick);
}
function showHeld(panel){
  const side=make("aside",{class:"side","aria-label":"Details"});
  const found=make("span",{class:"quiet",role:"status"});
  const table=siteTable(row=>fill(side,...siteParts(row.site)));
  const picture=new Picture({label:"Calls that allocated what was in use",
    describe:node=>inAll(node.total),pick:node=>showNode(side,node),
    paint:node=>!node.parent?{class:"root"}:node.frame.isLibrary?{class:"library"}
      :{style:"--hue:"+hueOf(node.name)}});
  picture.layout=state.layout;picture.words=state.words;
  let tree;
  const draw=()=>{
    tree=callsOf(usedSites());picture.show(tree);
    table.show(usedSites().map((site,i)=>
      ({key:i,name:nameOf(site),at:site.place,site,inner:[]})));
    showNode(side,tree);
  };
  fill(panel,
    make("div",{class:"bar"},
      choices("Moment",[["bytes","At the end"],["peak_bytes","At the peak"]],state.moment,
        moment=>{state.moment=moment;draw();}),
      choices("Picture",[["icicle","Icicle"],["flame","Flame graph"],["treemap","Treemap"]],
        state.layout,layout=>{picture.layout=state.layout=layout;picture.draw();}),
      searchField("Search",state.words,words=>{
        state.words=picture.words=words;picture.draw();
        found.textContent=words==""?"":`${inAll(foundIn(tree,words))} found`;
      }),found,picture.out),
    make("div",{class:"split with-side"},
      make("div",{},picture.line,picture.box,make("p",{class:"quiet"},
        "By samples, the call sites with most bytes. Arrows move, Enter or a double click "+
        "zooms in, Escape out."),table.box),side));
  draw();
}

// ---- Time

const rates=[["seconds","Seconds"],["minutes","Minutes"],["hours","Hours"]]
  .filter(([rate])=>data[rate].length>1);
const fillOfUse="light-dark(hsl(212 62% 76%),hsl(212 40% 38%))";
// The points of a rate, the last state behind them: time, in use, memory, allocated.
function pointsOf(rate){
  const points=data[rate].map(([time,used,memory,allocated])=>({time,used,memory,allocated}));
  const made=points.map((point,i)=>({...point,key:i,name:timeText(point.time),inner:[],
    rate:i?(point.allocated-points[i-1].allocated)/(point.time-points[i-1].time):0}));
  return [...made,{time:data.time,used:data.heap.used,memory:data.heap.committed,rate:0,
    key:made.length,name:timeText(data.time)+", last state",inner:[]}];
}
function drawPoints(box,points){
  const width=box.clientWidth,height=Math.round(Math.min(320,120+width*.14)),side=74,foot=24;
  const last=points[points.length-1],span=last.time-points[0].time||1;
  const top=Math.max(...points.map(point=>Math.max(point.memory,point.used)),1)*1.04;
  const x=point=>side+(width-side-8)*(point.time-points[0].time)/span;
  const y=bytes=>(height-foot)*(1-bytes/top)+4;
  const path=value=>points.map((point,i)=>
    `${i?"L":"M"}${x(point).toFixed(1)},${y(point[value]).toFixed(1)}`).join("");
  const parts=[0,.25,.5,.75,1].flatMap(part=>{
    const at=y(top*part/1.04);
    return [svg("line",{class:"grid",x1:side,x2:width-8,y1:at,y2:at}),
      svg("text",{x:side-6,y:at+4,"text-anchor":"end"},amount(top*part/1.04,"bytes"))];
  });
  parts.push(svg("path",{style:"fill:"+fillOfUse,
    d:`${path("used")}L${x(last)},${y(0)}L${side},${y(0)}Z`}),
    svg("path",{class:"line",d:path("memory")}));
  for(const [point,anchor] of [[points[0],"start"],[last,"end"]])
    parts.push(svg("text",{x:x(point),y:height+4,"text-anchor":anchor},
      timeText(point.time).slice(11,19)));
  fill(box,svg("svg",{viewBox:`0 0 ${width} ${height+8}`,role:"img",
    "aria-label":`Memory from ${timeText(points[0].time)} to ${timeText(last.time)}`},...parts));
}
function showTime(panel){
  const box=make("div",{});
  const table=new Table("Points in time",[bytesColumn("In use",row=>row.used),
    bytesColumn("Memory",row=>row.memory),
    {title:"Allocated per second",class:"far",value:row=>row.rate,
      show:row=>row.rate?amount(row.rate,"bytes"):""},nameColumn("Time")],3);
  state.rate=state.rate||rates[0][0];
  const draw=()=>drawPoints(box,pointsOf(state.rate));
  fill(panel,make("div",{class:"bar"},choices("Distance of the points",rates,state.rate,rate=>{
    state.rate=rate;draw();table.show(pointsOf(rate));
  })),box,make("ul",{class:"legend"},
    make("li",{},make("i",{style:"background:"+fillOfUse}),"in use"),
    make("li",{},make("i",{class:"committed"}),"memory of the heap")),table.box);
  new ResizeObserver(draw).observe(box);
  draw();table.show(pointsOf(state.rate));
}

// ---- Tables

function showTable(caption,columns,list,name){
  return panel=>{
    const table=new Table(caption,columns,0);
    fill(panel,table.box);
    table.show(list.map((item,i)=>({...item,key:i,name:name(item),inner:[]})));
  };
}
const showSizes=showTable("Blocks by size",[bytesColumn("Memory",row=>row.span_bytes),
  countColumn("Blocks",row=>row.blocks),{...nameColumn("Size"),value:row=>row.size}],
  data.sizes,item=>amount(item.size,"bytes"));
const showRegions=showTable("Regions",[bytesColumn("Memory",row=>row.committed),
  bytesColumn("At most",row=>row.peak,"far"),
  {title:"Limit",class:"far",value:row=>row.limit,
    show:row=>row.limit?amount(row.limit,"bytes"):"none"},nameColumn("Name")],
  data.regions,item=>item.name||"without a name");
const showThreads=showTable("Threads with most sampled bytes",
  [bytesColumn("Bytes",row=>row.bytes),{title:"Thread",value:row=>row.thread,
    show:row=>String(row.thread)},nameColumn("Name")],
  data.threads,item=>item.name||"without a name");
function showEvents(panel){
  fill(panel,...[...data.events].reverse().flatMap(event=>
    [make("h2",{},timeText(event.time)),make("pre",{tabindex:0},event.text.trim())]));
}

// ---- The page

showHead(baseName(data.head.program),"black box",[
  ["In use",`${amount(data.heap.used,"bytes")} in ${count(data.heap.blocks,"block")}`],
  ["At most",`${amount(data.heap.peak,"bytes")} of memory, ${timeText(data.heap.peak_time)}`],
  ["Command",data.head.command],["Process",String(data.head.process)],
  ["Last state",timeText(data.time)]]);
$("note").textContent=data.sentence;
showTabs([
  {id:"held",label:"Call sites",value:amount(data.heap.sampled_in_use,"bytes"),show:showHeld},
  ...rates.length?[{id:"time",label:"Time",value:amount(data.heap.committed,"bytes"),
    show:showTime}]:[],
  {id:"sizes",label:"Sizes",value:amount(data.sizes.length),show:showSizes},
  ...data.regions.length?[{id:"regions",label:"Regions",value:amount(data.regions.length),
    show:showRegions}]:[],
  {id:"threads",label:"Threads",value:amount(data.heap.threads),show:showThreads},
  ...data.events.length?[{id:"events",label:"Events",value:amount(data.events.length),
    show:showEvents}]:[],
  {id:"json",label:"Data",value:"JSON",
    show:panel=>showData(panel,data,baseName(data.head.program)+".box.json")}],location.hash.slice(1));
