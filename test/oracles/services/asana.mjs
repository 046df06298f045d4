import { Readable } from "node:stream";
import * as Asana from "asana";

const task = "name,resource_subtype,completed,completed_at,created_at,modified_at,start_on,due_on,due_at,notes,permalink_url,assignee.name,parent.name,memberships.project.name,memberships.section.name,tags.name,custom_fields.name,custom_fields.display_value";
const project = "name,notes,color,due_on,created_at,modified_at,permalink_url,owner.name,team.name";
const field = "custom_field.name,custom_field.resource_subtype,custom_field.enum_options.name,custom_field.enum_options.enabled";

// pages reads pages until there are enough items.
async function pages({ limit = 100, all }, read) {
  let count = 0;
  let page = await read({ limit: all ? 100 : Math.min(limit, 100) });
  while (page.data !== null && (count += page.data.length, all || count < limit)) page = await page.nextPage();
}

const html = (text) => text && (text.startsWith("<body>") ? text : `<body>${text}</body>`);
const due = (at) => (at?.length === 10 ? { due_on: at } : { due_at: at });
const written = (i) => ({ name: i.name, notes: i.html_notes ? undefined : i.description, html_notes: html(i.html_notes), assignee: i.assignee, ...due(i.due) });

// changed reads a page of the tasks that were changed since the cursor.
const changed = ({ tasks }, i) =>
  tasks.getTasks({ project: i.project, modified_since: i.cursor?.since ?? "2026-11-18T08:45:00.000Z", limit: 100, offset: i.cursor?.offset, opt_fields: task });

function connect({ at, secrets }) {
  const client = new Asana.ApiClient();
  client.basePath = at("https://app.asana.com/api/1.0");
  client.authentications.token = { type: "personalAccessToken", accessToken: secrets.token };
  return {
    attachments: new Asana.AttachmentsApi(client),
    customFields: new Asana.CustomFieldSettingsApi(client),
    events: new Asana.EventsApi(client),
    projects: new Asana.ProjectsApi(client),
    sections: new Asana.SectionsApi(client),
    stories: new Asana.StoriesApi(client),
    tags: new Asana.TagsApi(client),
    tasks: new Asana.TasksApi(client),
    teams: new Asana.TeamsApi(client),
    typeahead: new Asana.TypeaheadApi(client),
    users: new Asana.UsersApi(client),
    workspaces: new Asana.WorkspacesApi(client),
  };
}

/** @type {import("../service.d.ts").Service<ReturnType<typeof connect>>} */
export default {
  client: "asana",
  auth: "bearer",
  secrets: { token: "2/made-up" },
  connect,
  operations: {
    create_task: async ({ tasks, sections }, i) => {
      const data = { workspace: i.workspace, projects: i.project && [i.project], ...written(i), tags: i.tags, followers: i.followers, custom_fields: i.custom_fields };
      const made = await tasks.createTask({ data });
      if (i.section) await sections.addTaskForSection(i.section, { body: { data: { task: made.data.gid } } });
    },
    create_subtask: ({ tasks }, i) => tasks.createSubtaskForTask({ data: written(i) }, i.task),
    update_task: ({ tasks }, i) => tasks.updateTask({ data: { ...written(i), completed: i.completed, custom_fields: i.custom_fields } }, i.task),
    get_task: ({ tasks }, i) => tasks.getTask(i.task),
    list_tasks: ({ tasks }, i) =>
      pages(i, (page) =>
        tasks.getTasks({
          project: i.section ? undefined : i.project,
          section: i.section,
          completed_since: i.open ? "now" : undefined,
          modified_since: i.changed_since,
          ...page,
          opt_fields: task,
        }),
      ),
    list_my_tasks: ({ tasks }, i) =>
      pages(i, (page) =>
        tasks.getTasks({ workspace: i.workspace, assignee: i.assignee ?? "me", completed_since: i.open === false ? undefined : "now", ...page, opt_fields: task }),
      ),
    search_tasks: async ({ tasks }, i) => {
      const search = (before) =>
        tasks.searchTasksForWorkspace(i.workspace, {
          text: i.text,
          "projects.any": i.project,
          "assignee.any": i.assignee,
          completed: i.completed,
          "due_on.before": i.due_before,
          sort_by: "created_at",
          sort_ascending: false,
          "created_at.before": before,
          ...{ limit: Math.min(i.limit ?? 100, 100) }, // the types of the client lack it
          opt_fields: task,
        });
      const { data } = await search();
      if (data.length === 100) await search(data.at(-1).created_at);
    },
    delete_task: ({ tasks }, i) => tasks.deleteTask(i.task),
    add_comment: ({ stories }, i) =>
      stories.createStoryForTask({ data: i.html ? { html_text: html(i.text), is_pinned: i.pinned } : { text: i.text, is_pinned: i.pinned } }, i.task),
    list_comments: ({ stories }, i) => pages(i, (page) => stories.getStoriesForTask(i.task, { ...page, opt_fields: "type,text,created_at,created_by.name" })),
    list_subtasks: ({ tasks }, i) => pages(i, (page) => tasks.getSubtasksForTask(i.task, { ...page, opt_fields: task })),
    add_to_project: ({ tasks }, i) => tasks.addProjectForTask({ data: { project: i.project, section: i.section } }, i.task),
    remove_from_project: ({ tasks }, i) => tasks.removeProjectForTask({ data: { project: i.project } }, i.task),
    add_tag: ({ tasks }, i) => tasks.addTagForTask({ data: { tag: i.tag } }, i.task),
    remove_tag: ({ tasks }, i) => tasks.removeTagForTask({ data: { tag: i.tag } }, i.task),
    add_followers: ({ tasks }, i) => tasks.addFollowersForTask({ data: { followers: i.followers } }, i.task),
    add_file: ({ attachments }, i) => {
      const file = /** @type {any} */ (Object.assign(Readable.from([i.file.content]), { path: i.file.name })); // the types of the client say text
      return attachments.createAttachmentForObject({ parent: i.task, file });
    },
    create_project: ({ projects }, i) =>
      projects.createProject({
        data: { workspace: i.workspace, team: i.team, name: i.name, notes: i.description, default_view: i.view ?? "list", due_on: i.due_date, privacy_setting: i.visibility },
      }),
    create_section: ({ sections }, i) => sections.createSectionForProject(i.project, { body: { data: { name: i.name } } }),
    list_projects: ({ projects }, i) => pages(i, (page) => projects.getProjects({ workspace: i.workspace, archived: false, ...page, opt_fields: project })),
    list_sections: ({ sections }, i) => pages(i, (page) => sections.getSectionsForProject(i.project, page)),
    list_users: ({ users }, i) => pages(i, (page) => users.getUsers({ workspace: i.workspace, ...page, opt_fields: "name,email" })),
    list_workspaces: ({ workspaces }, i) => pages(i, (page) => workspaces.getWorkspaces(page)),
    list_project_choices: ({ projects, typeahead }, i) =>
      i.search
        ? typeahead.typeaheadForWorkspace(i.workspace, "project", { query: i.search, count: 100 })
        : pages(i, (page) => projects.getProjects({ workspace: i.workspace, archived: false, ...page })),
    list_user_choices: ({ users, typeahead }, i) =>
      i.search
        ? typeahead.typeaheadForWorkspace(i.workspace, "user", { query: i.search, count: 100 })
        : pages(i, (page) => users.getUsers({ workspace: i.workspace, ...page })),
    list_tags: ({ tags }, i) => pages(i, (page) => tags.getTags({ workspace: i.workspace, ...page })),
    list_teams: ({ teams }, i) => pages(i, (page) => teams.getTeamsForWorkspace(i.workspace, page)),
    list_custom_fields: ({ customFields }, i) => pages(i, (page) => customFields.getCustomFieldSettingsForProject(i.project, { ...page, opt_fields: field })),
    "triggers/new_task": changed,
    "triggers/task_completed": changed,
    "triggers/task_changed": changed,
    "triggers/new_comment": async ({ events, stories }, i) => {
      const { data } = await events.getEvents(i.project, { sync: i.cursor });
      const ids = data.filter(({ action, resource }) => action === "added" && (resource.resource_subtype ?? "comment_added") === "comment_added").map(({ resource }) => resource.gid);
      const opt_fields = "type,text,created_at,created_by.name,target.name,target.permalink_url";
      for (const id of new Set(ids)) await stories.getStory(id, { opt_fields }).catch(() => {}); // it may be deleted
    },
  },
  normalize: (request) => {
    // Where a body is optional, the client sends it in the query as well.
    if (request.query?.body === "[object Object]") delete request.query;
    if (request.multipart?.file?.type === "text/plain") request.multipart.file.type += "; charset=utf-8"; // derived from the name
  },
};
