// Makes oracle.tsv: what another implementation says of random cron expressions. Run where cron-parser is installed:
//   npm install cron-parser@4.9.0 && NODE_PATH=node_modules node make_oracle.js 20261130 2000 > oracle.tsv
// Columns: expression, time zone, start and then three times, in seconds since 1970.
'use strict';
const parser = require('cron-parser');

let seed = BigInt(process.argv[2]);
const cases = Number(process.argv[3]);
function random(limit) {
  seed = (seed * 6364136223846793005n + 1442695040888963407n) & ((1n << 64n) - 1n);
  return Number((seed >> 33n) % BigInt(limit));
}

const fields = [
  {min: 0, max: 59}, {min: 0, max: 23}, {min: 1, max: 31},
  {min: 1, max: 12, names: ['JAN', 'FEB', 'MAR', 'APR', 'MAY', 'JUN', 'JUL', 'AUG', 'SEP', 'OCT', 'NOV', 'DEC']},
  {min: 0, max: 6, names: ['SUN', 'MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT']},
];
const zones = ['UTC', 'Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe', 'Asia/Kolkata', 'America/Sao_Paulo',
               'Pacific/Apia', 'Asia/Tehran', 'America/St_Johns', 'Europe/Dublin'];

function text(field, value) {
  return field.names && random(3) === 0 ? field.names[value - field.min] : String(value);
}
function range(field) {
  const low = field.min + random(field.max - field.min), high = low + 1 + random(field.max - low);
  if (low === field.min && high === field.max) return text(field, low); // all of a field: this oracle takes it for *
  return `${text(field, low)}-${text(field, high)}`;
}
function item(field) {
  switch (random(5)) {
    case 0: return range(field);
    case 1: return `${range(field).replace(/^([^-]+)$/, `${field.min}-${field.min + 1}`)}/${1 + random(3)}`;
    default: return text(field, field.min + random(field.max - field.min + 1));
  }
}
function expressionOf(field, stars) {
  if (random(100) < stars) return '*';
  if (random(5) === 0) return `*/${2 + random(field.max > 12 ? 14 : 4)}`;
  const items = [];
  for (let n = 1 + (random(3) === 0 ? random(3) : 0); n > 0; n--) items.push(item(field));
  return items.join(',');
}

for (let made = 0; made < cases;) {
  const expression = [15, 35, 50, 60, 60].map((stars, i) => expressionOf(fields[i], stars)).join(' ');
  const zone = zones[random(zones.length)], start = 1262304000 + random(25 * 365 * 86400); // 2010 and 25 years from then
  const times = [];
  try {
    const walk = parser.parseExpression(expression, {currentDate: new Date(start * 1000), tz: zone});
    for (let i = 0; i < 3; i++) times.push(walk.next().getTime() / 1000);
  } catch (refusal) {
    continue; // a day that no month has, or further away than the oracle looks
  }
  if (times[2] > start + 2900 * 86400) continue; // further away than Orbit looks from one time to the next
  console.log([expression, zone, start, ...times].join('\t'));
  made++;
}
