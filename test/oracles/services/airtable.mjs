import Airtable from "airtable";

const conversion = ({ raw }) => (raw ? {} : { typecast: true });
const records = (fields) => fields.map((one) => ({ fields: one }));

// tens calls do for every ten items of a list.
async function tens(list, run) {
  for (let from = 0; from < list.length; from += 10) await run(list.slice(from, from + 10));
}

// literal returns a value in a formula.
function literal(value) {
  if (typeof value === "boolean") return value ? "TRUE()" : "FALSE()";
  if (typeof value === "number") return String(value);
  return `"${value.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;
}

// since returns where a poll begins, at first 15 minutes ago.
const since = ({ cursor }) => cursor?.since ?? "2026-11-18T08:45:00.000Z";

function recordsSince(airtable, { base, table }, query) {
  const options = /** @type {any} */ ({ ...query, pageSize: 100, method: "post" }); // its types lack the method
  return airtable.base(base).table(table).select(options).firstPage();
}

/** @type {import("../service.d.ts").Service<import("airtable")>} */
export default {
  client: "airtable",
  auth: "bearer",
  secrets: { token: "pat.made-up" },
  connect: ({ at, secrets }) => new Airtable({ apiKey: secrets.token, endpointUrl: at("https://api.airtable.com"), noRetryIfRateLimited: true }),
  operations: {
    create_record: (airtable, i) => airtable.base(i.base).table(i.table).create(i.fields, conversion(i)),
    create_records: (airtable, i) => tens(i.records, (list) => airtable.base(i.base).table(i.table).create(records(list), conversion(i))),
    update_record: (airtable, i) => airtable.base(i.base).table(i.table).update(i.record, i.fields, conversion(i)),
    upsert_records: (airtable, i) => {
      // The types of the client lack performUpsert; it sends whatever options it is given.
      const options = /** @type {any} */ ({ ...conversion(i), performUpsert: { fieldsToMergeOn: i.match } });
      return tens(i.records, (list) => airtable.base(i.base).table(i.table).update(/** @type {any} */ (records(list)), options));
    },
    get_record: (airtable, i) => airtable.base(i.base).table(i.table).find(i.record),
    find_record: (airtable, i) =>
      airtable
        .base(i.base)
        .table(i.table)
        .select({ filterByFormula: `{${i.field.replaceAll("}", "\\}")}} = ${literal(i.value)}`, ...(i.view && { view: i.view }), maxRecords: 1, method: "post" })
        .firstPage(),
    list_records: (airtable, { base, table, formula, view, sort, fields, limit = 100, all }) => {
      const given = Object.entries({ filterByFormula: formula, view, sort, fields }).filter(([, value]) => value !== undefined);
      const query = { ...Object.fromEntries(given), pageSize: all ? 100 : Math.min(limit, 100), method: "post" };
      let count = 0;
      return new Promise((resolve, reject) =>
        airtable
          .base(base)
          .table(table)
          .select(query)
          .eachPage(
            (page, next) => {
              count += page.length;
              if (all || count < limit) next();
              else resolve();
            },
            (error) => (error ? reject(error) : resolve()),
          ),
      );
    },
    delete_record: (airtable, i) => airtable.base(i.base).table(i.table).destroy(i.record),
    "triggers/new_record": (airtable, i) => recordsSince(airtable, i, { filterByFormula: `IS_AFTER(CREATED_TIME(), '${since(i)}')` }),
    "triggers/record_changed": (airtable, i) =>
      recordsSince(airtable, i, {
        filterByFormula: `IS_AFTER({${i.field.replaceAll("}", "\\}")}}, '${since(i)}')`,
        sort: [{ field: i.field, direction: "asc" }],
      }),
    add_attachment_from_url: async (airtable, i) => {
      const table = airtable.base(i.base).table(i.table);
      const record = await table.find(i.record);
      const files = /** @type {any[]} */ (record.get(i.field) ?? []).map(({ id }) => ({ id }));
      await table.update(i.record, { [i.field]: [...files, { url: i.url, filename: i.name }] });
    },
  },
  normalize: (request) => {
    request.url = request.url.replace(/\/$/, ""); // the client ends the paths of tables with a slash
  },
  differences: [
    { at: "json/method", client: "post", why: "it is an option of the client, which sends it along" },
    ...[
      ["triggers/new_record", "the rest"],
      ["triggers/new_record", "the rest of thousands"],
      ["triggers/new_record", "an offset that Airtable no longer knows"],
      ["triggers/record_changed", "the rest"],
      ["triggers/record_changed", "an offset that Airtable no longer knows"],
    ].map(([operation, test]) => ({ operation, test, at: "json/offset", ours: "itr1/rec2", why: "the client reads all pages itself, and cannot begin with one" })),
  ],
  without: Object.fromEntries([
    ["add_attachment", "the client cannot upload files; pyairtable can"],
    ["hooks/records", "the client knows nothing of webhooks; pyairtable does"],
    ...["list_bases", "list_tables", "list_fields", "list_writable_fields", "list_views", "list_change_times"].map((name) => [name, "the client knows nothing of the schema; pyairtable does"]),
  ]),
};
