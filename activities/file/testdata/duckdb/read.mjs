// Answers queries with DuckDB: a list of {name, setup, sql} in, {name: {types, rows, error}} out. Values are texts, as DuckDB casts them in UTC.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(process.cwd() + "/");
const { DuckDBInstance } = require("@duckdb/node-api");
const instance = await DuckDBInstance.create(":memory:");
const connection = await instance.connect();
// Nothing is downloaded: what is built in has to do.
await connection.run("SET autoinstall_known_extensions = false; SET autoload_known_extensions = false; SET TimeZone = 'UTC'");
const answers = {};
for (const { name, setup, sql } of JSON.parse(readFileSync(0, "utf8"))) {
  try {
    await connection.run(setup);
    const described = await connection.runAndReadAll("DESCRIBE " + sql);
    const columns = described.getRowObjectsJson();
    const texts = columns.map((column) => `CAST("${column.column_name}" AS VARCHAR) AS "${column.column_name}"`).join(", ");
    const found = await connection.runAndReadAll(`SELECT ${texts} FROM (${sql})`);
    answers[name] = {
      types: Object.fromEntries(columns.map((column) => [column.column_name, column.column_type])),
      rows: found.getRowObjectsJson(),
    };
  } catch (problem) {
    answers[name] = { error: String(problem) };
  }
}
process.stdout.write(JSON.stringify(answers));
