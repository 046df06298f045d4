import { LinearClient } from "@linear/sdk";
import { inOurWords, queries } from "../graphql.mjs";
import { follow } from "../pages.mjs";

const ours = queries("linear");
let operation; // whose requests are recorded

// The client checks that it calls https or localhost, which the recorder is as well.
const local = (url) => url.replace("127.0.0.1", "localhost");

// pages reads pages until there are enough items.
const pages = (size, i, read) =>
  follow(size, i, async (after, first) => {
    const { nodes, pageInfo } = await read({ first, after });
    return { count: nodes.length, next: pageInfo.hasNextPage ? pageInfo.endCursor : undefined };
  });

// complete adds to an answer what the client needs to make objects of it: the tests have
// only what operations use.
function complete(value) {
  if (Array.isArray(value)) return value.map(complete);
  if (value === null || typeof value !== "object") return value;
  const members = Object.entries(value).map(([name, member]) => [name, complete(member)]);
  return { sharedAccess: { sharedWithUsers: [], disallowedIssueFields: [] }, reactions: [], archivePayload: {}, ...Object.fromEntries(members) };
}

const id = "46c351d2-fd2a-43b1-88d4-6174c69f38c4"; // that of the step in tests
const priorities = { none: 0, urgent: 1, high: 2, medium: 3, low: 4 };
const is = (value) => value && { id: { eq: value } };
const found = (filter) => (Object.values(filter).some((value) => value !== undefined) ? filter : undefined);

// since returns the parameters of a page of what was created or changed since the cursor.
const since = (field, { cursor }, more) => ({
  first: 50,
  after: cursor?.after,
  filter: { [field]: { gte: cursor?.since ?? "2026-11-18T08:45:00.000Z" }, ...more },
  orderBy: /** @type {any} */ (field),
});

/** @type {Record<string, (linear: LinearClient, input: any, environment: any) => unknown>} */
const operations = {
  "hooks/team": (linear, i) =>
    i.does === "register"
      ? linear.createWebhook({
          id: i.hook.id,
          url: i.hook.url,
          secret: i.hook.secret,
          label: "Stepmill",
          resourceTypes: i.types,
          teamId: i.team,
          allPublicTeams: i.team ? undefined : true,
        })
      : linear.deleteWebhook(i.subscription.id).catch((error) => {
          if (!error.message.startsWith("Entity not found")) throw error; // it is gone
        }),
  create_issue: (linear, i) =>
    linear.createIssue({
      id,
      teamId: i.team,
      title: i.title,
      description: i.description,
      stateId: i.state,
      assigneeId: i.assignee,
      priority: priorities[i.priority],
      labelIds: i.labels,
      projectId: i.project,
      cycleId: i.cycle,
      dueDate: i.due_date,
      estimate: i.estimate,
      parentId: i.parent,
    }),
  update_issue: (linear, i) =>
    linear.updateIssue(i.issue, {
      title: i.title,
      description: i.description,
      stateId: i.state,
      assigneeId: i.assignee,
      priority: priorities[i.priority],
      addedLabelIds: i.add_labels,
      removedLabelIds: i.remove_labels,
      projectId: i.project,
      dueDate: i.due_date,
      estimate: i.estimate,
    }),
  get_issue: (linear, i) => linear.issue(i.issue),
  list_issues: (linear, i) =>
    pages(50, i, (page) => {
      const state = i.state || i.kinds ? { ...is(i.state), ...(i.kinds && { type: { in: i.kinds } }) } : undefined;
      const filter = {
        team: is(i.team),
        state,
        assignee: is(i.assignee),
        labels: i.label && { some: is(i.label) },
        project: is(i.project),
        updatedAt: i.updated_since && { gte: i.updated_since },
      };
      return linear.issues({ ...page, filter, orderBy: i.order ?? "createdAt" });
    }),
  search_issues: (linear, i) => pages(50, i, (page) => linear.searchIssues(i.text, { ...page, teamId: i.team, includeComments: i.comments })),
  "triggers/new_issue": (linear, i) => linear.issues(since("createdAt", i, { team: is(i.team), project: is(i.project) })),
  "triggers/issue_changed": (linear, i) => linear.issues(since("updatedAt", i, { team: is(i.team), project: is(i.project) })),
  "triggers/new_comment": (linear, i) => linear.comments(since("createdAt", i, { issue: i.team && { team: is(i.team) } })),
  delete_issue: (linear, i) => linear.deleteIssue(i.issue),
  add_comment: (linear, i) => linear.createComment({ id, issueId: i.issue, body: i.text, parentId: i.parent }),
  link_url: (linear, i) => linear.attachmentLinkURL(i.issue, i.url, { title: i.title }),
  add_file: async (linear, { issue, file, title = file.name }, { at }) => {
    // The client does not send the file: Linear's guide does it like this.
    const send = async () => {
      const type = "text/plain; charset=utf-8";
      const { uploadFile } = await linear.fileUpload(type, file.name, file.content.length);
      const headers = { "Content-Type": type, "Cache-Control": "public, max-age=31536000" };
      for (const { key, value } of uploadFile.headers) headers[key] = value;
      const { ok } = await fetch(uploadFile.uploadUrl, { method: "PUT", headers, body: file.content });
      return ok ? uploadFile.assetUrl : send();
    };
    await linear.createAttachment({ issueId: issue, title, url: (await send()).replace(at("https://"), "https://") });
  },
  create_project: (linear, i) =>
    linear.createProject({
      id,
      name: i.name,
      teamIds: i.teams,
      description: i.description,
      content: i.content,
      leadId: i.lead,
      startDate: i.start_date,
      targetDate: i.target_date,
    }),
  post_project_update: (linear, i) => linear.createProjectUpdate({ id, projectId: i.project, body: i.text, health: i.health }),
  list_projects: (linear, i) => pages(50, i, (page) => linear.projects({ ...page, filter: found({ name: i.search && { containsIgnoreCase: i.search } }) })),
  list_teams: (linear, i) => pages(100, i, (page) => linear.teams(page)),
  list_users: (linear, i) =>
    pages(100, i, (page) => {
      const text = { containsIgnoreCase: i.search };
      return linear.users({ ...page, filter: { active: { eq: true }, ...(i.search && { or: [{ name: text }, { email: text }] }) } });
    }),
  list_labels: (linear, i) =>
    pages(100, i, (page) =>
      linear.issueLabels({
        ...page,
        filter: {
          isGroup: { eq: false },
          ...(i.search && { name: { containsIgnoreCase: i.search } }),
          ...(i.team && { or: [{ team: is(i.team) }, { team: { null: true } }] }),
        },
      }),
    ),
  list_states: (linear, i) => pages(100, i, (page) => linear.workflowStates({ ...page, filter: found({ team: is(i.team) }) })),
  list_cycles: (linear, i) => pages(100, i, (page) => linear.cycles({ ...page, filter: { isPast: { eq: false }, ...(i.team && { team: is(i.team) }) } })),
};

/** @type {import("../service.d.ts").Service<LinearClient>} */
export default {
  client: "@linear/sdk",
  auth: "api_key",
  secrets: { key: "lin_api_made-up" },
  connect: ({ at, secrets }) => {
    const linear = new LinearClient({ apiKey: secrets.key, apiUrl: local(at("https://api.linear.app/graphql")) });
    const request = linear.client.request.bind(linear.client);
    linear.client.request = async (...given) => /** @type {any} */ (complete(await request(...given)));
    return linear;
  },
  operations: Object.fromEntries(
    Object.entries(operations).map(([name, run]) => [
      name,
      (...given) => {
        operation = name;
        return run(...given);
      },
    ]),
  ),
  normalize: (request) => {
    // The client generates its queries, which select whatever the API has.
    if (request.json?.query) request.json = inOurWords(request.json, ours[operation]);
    if (request.url.startsWith("https://uploads.")) request.headers = {};
  },
  without: {
    list_comments: "the client reads the issue first, and then its comments",
    list_issue_states: "the client reads the issue, then its team, and then the states of that",
    get_file: "the client cannot download files",
  },
};
