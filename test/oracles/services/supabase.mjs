import { createClient } from "@supabase/supabase-js";

// from returns a table.
const from = (supabase, { table, schema }) => (schema ? supabase.schema(schema) : supabase).from(table);

// filter adds the filters to a query.
const filter = (query, { filters = [] }) => filters.reduce((all, { column, operator = "eq", value }) => all[operator](column, value), query);

// checked rejects the errors that the client returns.
const checked = async (query) => {
  const { data, error } = await query;
  if (error) throw error;
  return data;
};

// select reads columns in an order.
function select(supabase, i) {
  const query = filter(from(supabase, i).select(i.columns?.join(",") ?? "*"), i);
  return i.order ? query.order(i.order, { ascending: !i.descending }) : query;
}

const parts = (list, run) => Promise.all(list.length > 0 ? [run(list)] : []);
const storage = (supabase, { bucket }) => supabase.storage.from(bucket);

/** @type {import("../service.d.ts").Service<import("@supabase/supabase-js").SupabaseClient>} */
export default {
  client: "@supabase/supabase-js",
  auth: "api_key",
  secrets: { key: "sb_secret_made-up" },
  headers: ["apikey", "prefer", "accept-profile", "content-profile", "x-upsert"],
  connect: ({ at, secrets }) =>
    createClient(at("https://acme.supabase.co"), secrets.key, {
      auth: { persistSession: false, autoRefreshToken: false },
      realtime: { transport: /** @type {any} */ (class {}) }, // it is required without being used
    }),
  operations: {
    insert_row: (supabase, i) => checked(from(supabase, i).insert(i.row).select()),
    insert_rows: (supabase, i) => parts(i.rows, (rows) => checked(from(supabase, i).insert(rows, { defaultToNull: false }).select())),
    upsert_rows: (supabase, i) =>
      parts(i.rows, (rows) =>
        checked(
          from(supabase, i)
            .upsert(rows, { onConflict: i.match?.join(","), ignoreDuplicates: i.keep, defaultToNull: false })
            .select(),
        ),
      ),
    update_rows: (supabase, i) => checked(filter(from(supabase, i).update(i.values), i).select()),
    delete_rows: (supabase, i) => checked(filter(from(supabase, i).delete(), i).select()),
    find_row: (supabase, i) => checked(select(supabase, i).limit(1)),
    list_rows: async (supabase, i) => {
      const { limit = 100, all } = i;
      const size = all ? 1000 : Math.min(limit, 1000);
      for (let count = 0; all || count < limit; ) {
        const rows = await checked(select(supabase, i).range(count, count + size - 1));
        count += rows.length;
        if (rows.length === 0 || (rows.length < size && size <= 100)) return; // the project can allow fewer rows at a time
      }
    },
    "triggers/new_row": (supabase, { column, key = "id", cursor, ...i }) => {
      const names = [...new Set([column, key])].map((name) => (/^\w+$/.test(name) ? name : `"${name}"`));
      const [by, id = by] = names;
      let query = from(supabase, i).select("*");
      if (cursor?.key) query = query.or(`${by}.gt."${cursor.value}",and(${by}.eq."${cursor.value}",${id}.gte."${cursor.key}")`);
      for (const name of names) query = query.order(name, cursor ? undefined : { ascending: false, nullsFirst: false });
      return checked(query.limit(cursor ? 300 : 100));
    },
    count_rows: (supabase, i) => checked(filter(from(supabase, i).select("*", { count: "exact", head: true }), i)),
    call_function: (supabase, i) => checked((i.schema ? supabase.schema(i.schema) : supabase).rpc(i.function, i.arguments)),
    upload_file: (supabase, i) => checked(storage(supabase, i).upload(i.path, i.file.content, { upsert: i.replace ?? false, contentType: "application/pdf" })),
    download_file: (supabase, i) => checked(storage(supabase, i).download(i.path)),
    create_signed_url: (supabase, i) => checked(storage(supabase, i).createSignedUrl(i.path, i.expires_in)),
    list_files: (supabase, i) => checked(storage(supabase, i).list(i.folder, { search: i.search, limit: i.limit ?? 100 })),
    delete_files: (supabase, i) => checked(storage(supabase, i).remove(i.paths)),
    list_buckets: (supabase) => checked(supabase.storage.listBuckets()),
  },
  differences: [
    { at: "headers/accept-profile", client: "public", why: "without it, PostgREST takes the first schema of the project, which need not be public" },
    { at: "headers/content-profile", client: "public", why: "likewise" },
    {
      operation: "delete_rows",
      at: "query/status",
      client: 'in.(open,"a,b",say "hi")',
      ours: 'in.(open,"a,b","say \\"hi\\"")',
      why: "the client does not quote quotes, so that a text which begins with one would mean another",
    },
  ],
  without: Object.fromEntries(
    ["list_tables", "list_columns", "list_functions", "list_arguments"].map((name) => [name, "the client does not read the description of the API at its root"]),
  ),
};
