// JSON, maps and buffers; the buffers' memory is outside the engine's own heap.
let rows = [];
for (let round = 0; round < 4; round++) {
  rows = [];
  for (let i = 0; i < 40000; i++) rows.push({ id: i, name: "row " + i, parts: [i, i + 1, "" + i] });
  const text = JSON.stringify(rows);
  rows = JSON.parse(text);
  const whole = Buffer.from(text);
  const copies = [];
  for (let i = 0; i < 150; i++) copies.push(Buffer.from(whole.subarray(i * 100, i * 100 + 60000)));
  const byName = new Map(rows.map((row) => [row.name, row]));
  if (byName.size !== rows.length || copies.length !== 150) throw new Error("lost something");
}
console.log(rows.length);
