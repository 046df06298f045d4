import { Client } from "@notionhq/client";

// list reads pages until there are enough items.
async function list(method, params, { limit = 100, all }) {
  let count = 0;
  let start_cursor;
  do {
    const page = await method({ ...params, start_cursor, page_size: all ? 100 : Math.min(limit, 100) });
    count += page.results.length;
    start_cursor = page.next_cursor ?? undefined;
  } while (start_cursor && (all || count < limit));
}

const text = (content) => ({ text: { content } });
const many = (value) => [value ?? []].flat();
const none = (value) => value === null || value === "";

// property returns what the API takes for a value of a property.
function property(type, value) {
  switch (type) {
    case "title":
    case "rich_text":
      return { [type]: (String(value ?? "").match(/.{1,2000}/gs) ?? []).map(text) };
    case "multi_select":
      return { multi_select: many(value).map((name) => ({ name })) };
    case "people":
    case "relation":
      return { [type]: many(value).map((id) => ({ id })) };
    case "files":
      return { files: many(value).map((url) => ({ type: "external", name: url.split("/").pop(), external: { url } })) };
    case "select":
    case "status":
      return { [type]: none(value) ? null : { name: value } };
    case "date":
      return { date: typeof value === "string" ? { start: value } : value };
    case "number":
    case "checkbox":
    case "url":
      return { [type]: value };
    default:
      throw new Error(`${type} cannot be set`);
  }
}

// properties returns them as the API takes them. The object that is read has their types.
const properties = (values, { properties: known }) =>
  Object.fromEntries(
    Object.entries(values).map(([name, value]) => {
      if (!known[name]) throw new Error(`there is no ${name}`);
      return [name, property(known[name].type, value)];
    }),
  );

const icon = (emoji) => emoji && { type: "emoji", emoji };
const search = (notion, value, i) => list(notion.search, { query: i.search ?? i.text, filter: value && { property: "object", value } }, i);

// pagesSince reads the pages of a database since a point in time, at first 15 minutes ago.
const pagesSince = (notion, timestamp, { database, cursor }) =>
  notion.dataSources.query({
    data_source_id: database,
    filter: { timestamp, [timestamp]: { on_or_after: cursor?.since ?? "2026-11-18T08:45:00.000Z" } },
    sorts: [{ timestamp, direction: "ascending" }],
    start_cursor: cursor?.page,
    page_size: 100,
  });

export default {
  client: "@notionhq/client",
  auth: "bearer",
  secrets: { token: "ntn_made-up" },
  headers: ["notion-version"],
  connect: ({ at, secrets }) => new Client({ auth: secrets.token, baseUrl: at("https://api.notion.com"), retry: false, logger() {} }),
  operations: {
    create_database_page: async (notion, i) => {
      const schema = await notion.dataSources.retrieve({ data_source_id: i.database });
      await notion.pages.create({
        parent: { type: "data_source_id", data_source_id: i.database },
        icon: icon(i.icon),
        properties: properties(i.properties, schema),
        markdown: i.content,
      });
    },
    create_page: (notion, i) =>
      notion.pages.create({
        parent: { type: "page_id", page_id: i.page },
        icon: icon(i.icon),
        properties: { title: { title: [text(i.title)] } },
        markdown: i.content,
      }),
    update_page: async (notion, i) => {
      const page = await notion.pages.retrieve({ page_id: i.page });
      await notion.pages.update({ page_id: i.page, properties: properties(i.properties, page) });
    },
    get_page: (notion, i) => notion.pages.retrieve({ page_id: i.page }),
    query_database: (notion, i) => list(notion.dataSources.query, { data_source_id: i.database, filter: i.filter, sorts: i.sorts }, i),
    search: (notion, i) => search(notion, { page: "page", database: "data_source" }[i.kind], i),
    get_content: (notion, i) => notion.pages.retrieveMarkdown({ page_id: i.page }),
    append_content: (notion, i) =>
      notion.pages.updateMarkdown({ page_id: i.page, type: "insert_content", insert_content: { content: i.content, position: { type: i.at ?? "end" } } }),
    append_blocks: async (notion, i) => {
      for (let from = 0; from < i.blocks.length; from += 100) {
        await notion.blocks.children.append({ block_id: i.page, children: i.blocks.slice(from, from + 100) });
      }
    },
    add_file: async (notion, { page, file, caption }) => {
      const type = file.name.endsWith(".png") ? "image/png" : "application/pdf";
      const upload = async () => {
        const { id } = await notion.fileUploads.create({ mode: "single_part", filename: file.name, content_type: type });
        await notion.fileUploads.send({ file_upload_id: id, file: { filename: file.name, data: new Blob([file.content], { type }) } });
        return id;
      };
      const id = await upload().catch(upload); // an upload can expire
      const kind = type.startsWith("image/") ? "image" : "file";
      const content = { type: "file_upload", file_upload: { id }, caption: caption && [text(caption)] };
      await notion.blocks.children.append({ block_id: page, children: [{ type: kind, [kind]: content }] });
    },
    trash_page: (notion, i) => notion.pages.update({ page_id: i.page, in_trash: true }),
    create_comment: (notion, i) => notion.comments.create({ parent: { page_id: i.page }, markdown: i.text }),
    list_comments: (notion, i) => list(notion.comments.list, { block_id: i.page }, i),
    list_users: (notion, i) => list(notion.users.list, {}, i),
    list_databases: (notion, i) => search(notion, "data_source", i),
    list_pages: (notion, i) => search(notion, "page", i),
    list_properties: (notion, i) => notion.dataSources.retrieve({ data_source_id: i.database }),
    "triggers/new_page": (notion, i) => pagesSince(notion, "created_time", i),
    "triggers/page_changed": (notion, i) => pagesSince(notion, "last_edited_time", i),
  },
};
