import { createClickup } from "clickup.js";

// ms returns a time as the API takes it.
const ms = (time) => time && Date.parse(time);
const minute = 60_000;
const priorities = { urgent: 1, high: 2, normal: 3, low: 4 };
const given = (values) => Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined));

// pages reads pages until there are enough items.
async function pages({ limit = 100, all }, read) {
  for (let page = 0, count = 0; all || count < limit; page++) {
    const { tasks, last_page } = await read(page);
    count += tasks.length;
    if (last_page) return;
  }
}

// filters returns what lists of tasks take.
const filters = (i) =>
  given({
    statuses: i.statuses,
    assignees: i.assignees,
    tags: i.tags,
    include_closed: i.closed,
    subtasks: i.subtasks,
    due_date_gt: ms(i.due_after),
    due_date_lt: ms(i.due_before),
    date_updated_gt: ms(i.updated_after),
    order_by: i.order_by,
    reverse: i.reverse,
    include_markdown_description: true,
  });

// fieldValue returns the value of a custom field as its type wants it.
function fieldValue({ type, type_config }, value) {
  switch (type) {
    case "date":
      return ms(value);
    case "drop_down":
      return type_config.options.find(({ name }) => name === value)?.id ?? value;
    case "labels":
      return value.map((label) => type_config.options.find((option) => option.label === label)?.id ?? label);
    case "users":
      return { add: value };
    case "manual_progress":
      return { current: value };
  }
  return value;
}

const named = (fields, name) => fields.find((field) => field.name === name || field.id === name);

// since lists a page of the tasks that were created or changed since the cursor.
const since = (order_by, filter) => ({ team }, i) =>
  team.filteredTasks(
    i.workspace,
    given({
      space_ids: i.space && [i.space],
      list_ids: i.list && [i.list],
      [filter]: i.cursor?.since ?? Date.parse("2026-11-18T08:45:00Z"),
      order_by,
      reverse: true,
      include_closed: true,
      subtasks: true,
      include_markdown_description: true,
      page: i.cursor?.page ?? 0,
    }),
  );

/** @type {import("../service.d.ts").Service<ReturnType<typeof createClickup>>} */
export default {
  client: "clickup.js",
  auth: "api_key",
  secrets: { token: "pk_made_up" },
  connect: ({ at, secrets }) => createClickup({ token: secrets.token, request: { prefixUrl: at("https://api.clickup.com/api/") } }),
  operations: {
    "hooks/events": ({ team, webhook }, i) =>
      i.does === "register"
        ? team.createWebhook(i.workspace, given({ endpoint: i.hook.url, events: i.events, space_id: i.space && Number(i.space), list_id: i.list && Number(i.list) }))
        : webhook.delete(i.subscription.id),
    create_task: async ({ list }, i) => {
      let custom_fields;
      if (i.fields) {
        const { fields } = await list.customFields(i.list);
        const sorted = Object.keys(i.fields).sort();
        custom_fields = sorted.map((name) => ({ id: named(fields, name).id, value: fieldValue(named(fields, name), i.fields[name]) }));
      }
      return list.createTask(
        i.list,
        given({
          name: i.name,
          markdown_content: i.description,
          status: i.status,
          assignees: i.assignees,
          priority: priorities[i.priority],
          due_date: ms(i.due),
          due_date_time: i.due_time,
          start_date: ms(i.start),
          start_date_time: i.start_time,
          tags: i.tags,
          parent: i.parent,
          custom_item_id: i.type,
          time_estimate: i.estimate && i.estimate * minute,
          points: i.points,
          notify_all: i.notify_all,
          custom_fields,
        }),
      );
    },
    update_task: ({ task }, i) =>
      task.update(
        i.task,
        given({
          name: i.name,
          markdown_content: i.description === "" ? " " : i.description,
          status: i.status,
          priority: priorities[i.priority],
          due_date: ms(i.due),
          due_date_time: i.due_time,
          start_date: ms(i.start),
          start_date_time: i.start_time,
          assignees: i.add_assignees && { add: i.add_assignees, rem: [] },
          parent: i.parent,
          time_estimate: i.estimate && i.estimate * minute,
          points: i.points,
          archived: i.archived,
        }),
      ),
    get_task: ({ task }, i) => task.get(i.task, given({ include_subtasks: i.subtasks, include_markdown_description: true })),
    list_tasks: ({ list }, i) => pages(i, (page) => list.tasks(i.list, { ...given({ archived: i.archived }), ...filters(i), page })),
    search_tasks: ({ team }, i) => pages(i, (page) => team.filteredTasks(i.workspace, { space_ids: [i.space], list_ids: [i.list], ...filters(i), page })),
    delete_task: ({ task }, i) => task.delete(i.task),
    set_field: async ({ task }, i) => {
      const { custom_fields } = await task.get(i.task);
      const field = named(custom_fields, i.field);
      if (!field) return;
      await (i.value === undefined ? task.removeCustomFieldValue(i.task, field.id) : task.addCustomFieldValue(i.task, field.id, { value: fieldValue(field, i.value) }));
    },
    add_comment: ({ task }, i) => task.addComment(i.task, given({ comment_text: i.text, assignee: i.assignee, notify_all: i.notify_all ?? false })),
    list_comments: async ({ task }, i) => {
      const { comments } = await task.comments(i.task);
      const { id, date } = comments.at(-1);
      await task.comments(i.task, { start: date, start_id: id });
    },
    add_tag: ({ task }, i) => task.addTag(i.task, i.tag),
    remove_tag: ({ task }, i) => task.removeTag(i.task, i.tag),
    add_checklist: async ({ task, checklist }, i) => {
      const { id } = (await task.AddChecklist(i.task, { name: i.name })).checklist;
      for (const name of i.items ?? []) await checklist.addItem(id, { name });
    },
    create_list: ({ space, folder }, i) => {
      const data = given({ name: i.name, markdown_content: i.description, due_date: ms(i.due), assignee: i.assignee });
      return i.folder ? folder.createList(i.folder, data) : space.createFolderlessList(i.space, data);
    },
    track_time: ({ team }, i) => {
      const start = ms(i.start) ?? Date.parse("2026-11-18T09:00:00Z") - i.minutes * minute;
      return team.addTimeEntry(i.workspace, given({ tid: i.task, start, duration: i.minutes * minute, description: i.description, assignee: i.assignee, billable: i.billable }));
    },
    list_time_entries: ({ team }, i) => team.timeEntries(i.workspace, { start_date: ms(i.since), end_date: ms(i.until), assignee: i.assignees.join(","), task_id: i.task }),
    list_members: ({ authorization }) => authorization.teams(),
    list_lists: async ({ space }, i) => {
      await space.folders(i.space, { archived: false });
      await space.folderlessLists(i.space, { archived: false });
    },
    list_workspaces: ({ authorization }) => authorization.teams(),
    list_spaces: ({ team }, i) => team.spaces(i.workspace, { archived: false }),
    list_folders: ({ space }, i) => space.folders(i.space, { archived: false }),
    list_statuses: ({ list }, i) => list.get(i.list),
    list_tags: ({ space }, i) => space.tags(i.space),
    list_task_types: ({ team }, i) => team.customTaskTypes(i.workspace),
    list_fields: ({ list }, i) => list.customFields(i.list),
    list_task_fields: ({ task }, i) => task.get(i.task),
    "triggers/new_task": since("created", "date_created_gt"),
    "triggers/task_changed": since("updated", "date_updated_gt"),
  },
  without: { add_file: "the client sends a form without a boundary" },
};
