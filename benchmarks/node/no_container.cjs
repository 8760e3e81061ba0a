// Desktop Commander adds a page about containers to its descriptions where it finds one. On a user's machine there is none.
const fs = require("fs");
const exists = fs.existsSync;
const read = fs.readFileSync;
fs.existsSync = (path) => path !== "/.dockerenv" && exists(path);
fs.readFileSync = (path, ...rest) => (/^\/proc\/1\//.test(path) ? "" : read(path, ...rest));
