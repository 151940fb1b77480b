// hack/cut-recording.mjs FILE
//
// Lets a recording of asciinema begin with its first output, and joins outputs that come at the same moment, so that
// the first picture is a whole one.
import {readFileSync, writeFileSync} from "node:fs";

const file = process.argv[2], moment = 0.02;
const [header, ...lines] = readFileSync(file, "utf8").trim().split("\n");
const all = [];
let last = -1;
for (const [at, kind, text] of lines.map((l) => JSON.parse(l))) {
  if (all.length > 0 && at - last < moment && all.at(-1)[1] === kind) all.at(-1)[2] += text;
  else all.push([at, kind, text]);
  last = at;
}
const begin = all[0][0];
const shifted = all.map(([at, ...rest]) => JSON.stringify([Number((at - begin).toFixed(3)), ...rest]));
writeFileSync(file, [header, ...shifted].join("\n") + "\n");
