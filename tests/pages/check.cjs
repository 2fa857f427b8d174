// Checks the pages of profiles, leaks and black boxes in Chromium. Called by run.sh: node check.cjs FOLDER
"use strict";
const fs=require("fs"),path=require("path"),puppeteer=require("puppeteer-core");
const out=process.argv[2],axe=require.resolve("axe-core/axe.min.js");
let passed=0,failed=0;

function check(name,isRight,found){
  if(isRight)passed++;else failed++;
  if(!isRight)console.log(`FAILED: ${name}${found===undefined?"":": "+JSON.stringify(found)}`);
}
const same=(name,expected,found)=>check(name,expected===found,{expected,found});

// ---- What was written

const fileOf=(folder,end)=>{
  const found=fs.readdirSync(path.join(out,folder)).filter(name=>name.endsWith(end));
  if(found.length!=1)throw new Error(`${folder}: ${found.length} files *${end}`);
  return path.join(out,folder,found[0]);
};
const read=file=>fs.readFileSync(file,"utf8");
// The file for speedscope of a run, which the pages are compared with.
const speedscopeOf=folder=>JSON.parse(read(fs.readdirSync(path.join(out,folder))
  .filter(name=>/_heap\..*speedscope.json$/.test(name)).map(name=>path.join(out,folder,name))[0]));

// A page with other data: one of profiles, or that of another folder.
function pageWith(name,data,folder="after"){
  const page=read(fileOf(folder,".html")),mark='id="data">';
  const start=page.indexOf(mark)+mark.length,end=page.indexOf("</script>",start);
  const file=path.join(out,name+".html");
  fs.writeFileSync(file,page.slice(0,start)+JSON.stringify(data).replace(/</g,"\\u003c")
    +page.slice(end));
  return file;
}

// As the reports write them.
function amountOf(bytes){
  const size=Math.abs(bytes),sign=bytes<0?"\u2212":"";
  const grouped=text=>text.replace(/^\d+/,whole=>whole.replace(/\B(?=(\d{3})+$)/g,","));
  if(size>=2**30)return sign+grouped((size/2**30).toFixed(1))+" GB";
  if(size>=2**20)return sign+grouped((size/2**20).toFixed(1))+" MB";
  if(size>=10000)return sign+grouped((size/2**10).toFixed(1))+" KB";
  return sign+grouped(String(size))+" B";
}
const changeOf=bytes=>(bytes>0?"+":"")+amountOf(bytes);
// The sum of a value where the stack, as names and lines, fits.
function sumOf(file,value,fits){
  const values=file.profiles.find(profile=>profile.name==value);
  return values.samples.reduce((sum,stack,i)=>
    sum+(fits(stack.map(index=>file.shared.frames[index]))?values.weights[i]:0),0);
}
const all=()=>true;
const through=name=>stack=>stack.some(frame=>frame.name==name);
// Where the program's own code allocates: the innermost frame that has a line.
const endsIn=name=>stack=>{
  const own=stack.filter(frame=>frame.line);
  return own.length>0&&own[own.length-1].name==name;
};
const lineOf=(file,planted)=>read(path.join(__dirname,file)).split("\n")
  .findIndex(line=>line.endsWith("// planted: "+planted))+1;

// ---- The browser

// Milliseconds after which the browser hangs, on a busy machine.
const patience=300000;
let browser;
async function open(file,{width=1280,height=900,scheme="light"}={}){
  const page=await browser.newPage();
  page.setDefaultTimeout(patience);
  page.wrong=[];
  page.on("console",message=>page.wrong.push("console: "+message.text()));
  page.on("pageerror",error=>page.wrong.push("error: "+error.message));
  page.on("request",request=>{
    if(!/^(file|blob|data):/.test(request.url()))page.wrong.push("network: "+request.url());
  });
  await page.setViewport({width,height});
  await page.emulateMediaFeatures([{name:"prefers-color-scheme",value:scheme}]);
  await page.goto("file://"+file);
  page.label=`${path.basename(path.dirname(file))}/${path.basename(file).replace(/\.\d+/,"")} `+
    `${width} ${scheme}`;
  return page;
}
async function close(page){
  check(page.label+": nothing wrong",page.wrong.length==0,page.wrong);
  await page.close();
}
const tabsOf=page=>page.$$eval("[role=tab]",tabs=>tabs.map(tab=>tab.id.slice(4)));
async function choose(page,tab){
  await page.click("#tab-"+tab);
  await page.evaluate(()=>new Promise(done=>requestAnimationFrame(()=>requestAnimationFrame(done))));
}
const text=(page,selector)=>page.$eval(selector,element=>element.textContent);
const active=(page,read)=>page.evaluate(
  `(${read})(document.activeElement)`);
// Presses a key until the focus is where it is wanted; false when it never comes there.
async function pressUntil(page,key,wanted,most=60){
  for(let i=0;i<most;i++){
    await page.keyboard.press(key);
    if(await active(page,wanted))return true;
  }
  return false;
}
// The text of a column in the row whose name is given; undefined when there is none.
const cell=(page,name,column)=>page.$$eval("tbody tr",(rows,name,column)=>{
  const nameOf=row=>[...row.querySelector(".text").children].map(part=>
    part.classList.contains("place")?"":part.textContent).join("").trim();
  const row=rows.find(row=>nameOf(row)==name);
  return row&&(row.cells[column].querySelector("span span, span")||row.cells[column]).firstChild
    .textContent;
},name,column);

// ---- Checks of every page

async function looks(file,picture,widths=[360,1280,3840]){
  for(const width of widths)
    for(const scheme of ["light","dark"]){
      const page=await open(file,{width,height:width<1000?800:width*.7|0,scheme});
      await page.addScriptTag({path:axe});
      for(const tab of await tabsOf(page)){
        await choose(page,tab);
        const over=await page.evaluate(()=>document.documentElement.scrollWidth-innerWidth);
        check(`${page.label} ${tab}: no horizontal overflow`,over<=0,over);
        const cut=await page.$$eval("[role=tab]",tabs=>tabs.filter(tab=>tab.scrollWidth>
          tab.clientWidth||[...tab.children].some(part=>part.offsetWidth>tab.clientWidth)).length);
        check(`${page.label} ${tab}: no number leaves its card`,cut==0,cut);
        const rows=await page.$$eval("[role=tab]",tabs=>
          new Set(tabs.map(tab=>tab.offsetTop)).size);
        check(`${page.label} ${tab}: tabs in one line`,width<1280||rows==1,rows);
        const violations=await page.evaluate(async()=>(await axe.run()).violations.map(one=>
          `${one.id}: ${one.nodes.length} times, ${one.nodes[0].html.slice(0,120)}`));
        check(`${page.label} ${tab}: accessible`,violations.length==0,violations);
        await page.screenshot({path:path.join(out,"pictures",
          `${picture}-${tab}-${width}-${scheme}.png`)});
      }
      await close(page);
    }
}

async function keyboard(file){
  const page=await open(file),tabs=await tabsOf(page);
  check(page.label+": Tab reaches the tabs",
    await pressUntil(page,"Tab",'element=>element.role=="tab"'));
  for(let i=1;i<=tabs.length;i++){
    await page.keyboard.press("ArrowRight");
    same(page.label+": arrows choose a tab","tab-"+tabs[i%tabs.length],await active(page,
      'element=>element.getAttribute("aria-selected")=="true"?element.id:element.tagName'));
  }
  check(page.label+": Tab reaches the picture",
    await pressUntil(page,"Tab",'element=>element.getAttribute("role")=="treeitem"'));
  const level=()=>active(page,'element=>Number(element.getAttribute("aria-level"))');
  const first=await level();
  await page.keyboard.press("ArrowDown");
  same(page.label+": an arrow goes to what is called",first+1,await level());
  const isZoomed=()=>page.$$eval("button",all=>
    all.some(button=>button.textContent=="Show all"&&!button.hidden));
  await page.keyboard.press("Enter");
  check(page.label+": Enter zooms in",await isZoomed());
  same(page.label+": the focus stays",first+1,await level());
  await page.keyboard.press("Escape");
  check(page.label+": Escape zooms out",!await isZoomed());
  await page.keyboard.press("/");
  same(page.label+": a slash searches","find",await active(page,"element=>element.id"));
  check(page.label+": Tab reaches a heading",
    await pressUntil(page,"Tab",'element=>element.closest("th")!=null'));
  const order=()=>active(page,'element=>element.closest("th").getAttribute("aria-sort")');
  await page.keyboard.press("Enter");
  const sorted=await order();
  await page.keyboard.press("Enter");
  check(page.label+": a heading sorts both ways",sorted&&await order()&&sorted!=await order(),sorted);
  check(page.label+": Tab reaches a row",
    await pressUntil(page,"Tab",'element=>element.hasAttribute("aria-expanded")'));
  const expanded=()=>active(page,'element=>element.getAttribute("aria-expanded")');
  const before=await expanded();
  await page.keyboard.press("Enter");
  check(page.label+": Enter opens a row",before!=await expanded());
  await close(page);
}

// ---- Profiles

async function profile(){
  const page=await open(fileOf("after",".html")),file=speedscopeOf("after");
  const product="CATALOGUE.TPRODUCT.CREATE",session="SESSIONS.TSESSION.CREATE";
  same("opens on in use","true",
    await page.$eval("#tab-inuse",tab=>tab.getAttribute("aria-selected")));
  for(const [tab,value] of [["inuse","inuse_space"],["allocated","alloc_space"]]){
    await choose(page,tab);
    same(tab+": total",amountOf(sumOf(file,value,all)),await text(page,`#tab-${tab} b`));
    for(const name of [product,session]){
      same(`${tab}: total of ${name}`,amountOf(sumOf(file,value,through(name))),
        await cell(page,name,1));
      same(`${tab}: self of ${name}`,amountOf(sumOf(file,value,endsIn(name))),
        await cell(page,name,0));
    }
  }
  await choose(page,"inuse");
  same("the routine with most comes first",product,
    await page.$eval("tbody tr .open",name=>name.textContent));
  same("its lines beside it",lineOf("Catalogue.pas","text"),
    Number((await text(page,"tbody tr .place")).match(/Catalogue\.pas:(\d+)/)[1]));
  same("the line with most comes first","Catalogue.pas:"+lineOf("Catalogue.pas","text"),
    await text(page,".advice b"));
  check("the head says which line has most",(await text(page,".verdict")).includes(
    "% of it was allocated at Catalogue.pas:"+lineOf("Catalogue.pas","text")),
    await text(page,".verdict"));
  check("at most ten lines",await page.$$eval(".advice li",all=>all.length)<=10);
  const bars=await page.$$eval(".picture div",all=>all.map(bar=>bar.textContent));
  check("a bar has its line",bars.includes("SHOP.SERVE Shop.lpr:"+lineOf("Shop.lpr","serve")),bars);
  check("a narrow bar has its routine, no unit",bars.includes("TCART.PUT")||bars.includes("PUT"),bars);
  const rate=JSON.parse(await text(page,"#data")).head.rate;
  for(const [tab,value] of [["peak","peak_space"],["inuse","inuse_space"]]){
    await choose(page,tab);
    const most=(100*Math.sqrt(rate/sumOf(file,value,all))).toFixed(1);
    check(tab+": the error is that of its sum",(await text(page,"#panel")).includes(
      `Standard error of these bytes by sampling: at most ${most} %`),most);
  }
  check("one number in use: the tab's",!/In use/.test(await text(page,"#head"))
    &&/All blocks in use, as large as they are, have [\d.]+ MB/.test(await text(page,"#panel")));
  const heap=JSON.parse(await text(page,"#data")).profiles.find(({kind})=>kind=="heap");
  const place=heap.columns.findIndex(({name})=>name=="fragment_space");
  const kept=heap.sites.reduce((sum,site)=>sum+site.values[place],0);
  const free=heap.sizes.reduce((sum,{free_space=0})=>sum+free_space,0);
  check("fragments: at most what the spans have free",kept<=free,{kept,free});
  await choose(page,"inuse");
  same("units named as packages are libraries where they have no lines","false,true",
    await page.evaluate(()=>{
      const frames=[{name:"JSONIMPORT.LOAD",file:"jsonimport.pas",line:9},
        {name:"FPJSON.TJSONDATA.CREATE"}];
      markLibraries(frames);
      return frames.map(frame=>frame.isLibrary).join();
    }));
  for(const [name,short] of [["SESSIONS.TCART.PUT","PUT"],["main","main"],
      ["std::map<int, std::less<int> >::operator[](int&&)","operator[]"],
      ["(anonymous namespace)::load(char const*)","load"],["libc.so.6+0x2724a","libc.so.6+0x2724a"]])
    same("the shortest name of "+name,short,await page.evaluate(name=>namesOf(name).pop(),name));
  check("no library frames",!/CLASSES\.|CONTNRS\./.test(await text(page,"#panel")));
  await page.click("tbody tr .open");
  check("a row opens by line",/^Catalogue\.pas:\d+$/.test(
    await page.$eval("tr.inner .text",cell=>cell.textContent)));
  await page.$$eval("label",all=>
    all.find(label=>label.textContent.includes("library")).querySelector("input").click());
  check("library frames",/CLASSES\.TSTRINGLIST/.test(await text(page,"#panel")));
  await page.type("#find","tproduct");
  same("search: rows",1,await page.$$eval("tbody tr:not(.inner)",rows=>rows.length));
  check("search: found in the picture",await page.$$eval(".found",all=>all.length)>0);
  same("search: sum",amountOf(sumOf(file,"inuse_space",through(product))),
    (await text(page,".bar [role=status]")).split(" found")[0]);
  const dark=()=>page.$eval("body",body=>getComputedStyle(body).backgroundColor);
  const light=await dark();
  await page.select("select","dark");
  check("a switch for dark colors",light!=await dark());
  check("head",/Command.*Shop 40000.*Process\d+.*Time20\d\d-.* UTC.*16\.0 KB/.test(
    await text(page,"#head")),await text(page,"#head"));
  await close(page);
}

async function comparison(){
  const before=speedscopeOf("before"),after=speedscopeOf("after");
  const name="SESSIONS.TSESSION.CREATE",value="inuse_space";
  const checkAll=async(page,how,sign)=>{
    const [first,second]=sign>0?[before,after]:[after,before];
    same(how+": total",changeOf(sumOf(second,value,all)-sumOf(first,value,all)),
      await text(page,"#tab-inuse b"));
    same(how+": change of a row",changeOf(sumOf(second,value,through(name))
      -sumOf(first,value,through(name))),await cell(page,name,1));
    same(how+": before",amountOf(sumOf(first,value,through(name))),await cell(page,name,2));
    same(how+": after",amountOf(sumOf(second,value,through(name))),await cell(page,name,3));
  };
  const page=await open(fileOf("after",".html"));
  await (await page.$("#file")).uploadFile(fileOf("before",".html"));
  await page.waitForSelector("#note:not(:empty)");
  await checkAll(page,"a chosen file",1);
  check("more is shown as such",await page.$$eval(".picture .more",all=>all.length)>0);
  await page.addScriptTag({path:axe});
  const violations=await page.evaluate(async()=>(await axe.run()).violations.map(one=>one.id));
  check("comparison: accessible",violations.length==0,violations);
  await page.screenshot({path:path.join(out,"pictures","comparison.png")});
  await page.$$eval("button",all=>all.find(button=>button.textContent=="Swap").click());
  await checkAll(page,"swapped",-1);
  await page.$$eval("button",all=>all.find(button=>button.textContent=="End comparison").click());
  same("after the comparison",amountOf(sumOf(after,value,all)),await text(page,"#tab-inuse b"));
  const drop=files=>page.evaluate(files=>{
    const data=new DataTransfer();
    for(const [name,text] of files)data.items.add(new File([text],name));
    document.dispatchEvent(new DragEvent("drop",{dataTransfer:data,cancelable:true}));
  },files);
  await drop([["one.json",JSON.stringify(before)],["two.html",read(fileOf("after",".html"))]]);
  await page.waitForFunction(()=>document.getElementById("note").textContent.includes("one.json"));
  await checkAll(page,"two dropped files",1);
  await drop([["wrong.html","<p>nothing"]]);
  await page.waitForFunction(()=>document.getElementById("note").textContent.includes("wrong"));
  check("a wrong file is named",/wrong\.html holds no profile/.test(await text(page,"#note")));
  await close(page);
}

// The example of docs/profile-data.md: every tab.
async function example(file){
  const page=await open(file),data=JSON.parse(read(file).split('id="data">')[1].split("</script>")[0]);
  same("tabs","inuse,peak,allocated,temporary,leaks,time,classes,sizes,lives,slack,fragments,growth,frees",
    (await tabsOf(page)).join());
  const heap=data.profiles.find(profile=>profile.kind=="heap");
  await choose(page,"peak");
  same("peak",amountOf(heap.peak.space),await text(page,"#tab-peak b"));
  await choose(page,"leaks");
  same("leaks: nothing of what was freed",undefined,await cell(page,"SERVER.TCACHE.ADD",0));
  same("sampled leaks",amountOf(3840000),await cell(page,"SERVER.TSESSION.CREATE",0));
  check("leaks, exactly",(await text(page,"#panel")).includes(
    `${amountOf(heap.leaks.space)} in 39,512 blocks`));
  await choose(page,"time");
  const highest=heap.line.inuse_space.indexOf(Math.max(...heap.line.inuse_space));
  const told=point=>`${amountOf(heap.line.inuse_space[point])} in use, `+
    `${amountOf(heap.line.committed[point])} held from the system`;
  check("time line: begins at its highest point",
    (await text(page,"output")).endsWith(told(highest)),await text(page,"output"));
  same("time line: by routine at that point",amountOf(heap.line.inuse_space[highest]),
    await cell(page,"main",1));
  await page.focus("#point");
  await page.keyboard.press("Home");
  check("time line: first point",(await text(page,"output")).endsWith(told(0)));
  same("time line: by routine at the first point",amountOf(heap.line.inuse_space[0]),
    await cell(page,"main",1));
  await choose(page,"classes");
  same("bytes of a class",amountOf(3840000),await cell(page,"Server.TSession",0));
  await choose(page,"sizes");
  same("bytes of a size",amountOf(640000),await cell(page,"640 B",0));
  await choose(page,"lives");
  same("freed blocks","8,000",await cell(page,"SERVER.TCACHE.ADD",0));
  same("mean lifetime","2 s",await cell(page,"SERVER.TCACHE.ADD",1));
  await choose(page,"growth");
  check("growth: the advice of the log",(await text(page,".advice")).includes(
    "Server.lpr:12 grew an AnsiString 51,000 times, 7.7 MB copied: call SetLength once"),
    await text(page,".advice"));
  await choose(page,"frees");
  check("remote frees are no waits",(await text(page,"#panel")).includes("No thread waits"));
  same("remote frees","1,234",await text(page,"#tab-frees b"));
  await close(page);
}

// The tab of leaks in the profile of a program's end: what the samples say, as the page has it, and
// that against the report of all leaks.
async function lost(){
  const page=await open(fileOf("lost",".html"),{height:896}),exact=JSON.parse(read(fileOf("lost",".json")));
  const heap=JSON.parse(await text(page,"#data")).profiles.find(({kind})=>kind=="heap");
  const index=heap.columns.findIndex(({name})=>name=="leak_space");
  const sampled=(fits,column=index)=>heap.sites.reduce((sum,site)=>
    sum+(fits(site.stack.map(frame=>heap.frames[frame]))?site.values[column]:0),0);
  const planted=name=>exact.groups.flatMap(group=>group.places).reduce((sum,place)=>
    sum+(place.stack.some(frame=>frame.routine==name)?place.blocks:0),0);
  same("blocks as in the report of leaks",exact.blocks,heap.leaks.objects);
  same("bytes as in the report of leaks",exact.bytes,heap.leaks.space);
  const told=`${amountOf(exact.bytes)} in ${exact.blocks.toLocaleString("en")} blocks`;
  check("the head has the leaks",(await text(page,"#head")).includes("Leaked"+told),
    await text(page,"#head"));
  await choose(page,"leaks");
  check("the tab has them, too",(await text(page,"#panel")).includes("exactly "+told));
  same("leaks: total",amountOf(sampled(all)),await text(page,"#tab-leaks b"));
  for(const name of ["SESSIONS.TSESSION.CREATE","SESSIONS.TCART.PUT"]){
    same("leaks: total of "+name,amountOf(sampled(through(name))),await cell(page,name,1));
    // About 280 samples each: a standard deviation of 7 %.
    const blocks=sampled(through(name),index-1);
    check("leaks: blocks of "+name,Math.abs(blocks/planted(name)-1)<.35,[blocks,planted(name)]);
  }
  same("leaks: nothing of what was freed",undefined,await cell(page,"CATALOGUE.TPRODUCT.CREATE",1));
  check("leaks: the line",(await page.$$eval("tbody .open",all=>all.map(button=>{
    if(button.textContent=="SESSIONS.TCUSTOMER.CREATE")button.click();
  }))).length>0&&(await text(page,"#panel")).includes(
    "Sessions.pas:"+lineOf("Sessions.pas","account")),await text(page,"#panel"));
  await page.$$eval("fieldset input",all=>all.find(input=>input.value=="flame").click());
  check("leaks: a flame graph",await page.$$eval(".picture div",all=>all.length)>3);
  await page.screenshot({path:path.join(out,"pictures","lost.png")});
  await page.type("#find","tsession.create");
  same("leaks: search",amountOf(sampled(through("SESSIONS.TSESSION.CREATE"))),
    (await text(page,".bar [role=status]")).split(" found")[0]);
  await close(page);
  const freed=await open(fileOf("freed",".html"));
  check("nothing leaked",/Leakednothing/.test(await text(freed,"#head")),await text(freed,"#head"));
  check("no tab without leaks",!(await tabsOf(freed)).includes("leaks"));
  await close(freed);
  const none=await open(fileOf("after",".html"));
  check("leaks that nothing looked for",!/Leaked/.test(await text(none,"#head")));
  await close(none);
}
// Pages without samples of blocks: events of threads, and growth.
async function events(){
  for(const [folder,title,tab] of [["contended","contention","frees"],["grown","growth","growth"]]){
    const page=await open(fileOf(folder,".html"));
    const head=await text(page,"#head");
    check(folder+": title",(await page.title()).endsWith(": "+title),await page.title());
    same(folder+": tabs",tab,(await tabsOf(page)).join().replace(",locks",""));
    check(folder+": nothing of samples",!/Rate|Samples|Error/.test(head),head);
    check(folder+": ran for less than an hour",/Ran for[\d.]{1,6} s/.test(head),head);
    await close(page);
  }
}

// Leaks of which no block is a sample.
async function unsampled(){
  const page=await open(pageWith("unsampled",{head:{},profiles:[{kind:"heap",
    frames:[{name:"main",file:"a.c",line:1}],sites:[{stack:[0],values:[1,64,0,0]}],
    leaks:{objects:1,space:80},columns:[{name:"inuse_objects"},{name:"inuse_space"},
    {name:"leak_objects"},{name:"leak_space"}]}]}));
  await choose(page,"leaks");
  check("leaks without a sample",/exactly 80 B in 1 block.*No sample/.test(
    await text(page,"#panel")),await text(page,"#panel"));
  await close(page);
}

// Both sides of each border between two units.
async function amounts(){
  for(const [bytes,written] of [[999,"999 B"],[9999,"9,999 B"],[10000,"9.8 KB"],
      [1043866,"1,019.4 KB"],[2**20,"1.0 MB"],[1072693248,"1,023.0 MB"],[2**30,"1.0 GB"]]){
    const page=await open(pageWith("amounts",{head:{},profiles:[{kind:"heap",
      frames:[{name:"main",file:"a.c",line:1}],sites:[{stack:[0],values:[1,bytes]}],
      columns:[{name:"inuse_objects"},{name:"inuse_space",unit:"bytes"}]}]}));
    same(`${bytes} bytes`,written,await text(page,"#tab-inuse b"));
    same(`${bytes} bytes here`,written,amountOf(bytes));
    await close(page);
  }
}

// Names that look like markup are text, and many call sites are drawn.
async function odd(){
  const name='std::map<int, "x">::operator[]</script><img src=x onerror=alert(1)>';
  const frames=[{name:"main",file:"a.c",line:1},{name,file:"a.c",line:2}];
  for(let i=0;i<400;i++)frames.push({name:"Unit"+i%40+".Routine"+i,file:"b.pas",line:i+1});
  const sites=[];
  for(let i=0;i<8000;i++)
    sites.push({stack:[0,...i%2?[1]:[],...Array.from({length:30},(_,k)=>2+(i*7+k*(i%13))%400)],
      values:[1,i]});
  const page=await open(pageWith("odd",{head:{},profiles:[{kind:"heap",frames,sites,columns:[
    {name:"inuse_objects"},{name:"inuse_space"}]}]}));
  check("markup in a name is text",(await text(page,"#panel")).includes(name));
  same("no element of it",0,await page.$$eval("img",all=>all.length));
  check("many call sites are drawn",await page.$$eval(".picture div",all=>all.length)>200);
  await close(page);
  const empty=await open(pageWith("empty",{head:{},profiles:[]}));
  check("no samples",/No samples/.test(await text(empty,"#main")));
  await close(empty);
}

// ---- Leaks

async function leaks(){
  const file=fileOf("leaks",".html"),page=await open(file);
  const report=JSON.parse(read(fileOf("leaks",".json"))),log=read(fileOf("leaks","EventLog.txt"));
  const [,blocks,bytes]=log.match(/([\d,]+) blocks?, ([\d,]+) bytes/);
  const number=text=>Number(text.replace(/,/g,""));
  same("blocks as in the text",number(blocks),report.blocks);
  same("bytes as in the text",number(bytes),report.bytes);
  check("head",(await text(page,"#head")).includes(
    `${amountOf(report.bytes)} in ${blocks} blocks`),await text(page,"#head"));
  same("total of the retainers",amountOf(report.bytes),await text(page,"#tab-retainers b"));
  const store=report.groups.find(group=>group.name=="Sessions.TStore");
  same("retained size",amountOf(store.retained),await cell(page,store.name,0));
  await page.$$eval(".picture div",all=>
    all.find(tile=>tile.textContent.startsWith("Sessions.TCustomer")).click());
  check("a click leads to the stack",(await text(page,".side")).includes(
    "Sessions.pas:"+lineOf("Sessions.pas","customer")),await text(page,".side"));
  check("the chain of retainers",/Sessions\.TStore.*Sessions\.TSession/.test(
    await text(page,".side .chain")));
  await page.$$eval("fieldset input",all=>all.find(input=>input.value=="icicle").click());
  check("an icicle",await page.$$eval(".picture div",all=>all.length)>5);
  await choose(page,"classes");
  for(const group of report.groups.filter(group=>report.groups.filter(
    other=>other.name==group.name).length==1)){
    same("retained by "+group.name,amountOf(group.retained),await cell(page,group.name,0));
    same("bytes of "+group.name,amountOf(group.bytes),await cell(page,group.name,1));
  }
  await choose(page,"places");
  const stacked=report.groups.flatMap(group=>group.places).reduce((sum,place)=>sum+place.bytes,0);
  same("bytes of all stacks",amountOf(stacked),await cell(page,"main",0));
  await choose(page,"json");
  same("the same JSON",report.bytes,JSON.parse(await text(page,"pre")).bytes);
  await close(page);
  const clean=await open(fileOf("clean",".html"));
  check("a program without leaks",/No leaks/.test(await text(clean,"#main")),
    await text(clean,"#main"));
  await close(clean);
}

// The rows of a tree, as they are shown.
const rowsOf=page=>page.$$eval("tbody tr",rows=>rows.map(row=>({depth:row.depth,name:row.row.name,
  bytes:row.cells[0].querySelector("span span, span").firstChild.textContent})));
const layout=(page,name)=>page.$$eval("fieldset input",(all,name)=>
  all.find(input=>input.value==name).click(),name);
const inRow=(page,read)=>active(page,`element=>{const row=element.closest("tr");return ${read};}`);
// What a tree of a report has to show where all is open: roots first, by retained size.
function expectedRows(report){
  const below=[[]],names=new Map(report.groups.map(group=>[group.group,group.name]));
  const total=number=>report.retainerTree[number-1].bytes+
    below[number].reduce((sum,inner)=>sum+total(inner),0);
  report.retainerTree.forEach((path,i)=>{below[i+1]=[];below[path.parent].push(i+1);});
  const rows=(numbers,depth)=>numbers.map(number=>({number,
    bytes:total(number),name:names.get(report.retainerTree[number-1].group)}))
    .sort((a,b)=>b.bytes-a.bytes||(a.name<b.name?-1:1))
    .flatMap(row=>[{depth,name:row.name,bytes:amountOf(row.bytes)},
      ...rows(below[row.number],depth+1)]);
  return rows(below[0],0);
}
async function openAll(page){
  await page.focus("tbody button");
  const rows=(await rowsOf(page)).filter(row=>row.depth==0).length;
  for(let i=0;i<rows;i++){
    await page.keyboard.press("*");
    while(await inRow(page,"row.nextSibling&&row.nextSibling.depth>0"))
      await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowDown");
  }
}
const clean=async page=>{
  const violations=await page.evaluate(async()=>(await axe.run()).violations.map(one=>one.id));
  check(page.label+": the tree is accessible",violations.length==0,violations);
};

// The tree of leaks, by the keys alone.
async function leakTree(){
  const report=JSON.parse(read(fileOf("leaks",".json"))),expected=expectedRows(report);
  const page=await open(fileOf("leaks",".html"));
  await page.addScriptTag({path:axe});
  await layout(page,"tree");
  same("the tree is no picture",0,await page.$eval(".picture",picture=>picture.offsetHeight));
  await openAll(page);
  same("roots first, by retained size",JSON.stringify(expected),JSON.stringify(await rowsOf(page)));
  await page.keyboard.press("Home");
  same("Home leads to the first row",expected[0].name,await inRow(page,"row.row.name"));
  await page.keyboard.press("ArrowLeft");
  same("Left closes a row",expected.filter(row=>row.depth==0).length,(await rowsOf(page)).length);
  await page.keyboard.press("ArrowRight");
  same("Right opens it",expected[1].name,(await rowsOf(page))[1].name);
  await page.keyboard.press("ArrowDown");
  same("Down leads to what it retains",1,await inRow(page,"row.depth"));
  same("the details are those of the row",expected[1].name,await text(page,".side h2"));
  await page.keyboard.press("ArrowLeft");
  await page.keyboard.press("ArrowLeft");
  same("Left leads up",0,await inRow(page,"row.depth"));
  await page.keyboard.press("ArrowLeft");
  await page.type("#find","taccount");
  same("a search opens the rows above","Sessions.TAccount",await text(page,"tr.found .text"));
  await clean(page);
  await page.screenshot({path:path.join(out,"pictures","leak-tree.png")});
  await close(page);
}

// What holds the memory of a process: the tree of `lanemm why`.
async function held(){
  const report=JSON.parse(read(fileOf("held",".json"))),page=await open(fileOf("held",".html"));
  await page.addScriptTag({path:axe});
  check("what holds memory is no leak",/^Planted: blocks in use$/.test(await page.title()),
    await page.title());
  await openAll(page);
  const rows=await rowsOf(page),kept=rows.findIndex(row=>row.name=="variable PLANTED.KEPT");
  same("the tree of lanemm why",JSON.stringify(expectedRows(report)),JSON.stringify(rows));
  same("from a variable to what it alone holds","0 variable PLANTED.KEPT,1 dynamic array,"
    +"2 Planted.TGamma,3 Planted.TAlpha",
    rows.slice(kept,kept+4).map(row=>`${row.depth} ${row.name}`).join());
  check("no call stacks are missed",!/setting stacks/.test(await text(page,".side")));
  await clean(page);
  await page.focus("tbody button");
  await page.keyboard.press("Home");
  await page.screenshot({path:path.join(out,"pictures","held-tree.png")});
  await choose(page,"classes");
  same("a variable is no class",undefined,await cell(page,"variable PLANTED.KEPT",0));
  await close(page);
}

// 50,000 leaks below 50 others, of 10,050 chains; siblings of one size are in the order of their names.
async function manyLeaks(){
  const groups=[],retainerTree=[],add=(name,blocks,bytes)=>groups.push({group:groups.length,name,blocks,
    bytes,retained:bytes,texts:[],retainers:[],places:[]})-1;
  const inner=Array.from({length:200},(_,i)=>add("Many.TInner"+(1000-i),250,250*32));
  for(let root=0;root<50;root++){
    const parent=retainerTree.push({parent:0,group:add("Many.TRoot"+root,1,64+root),blocks:1,
      bytes:64+root,cycle:false});
    for(const group of inner)
      retainerTree.push({parent,group,blocks:5,bytes:5*32,cycle:false});
  }
  const sum=what=>groups.reduce((sum,group)=>sum+group[what],0),none={blocks:0,bytes:0};
  const page=await open(pageWith("many",{program:"Many",process:1,time:0,topic:"leaks",blocks:sum("blocks"),
    bytes:sum("bytes"),suppressed:none,reachable:none,groups,retainerTree},"leaks"));
  same("blocks",50050,sum("blocks"));
  await layout(page,"tree");
  await page.focus("tbody button");
  same("the root that retains most","Many.TRoot49",await inRow(page,"row.row.name"));
  await page.keyboard.press("ArrowRight");
  let rows=await rowsOf(page);
  same("below it by name","Many.TInner1000",rows[1].name);
  same("a hundred of them",150,rows.length);
  await page.click(".all");
  rows=await rowsOf(page);
  same("and all",250,rows.length);
  await page.type("#find","tinner999");
  same("found below each root",50,await page.$$eval("tr.found",all=>all.length));
  await close(page);
}

// The page that lanemm writes of the leaks of another process.
async function outside(){
  const page=await open(fileOf("outside",".html"));
  const report=JSON.parse(read(fileOf("outside",".json")));
  same("total of the leaks from outside",amountOf(report.bytes),await text(page,"#tab-retainers b"));
  check("no exit code of a process that runs",!/Exit code/.test(await text(page,"#head")),
    await text(page,"#head"));
  const group=report.groups.find(group=>group.name=="Planted.TGamma");
  same("retained from outside",amountOf(group.retained),await cell(page,group.name,0));
  await choose(page,"classes");
  same("leaks of a class from outside",amountOf(group.bytes),await cell(page,group.name,1));
  await close(page);
}

// The page of a program that was killed.
async function box(){
  const page=await open(fileOf("box",".html")),report=JSON.parse(read(fileOf("box",".json")));
  same("tabs of a box","held,time,sizes,regions,threads,events,json",(await tabsOf(page)).join());
  const line=read(path.join(__dirname,"../programs/Boxed.lpr")).split("\n")
    .findIndex(line=>line.endsWith("// planted: page"))+1;
  const first=new RegExp("^Killed at .* (of a soft limit of 20\\.0 MB|in a container .*); .* are Boxed\\.TCachedPage, "+
    `allocated at Boxed\\.lpr:${line}; .* in the last \\d+ s; 6 threads\\.$`);
  check("the sentence comes first",first.test(await text(page,"#note")),await text(page,"#note"));
  const site=report.sites[0];
  same("bytes of the class",amountOf(site.bytes),await cell(page,"Boxed.TCachedPage",0));
  await page.$$eval("fieldset input",all=>all.find(input=>input.value=="peak_bytes").click());
  same("bytes at the peak",amountOf(site.peak_bytes),await cell(page,"Boxed.TCachedPage",0));
  check("the stack beside it",(await text(page,".side")).includes("Boxed.lpr:"+line));
  await choose(page,"threads");
  same("bytes of the main thread",amountOf(report.threads.find(
    thread=>thread.thread==report.head.process).bytes),await cell(page,"Boxed",0));
  await choose(page,"regions");
  same("memory of a region",amountOf(report.regions[0].committed),await cell(page,"requests",0));
  await choose(page,"sizes");
  same("memory of a size",amountOf(report.sizes.find(({size})=>size==4096).span_bytes),
    await cell(page,"4,096 B",0));
  await choose(page,"events");
  check("the last event",/Soft memory limit exceeded/.test(await text(page,"#panel")));
  await choose(page,"time");
  const last=report.seconds[report.seconds.length-1];
  const time=new Date(1000*last[0]).toISOString().replace("T"," ").replace(".000Z"," UTC");
  same("memory at a time",amountOf(last[2]),await cell(page,time,1));
  await close(page);
}

async function run(){
  browser=await puppeteer.launch({executablePath:process.env.CHROMIUM||"/usr/bin/chromium",
    args:["--no-sandbox","--disable-gpu","--disable-dev-shm-usage"],
    timeout:patience,protocolTimeout:patience});
  const full=pageWith("example",JSON.parse(read(path.join(__dirname,"../formats/profile-data.json"))));
  const parts=[profile,comparison,()=>example(full),lost,events,unsampled,amounts,odd,leaks,leakTree,held,manyLeaks,outside,box,
    ()=>keyboard(fileOf("after",".html")),()=>keyboard(fileOf("leaks",".html")),
    ()=>looks(fileOf("after",".html"),"profile"),()=>looks(full,"example"),
    ()=>looks(fileOf("contended",".html"),"contended"),()=>looks(fileOf("grown",".html"),"grown"),
    ()=>looks(fileOf("leaks",".html"),"leaks"),()=>looks(fileOf("box",".html"),"box",[360,1280])];
  for(const part of parts)
    try{
      await part();
    }catch(error){
      check(part.name||String(part),false,error.stack);
    }
  await browser.close();
  console.log(`${passed} passed, ${failed} failed`);
  process.exitCode=failed?1:0;
}
run();
