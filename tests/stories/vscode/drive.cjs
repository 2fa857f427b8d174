// Uses VS Code in a browser without a window: runs the task of docs/debugger.md, opens a leak from *Problems*, and asks
// the heap in the debug console. Takes a picture of both.
//
//   node drive.cjs ADDRESS FOLDER
//
// The pictures go to FOLDER. Exit code 1 when something that the page promises does not come about.
"use strict";
const path=require("path");
const puppeteer=require(require.resolve("puppeteer-core",{paths:[process.cwd()]}));
const [address,folder]=process.argv.slice(2);
const patience=60000;
let page;

// Waits for text in the elements of a selector, and returns the first of them that has it.
async function shown(selector,text){
  const found=await page.waitForFunction((selector,text)=>
    [...document.querySelectorAll(selector)].find(each=>each.innerText.replace(/\u00a0/g," ").includes(text)),
  {timeout:patience},selector,text);
  return found.asElement();
}

// Types into the box that opens by keys, and takes the first item, which has to show text.
async function pick(typed,text){
  await page.keyboard.down("Control");
  await page.keyboard.press("p");
  await page.keyboard.up("Control");
  await page.waitForSelector(".quick-input-widget input",{visible:true,timeout:patience});
  await page.keyboard.type(typed);
  await shown(".quick-input-list .monaco-list-row.focused",text);
  await page.keyboard.press("Enter");
  await page.waitForSelector(".quick-input-widget",{hidden:true,timeout:patience});
}

async function picture(name){
  await page.mouse.move(700,5);
  await new Promise(done=>setTimeout(done,1500)); // fades and tooltips
  await page.screenshot({path:path.join(folder,name)});
}

// The report of the task is listed, and a click goes to unit and line.
async function problems(){
  await pick("task Leaks","Leaks");
  await shown(".part.panel .badge-content","");
  await pick(">View: Focus Problems","Problems");
  await shown(".markers-panel .monaco-list-row","orders.pas");
  const line=await shown(".markers-panel .monaco-list-row","ORDERS.TORDER.CREATE");
  await line.click({count:2});
  await shown(".tab.active","orders.pas");
  await shown(".statusbar-item","Ln 26,");
  await picture("vscode-problems.png");
}

// The program stands at a breakpoint, and the debug console asks the heap.
async function debugConsole(){
  await (await shown(".explorer-folders-view .monaco-list-row","server.lpr")).click({count:2});
  await shown(".tab.active","server.lpr");
  await pick(":12","line 12");
  await shown(".statusbar-item","Ln 12,");
  await page.keyboard.press("F9");
  await page.keyboard.press("F5");
  await shown(".debug-call-stack .monaco-list-row","main");
  await pick(">Debug: Focus on Watch View","Watch");
  await (await page.waitForSelector("[aria-label='Add Expression']",{timeout:patience})).click();
  await page.keyboard.type("Order");
  await page.keyboard.press("Enter");
  await shown(".debug-watch .monaco-list-row","TOrder at 0x");
  await pick(">Debug Console: Focus on Debug Console View","Debug Console");
  await page.keyboard.type(">print Order.FLines");
  await page.keyboard.press("Enter");
  await shown(".repl .monaco-list-row","{'for Miller', '1 x keyboard'}");
  await page.keyboard.type(">lanemm at Order");
  await page.keyboard.press("Enter");
  await shown(".repl .monaco-list-row","allocated by thread");
  await picture("vscode-console.png");
}

async function run(){
  const browser=await puppeteer.launch({executablePath:process.env.CHROMIUM||"/usr/bin/chromium",
    args:["--no-sandbox","--disable-gpu","--disable-dev-shm-usage"],timeout:patience,protocolTimeout:patience});
  try{
    page=await browser.newPage();
    await page.setViewport({width:1200,height:760});
    await page.goto(address,{timeout:patience});
    await shown(".explorer-folders-view .monaco-list-row","orders.pas");
    await problems();
    await debugConsole();
  }catch(error){
    await page.screenshot({path:path.join(folder,"failed.png")});
    console.error(error.stack);
    process.exitCode=1;
  }
  await browser.close();
}
run();
