// The page of leaks: who retains what, and where it was allocated.

const data=JSON.parse($("data").textContent);
const groups=new Map(data.groups.map(group=>[group.group,group]));
const isHeld=data.topic=="held",isLeak=!isHeld&&data.topic!="inUse";
const state={layout:isHeld?"tree":"treemap",words:"",placeLayout:"icicle"};
const nounOfAll=isLeak?"leaked":"in use";
const classes=data.groups.filter(group=>group.blocks); // without variables that hold blocks
const sumText=one=>`${count(one.blocks,"block")}, ${amount(one.bytes,"bytes")}`;
const inAll=bytes=>`${amount(bytes,"bytes")}, ${share(bytes,data.bytes)}`;

// ---- Trees

// The tree of retainers: what a node retains is all below it. Blocks that have no node belong to
// the root.
function retainerTree(){
  const root={...makeNode("all blocks "+nounOfAll,null),blocks:data.blocks};
  const nodes=[root];
  for(const path of data.retainerTree||data.groups.map(flatPath)){
    const group=groups.get(path.group),parent=nodes[path.parent];
    const node={...makeNode(group?group.name:"other blocks",parent),group,blocks:path.blocks,
      self:path.bytes,isCycle:path.cycle};
    nodes.push(node);parent.below.push(node);
  }
  for(const node of nodes.slice(1).reverse()){
    node.total+=node.self;node.span=node.total;node.parent.total+=node.total;
  }
  root.self=data.bytes-root.total;root.total=root.span=data.bytes;
  prune(root);sortTree(root);
  return root;
}
const flatPath=group=>({parent:0,group:group.group,blocks:group.blocks,bytes:group.bytes});
function prune(node){
  node.below=node.below.filter(inner=>inner.total>0);node.below.forEach(prune);
}

// The call stacks of a place: a line of the program has several.
const stacksOf=place=>place.stacks||[place];
const allStacks=data.groups.flatMap(group=>
  group.places.flatMap(stacksOf).map(one=>({...one,group})));
const stackFrames=allStacks.flatMap(one=>one.stack);
for(const frame of stackFrames)
  frame.name=frame.routine||frame.module||"0x"+frame.address.toString(16);
markLibraries(stackFrames);

// ---- Details of a group

const keyOf=frame=>frame&&frame.name+(frame.line||frame.address);
// Items of the frames from depth on: those that all stacks have, then a branch for each caller.
function itemsOf(stacks,depth,shared){
  const items=[],frameOf=one=>one.stack[depth<one.stack.length-shared?depth:-1];
  const first=stacks[0];
  for(;frameOf(first)&&stacks.every(one=>keyOf(frameOf(one))==keyOf(frameOf(first)));depth++)
    items.push(itemOf(frameOf(first)));
  if(stacks.every(one=>!frameOf(one)))return items;
  const branches=new Map();
  for(const one of stacks){
    const key=keyOf(frameOf(one));
    branches.set(key,[...branches.get(key)||[],one]);
  }
  const sum=(branch,what)=>branch.reduce((sum,one)=>sum+one[what],0);
  for(const branch of [...branches.values()].sort((a,b)=>sum(b,"bytes")-sum(a,"bytes")))
    items.push(make("li",{},make("details",{},make("summary",{},
      `${count(sum(branch,"blocks"),"block")}, ${amount(sum(branch,"bytes"),"bytes")}`+
      (frameOf(branch[0])?" by":" directly")),make("ol",{},...itemsOf(branch,depth,shared)))));
  return items;
}
function stackOf(place){
  const stacks=stacksOf(place),first=stacks[0].stack,farOut=(one,i)=>one.stack[one.stack.length-1-i];
  let shared=0;
  while(stacks.length>1&&stacks.every(one=>shared<one.stack.length-1
    &&keyOf(farOut(one,shared))==keyOf(farOut(stacks[0],shared))))shared++;
  // A line may have more stacks than the data has.
  const rest=what=>stacks.reduce((left,one)=>left-one[what],place[what]);
  const others=rest("blocks")>0?make("p",{class:"quiet"},
    `${count(rest("blocks"),"block")}, ${amount(rest("bytes"),"bytes")} by other callers`):"";
  const list=make("ol",{},...itemsOf(stacks,0,shared),
    ...first.slice(first.length-shared).map(itemOf));
  return make("details",{open:""},make("summary",{},sumText(place)),
    place.number?make("p",{class:"quiet"},
      `First one: allocation ${amount(place.number)} by thread ${place.thread}`):"",list,others);
}
const chainOf=names=>make("ol",{class:"chain"},...names.map(name=>make("li",{},name)));

function retainersOf(group){
  return group.retainers.filter(one=>one.cycle||one.chain.length).map(one=>make("div",{},
    make("p",{},count(one.blocks,"block")+(one.cycle
      ?` in a cycle${one.interfaces?" of interfaces":""}:`
      :one.stale?" in a slot no longer counted by:":" retained by:")),chainOf(one.chain)));
}
function detailsOf(group){
  const parts=[];
  if(group.texts.length)
    parts.push(make("h2",{},"Contents"),...group.texts.map(text=>make("p",{},text)));
  const retainers=retainersOf(group);
  if(retainers.length)parts.push(make("h2",{},"Retainers"),...retainers);
  if(isHeld&&!group.places.length)return parts;
  parts.push(make("h2",{},"Allocated at"));
  if(group.places.length)parts.push(...group.places.map(stackOf));
  else parts.push(make("p",{},"No call stacks were recorded: add the setting ",
    make("b",{},"stacks"),"."));
  return parts;
}
function showGroup(side,group){
  fill(side,make("h2",{},group.name),facts([["Blocks",amount(group.blocks)],
    ["Bytes",inAll(group.bytes)],["Retained",inAll(group.retained)]]),...detailsOf(group));
}
function showNode(side,node){
  if(!node.group){
    fill(side,make("h2",{},node.name),facts([["Blocks",amount(data.blocks)],
      ["Bytes",amount(data.bytes,"bytes")]]),make("p",{class:"quiet"},
      "Select a class: its retainers and the stacks that allocated it appear here."));
    return;
  }
  const path=pathOf(node).slice(1);
  fill(side,make("h2",{},node.name),
    facts([["Blocks",amount(node.blocks)],["Their bytes",amount(node.self,"bytes")],
      ["Retained size",inAll(node.total)]]),
    node.isCycle?make("p",{},"In a cycle of references."):null,
    path.length>1?chainOf(path.map(node=>node.name)):null,
    node.blocks<node.group.blocks?make("p",{class:"quiet"},
      `All blocks of this class: ${amount(node.group.blocks)}, `+
      amount(node.group.bytes,"bytes")):null,
    ...detailsOf(node.group));
}

// ---- Views

const sizeColumn=(title,value,far)=>({title,value,class:far?"far":undefined,
  show:row=>make("span",{},amount(value(row),"bytes"),
    make("span",{class:"share"},share(value(row),data.bytes)))});
const blocksColumn={title:"Blocks",class:"far",value:row=>row.blocks,show:row=>amount(row.blocks)};

function rowOf(node,index){
  const row={key:(node.parent&&node.parent.row?node.parent.row.key+"/":"")+index,name:node.name,
    node,total:node.total,self:node.self,blocks:node.blocks,place:""};
  node.row=row;row.inner=node.below.map(rowOf);
  return row;
}

// A picture with its controls, details at its side and a table below.
function showTree(panel,tree,options){
  const side=make("aside",{class:"side","aria-label":"Details"});
  const table=new Table(options.caption,options.columns,0,row=>{
    if(table.follows)options.show(side,row.node);
    else if(!picture.boxes.some(box=>box.node==row.node))picture.zoomTo(row.node);
    else picture.choose(row.node);
  });
  const picture=new Picture({label:options.label,paint:options.paint,
    describe:node=>`${inAll(node.total)}; ${count(node.blocks,"block")}`+
      (node.below.length&&node.self?` of ${amount(node.self,"bytes")}`:""),
    pick:node=>options.show(side,node)});
  // Of the layouts, that of a tree is the table alone.
  const drawing=make("div",{},picture.line,picture.box,make("p",{class:"quiet"},
    "Arrows move, Enter or a double click zooms in, Escape out."));
  const hint=make("p",{class:"quiet"},
    "Up and Down move, Right opens a row, Left closes it, * opens all below it.");
  function lay(layout){
    state[options.layoutName]=layout;
    table.follows=drawing.hidden=layout=="tree";hint.hidden=!table.follows;
    if(!table.follows){picture.layout=layout;picture.draw();}
    picture.out.hidden=table.follows||picture.top==picture.root;
  }
  const found=make("span",{class:"quiet",role:"status"});
  fill(panel,
    make("div",{class:"bar"},
      choices("Picture",[...options.layouts,["tree","Tree"]],state[options.layoutName],lay),
      searchField("Search",state.words,words=>{
        state.words=picture.words=words;
        if(!table.follows)picture.draw();
        table.find(words);
        found.textContent=words==""?"":`${inAll(foundIn(tree,words))} found`;
      }),found,picture.out),
    make("div",{class:"split with-side"},
      make("div",{},drawing,table.box,hint),side));
  const rows=tree.below.map(rowOf);
  for(let row=rows;row.length==1&&row[0].inner.length;row=row[0].inner)table.opened.add(row[0].key);
  picture.words=state.words;picture.show(tree);table.show(rows);table.find(state.words);
  lay(state[options.layoutName]);
  options.show(side,tree.below[0]||tree);
}

function showRetainers(panel){
  showTree(panel,retainerTree(),{label:"Retainers by retained size",caption:"By retained size",
    columns:[sizeColumn("Retained",row=>row.total),sizeColumn("Own",row=>row.self,true),
      blocksColumn,nameColumn("Class")],
    layouts:[["treemap","Treemap"],["icicle","Icicle"]],layoutName:"layout",
    paint:node=>!node.parent?{class:"root"}:{style:"--hue:"+hashOf(node.name)*137%360,
      text:node.name+(node.isCycle?" \u21bb":"")+" \u00b7 "+amount(node.total,"bytes")},
    show:showNode});
}
function showPlaces(panel){
  showTree(panel,callTree(allStacks),{label:"Calls that allocated the blocks",caption:"By call",
    columns:[sizeColumn("Allocated",row=>row.total),sizeColumn("Itself",row=>row.self,true),
      blocksColumn,nameColumn("Routine")],
    layouts:[["icicle","Icicle"],["flame","Flame graph"]],layoutName:"placeLayout",
    paint:node=>!node.parent?{class:"root"}:node.frame.isLibrary?{class:"library"}
      :{style:"--hue:"+hueOf(node.name)},
    show(side,node){
      fill(side,make("h2",{},node.name),make("p",{class:"quiet"},node.place),
        facts([["Blocks",amount(node.blocks)],["Bytes",inAll(node.total)]]),
        ...[...new Set(node.items.map(item=>item.group))].map(group=>
          make("details",{},make("summary",{},group.name),...detailsOf(group))));
    }});
}
function showGroups(panel){
  const side=make("aside",{class:"side","aria-label":"Details"});
  const rows=classes.map((group,i)=>({...group,key:i,inner:[],group,place:""}));
  const table=new Table("By class",[sizeColumn("Retained",row=>row.retained),
    sizeColumn("Bytes",row=>row.bytes),blocksColumn,nameColumn("Class")],0,
    row=>showGroup(side,row.group));
  fill(panel,make("div",{class:"bar"},searchRows(table,rows)),
    make("div",{class:"split with-side"},table.box,side));
  if(rows.length)showGroup(side,rows[0].group);
}

// ---- The page

showHead(baseName(data.program),isLeak?"leaks":"blocks in use",[[isLeak?"Leaked":"In use",
  `${amount(data.bytes,"bytes")} in ${count(data.blocks,"block")}`],["Command",data.command],
  ["Process",data.process],
  ["Time",timeText(data.time)],["Exit code",isLeak&&data.exitCode>=0?String(data.exitCode):undefined],
  ["Suppressed",data.suppressed.blocks?sumText(data.suppressed):undefined],
  ["Still reachable",data.reachable.blocks?sumText(data.reachable):undefined],
  ["Not examined",data.notExamined?count(data.notExamined,"block"):undefined]]);
if(data.blocks)
  showTabs([
    {id:"retainers",label:"Retainers",
      value:amount(data.bytes,"bytes"),show:showRetainers},
    {id:"classes",label:"Classes",value:amount(classes.length),show:showGroups},
    ...data.groups.some(group=>group.places.length)?[{id:"places",label:"Call stacks",
      value:amount(allStacks.length),
      show:showPlaces}]:[],
    {id:"json",label:"Data",value:"JSON",
      show:panel=>showData(panel,data,baseName(data.program)+".leaks.json")}],location.hash.slice(1));
else fill($("main"),make("p",{},data.notExamined?
  "Unknown: there was no memory to examine the blocks.":"No leaks: every block was freed."));
