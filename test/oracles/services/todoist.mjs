import { TodoistApi } from "@doist/todoist-sdk";
import { follow } from "../pages.mjs";

// sent ignores that an answer is shorter than the client wants it.
const sent = (promise) =>
  promise.catch((error) => {
    if (error.name !== "ZodError") throw error;
  });

// pages reads pages until there are enough items.
const pages = (i, read) =>
  follow(200, i, async (cursor, limit) => {
    const page = await sent(read({ limit, cursor }));
    return { count: (page?.results ?? page?.items)?.length, next: page?.nextCursor };
  });

const priorities = { p1: 4, p2: 3, p3: 2, p4: 1 };

// taskOf returns what a task is made of, also by an update.
const taskOf = (i) => /** @type {any} */ ({
  content: i.name,
  description: i.description,
  labels: i.labels,
  priority: priorities[i.priority],
  dueString: i.due,
  dueDate: i.due_date,
  dueDatetime: i.due_time,
  dueLang: i.due_language,
  deadlineDate: i.deadline,
  duration: i.minutes,
  durationUnit: i.minutes && "minute",
  assigneeId: i.assignee,
});

const events = (objectEventTypes) => (todoist, i) =>
  sent(todoist.getActivityLogs({ objectEventTypes: [objectEventTypes], parentProjectId: i.project, limit: 100, cursor: i.cursor?.after }));

/** @type {import("../service.d.ts").Service<TodoistApi>} */
export default {
  client: "@doist/todoist-sdk",
  auth: "bearer",
  secrets: { token: "made-up" },
  connect: ({ at, secrets }) => {
    // The client takes the base of addresses without a path.
    const base = new URL(at("https://api.todoist.com/"));
    return new TodoistApi(secrets.token, {
      baseUrl: base.origin,
      customFetch: async (url, options) => {
        const response = await fetch(url.replace(base.origin, base.origin + base.pathname.replace(/\/$/, "")), /** @type {any} */ (options));
        return /** @type {any} */ (response);
      },
    });
  },
  operations: {
    create_task: (todoist, i) => sent(todoist.addTask({ ...taskOf(i), projectId: i.project, sectionId: i.section, parentId: i.parent })),
    quick_add_task: (todoist, i) => sent(todoist.quickAddTask({ text: i.text, note: i.note, reminder: i.reminder })),
    update_task: (todoist, i) => sent(todoist.updateTask(i.task, taskOf(i))),
    get_task: (todoist, i) => sent(todoist.getTask(i.task)),
    list_tasks: (todoist, i) => pages(i, (page) => todoist.getTasks({ projectId: i.project, sectionId: i.section, label: i.label, parentId: i.parent, ...page })),
    filter_tasks: (todoist, i) => pages(i, (page) => todoist.getTasksByFilter({ query: i.filter, lang: i.language, ...page })),
    list_completed_tasks: (todoist, i) => {
      const since = i.since ?? "2026-11-11T09:00:00.000Z";
      const until = i.until ?? "2026-11-18T09:00:00.000Z";
      return pages(i, (page) => todoist.getCompletedTasksByCompletionDate({ since, until, projectId: i.project, sectionId: i.section, ...page }));
    },
    complete_task: (todoist, i) => todoist.closeTask(i.task),
    reopen_task: (todoist, i) => todoist.reopenTask(i.task),
    move_task: (todoist, i) => {
      const to = i.parent ? { parentId: i.parent } : i.section ? { sectionId: i.section } : { projectId: i.project };
      return sent(todoist.moveTask(i.task, /** @type {any} */ (to)));
    },
    delete_task: (todoist, i) => todoist.deleteTask(i.task),
    add_comment: async (todoist, i) => {
      let attachment;
      if (i.file) {
        const file = new Blob([i.file.content], { type: "text/plain; charset=utf-8" });
        const uploaded = await todoist.uploadFile({ file, fileName: i.file.name });
        attachment = { fileName: uploaded.fileName, fileUrl: uploaded.fileUrl, fileType: uploaded.fileType, resourceType: uploaded.resourceType };
      }
      await sent(todoist.addComment({ taskId: i.task, content: i.text, attachment }));
    },
    list_comments: (todoist, i) => pages(i, (page) => todoist.getComments({ taskId: i.task, ...page })),
    create_project: (todoist, i) => sent(todoist.addProject({ name: i.name, description: i.description, parentId: i.parent, viewStyle: i.view, isFavorite: i.favorite })),
    create_section: (todoist, i) => sent(todoist.addSection({ projectId: i.project, name: i.name })),
    list_projects: (todoist, i) => pages(i, (page) => todoist.getProjects(page)),
    list_sections: (todoist, i) => pages(i, (page) => todoist.getSections({ projectId: i.project, ...page })),
    list_labels: (todoist, i) => pages(i, (page) => todoist.getLabels(page)),
    list_collaborators: (todoist, i) => pages(i, (page) => todoist.getProjectCollaborators(i.project, page)),
    "triggers/new_task": events("task:added"),
    "triggers/completed_task": events("task:completed"),
    "triggers/new_comment": events("comment:added"),
  },
};
