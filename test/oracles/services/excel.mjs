import "@pnp/graph/files/index.js";
import "@pnp/graph/users/index.js";
import "@pnp/graph/workbooks/index.js";
import { listPages, pnp } from "../microsoft.mjs";

const drive = (graph, i) => (i.drive ? graph.drives.getById(i.drive) : graph.me.drive);

/**
 * PnPjs adds it at run time, in a way that TypeScript does not follow.
 * @returns {import("@pnp/graph/workbooks/types.js").IWorkbook}
 */
const workbook = (graph, i) => drive(graph, i).getItemById(i.workbook).workbook;

const sheet = (graph, i) => workbook(graph, i).worksheets.getById(i.sheet);
const table = (graph, i) => workbook(graph, i).tables.getById(i.table);
const shown = (i) => ({ formatted: "text", formula: "formulas" })[i.show] ?? "values";

// Stop ends an operation at the point at which the manifest does.
class Stop extends Error {}

async function used(graph, i) {
  const { address, rowCount } = await sheet(graph, i).getUsedRange(true).select("address", "rowCount")();
  const [, first, row, last] = /!([A-Z]+)(\d+)(?::([A-Z]+)\d+)?$/.exec(address);
  const top = Number(row);
  /** @type {(from: number, to?: number) => import("@pnp/graph/workbooks/types.js").IRange} */
  const rows = (from, to = from) => sheet(graph, i).getRange(`${first}${top + from}:${last ?? first}${top + to}`);
  return { rows, top, rowCount };
}

async function header(graph, i) {
  const at = await used(graph, i);
  const { values } = await at.rows(0).select("values")();
  const columns = values[0].map(String);
  const names = [i.column, ...Object.keys(i.row ?? {}), ...(i.rows ?? []).flatMap(Object.keys)].filter((name) => name !== undefined);
  const filled = columns.filter((name) => name !== "");
  if (filled.length === 0 || new Set(filled).size < filled.length || !names.every((name) => columns.includes(name))) throw new Stop();
  return { ...at, columns };
}

const cell = (i, value) => (i.raw && typeof value === "string" ? `'${value}` : (value ?? null));
const cells = (i, columns, row) => columns.map((name) => cell(i, row[name]));

/** @type {(i: any, range: any, first: number) => number} */
const matching = (i, { values, text }, first) =>
  values.findIndex((row, n) => n >= first && (String(row[0]) === String(i.value) || text[n][0] === String(i.value)));

async function find(graph, i) {
  const at = await header(graph, i);
  const column = await sheet(graph, i).getUsedRange(true).column(at.columns.indexOf(i.column)).select("values", "text")();
  return { ...at, index: matching(i, column, 1) };
}

// update writes values, and returns where. PnPjs has no parameters for that.
function update(range, values) {
  return range.select("address").update({ values });
}

const tableColumns = async (graph, i) => (await table(graph, i).columns.select("name")()).map(({ name }) => name);

/** @type {import("../service.d.ts").Service<import("@pnp/graph").GraphFI>} */
const service = {
  client: "@pnp/graph",
  auth: "oauth2",
  secrets: { access_token: "made-up" },
  connect: pnp,
  operations: {
    add_row: async (graph, i) => {
      const { rows, rowCount, columns } = await header(graph, i);
      await update(rows(rowCount), [cells(i, columns, i.row)]);
    },
    add_rows: async (graph, i) => {
      const { rows, rowCount, columns } = await header(graph, i);
      await update(
        rows(rowCount, rowCount + i.rows.length - 1),
        i.rows.map((row) => cells(i, columns, row)),
      );
    },
    get_rows: async (graph, i) => {
      const { rows, rowCount } = await header(graph, i);
      const size = i.all ? 500 : Math.min(i.limit ?? 100, 500);
      for (let at = 0; at === 0 || at + 1 < rowCount; at += size) {
        await rows(at, Math.min(at + size, rowCount - 1)).select(shown(i))();
        if (!i.all) return;
      }
    },
    find_row: async (graph, i) => {
      const { rows, index } = await find(graph, i);
      if (index >= 0) await rows(index).select(shown(i))();
    },
    update_row: async (graph, i) => {
      const { rows, index, columns } = await find(graph, i);
      if (index >= 0) await update(rows(index), [cells(i, columns, i.row)]);
    },
    append_or_update_row: async (graph, i) => {
      const { rows, rowCount, index, columns } = await find(graph, i);
      if (index >= 0) await update(rows(index), [cells(i, columns, i.row)]);
      else await update(rows(rowCount), [cells(i, columns, { ...i.row, [i.column]: i.value })]);
    },
    delete_rows: (graph, i) =>
      sheet(graph, i)
        .getRange(`${i.row_number}:${i.row_number + (i.count ?? 1) - 1}`)
        .delete("Up"),
    clear_sheet: async (graph, i) => {
      const { rows, rowCount } = await used(graph, i);
      const from = i.keep_header === false ? 0 : 1;
      if (from < rowCount) await rows(from, rowCount - 1).clear("Contents");
    },
    get_range: (graph, i) => sheet(graph, i).getRange(i.range).select("address", shown(i))(),
    update_range: (graph, i) =>
      update(
        sheet(graph, i).getRange(i.range),
        i.values.map((row) => row.map((value) => cell(i, value))),
      ),
    add_sheet: (graph, i) => workbook(graph, i).worksheets.add({ name: i.name }),
    delete_sheet: (graph, i) => sheet(graph, i).delete(),
    add_table_rows: async (graph, i) => {
      const columns = await tableColumns(graph, i);
      if (!i.rows.flatMap(Object.keys).every((name) => columns.includes(name))) return;
      for (let at = 0; at < i.rows.length; at += 500) {
        await table(graph, i).rows.add({ values: i.rows.slice(at, at + 500).map((row) => cells(i, columns, row)) });
      }
    },
    get_table_rows: async (graph, i) => {
      await tableColumns(graph, i);
      const size = i.all ? 500 : Math.min(i.limit ?? 100, 500);
      for (let at = 0; ; at += size) {
        const rows = await table(graph, i).rows.top(size).skip(at)();
        if (!i.all || rows.length < size) return;
      }
    },
    "triggers/new_row": async (graph, i) => {
      await tableColumns(graph, i);
      const { rowCount } = await table(graph, i).dataBodyRange.select("rowCount")();
      const near = Math.min(i.cursor?.row ?? rowCount, rowCount);
      const from = Math.max(0, near - 250);
      await table(graph, i)
        .rows.top(Math.min(near + 500, rowCount) - from)
        .skip(from)();
    },
    update_table_row: async (graph, i) => {
      const columns = await tableColumns(graph, i);
      if (![i.column, ...Object.keys(i.row)].every((name) => columns.includes(name))) return;
      /** @type {any} */
      const all = table(graph, i).columns;
      const index = matching(i, await all.getByName(i.column).dataBodyRange.select("values", "text")(), 0);
      if (index >= 0) await table(graph, i).rows.getItemAt(index).update({ values: [cells(i, columns, i.row)] });
    },
    create_table: (graph, i) => sheet(graph, i).tables.add(i.range, true),
    list_workbooks: (graph, i) =>
      listPages(drive(graph, i).root.search(i.search?.replaceAll("'", "''") ?? ".xlsx").select("id", "name", "file", "webUrl", "lastModifiedDateTime"), i),
    list_sheets: (graph, i) => workbook(graph, i).worksheets.select("id", "name", "visibility")(),
    list_tables: (graph, i) => workbook(graph, i).tables.select("id", "name")(),
    list_drives: (graph, i) => drives(graph).select("id", "name")(),
    list_columns: header,
    list_table_columns: tableColumns,
  },
  differences: [
    {
      operation: "add_sheet",
      at: "url",
      client: "https://graph.microsoft.com/v1.0/me/drive/items/01W/workbook/worksheets",
      ours: "https://graph.microsoft.com/v1.0/me/drive/items/01W/workbook/worksheets/add",
      why: "the documentation has the action, the description of the API both",
    },
  ],
};

const drives = (graph) => graph.me.drives;

for (const [name, operation] of Object.entries(service.operations)) {
  service.operations[name] = async (graph, i, environment) => {
    try {
      return await operation(graph, i, environment);
    } catch (error) {
      if (!(error instanceof Stop)) throw error;
    }
  };
}

export default service;
