import { Version2Client } from "jira.js";

const many = (value) => [value].flat();
const wrapped = (value, member) => (typeof value === "object" ? value : { [member]: value });

// member says in which member of an object the API takes a value of a type; none if the
// value stands alone.
const member = (type) => ({ option: "value", user: "accountId", version: "name", component: "name", priority: "name" })[type];

// fields returns further fields as the API takes them. known has their types.
function fields(values = {}, known = []) {
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => {
      const field = known.find(({ id, name: title }) => id === name || title === name);
      if (!field) throw new Error(`there is no ${name}`);
      const { type, items } = field.schema;
      if (value === null) return [field.id, null];
      if (type === "array") return [field.id, many(value).map((one) => (member(items) ? wrapped(one, member(items)) : one))];
      return [field.id, member(type) ? wrapped(value, member(type)) : value];
    }),
  );
}

const some = (values) => Object.keys(values ?? {}).length > 0;

// pages reads pages until there are enough items.
async function pages(size, { limit = 100, all }, read) {
  const maxResults = all ? size : Math.min(limit, size);
  for (let startAt = 0; all || startAt < limit; ) {
    const { count, last } = await read({ startAt, maxResults });
    startAt += count;
    if (last) return;
  }
}

const page = ({ values, isLast }) => ({ count: values.length, last: isLast });

const standard = ["summary", "status", "issuetype", "priority", "assignee", "reporter", "labels", "created", "updated", "duedate"];

// since reads a page of the issues that were created or updated some minutes ago.
function since({ issueSearch }, field, { project, jql, cursor, fields = standard }) {
  const minutes = cursor?.minutes ?? Math.floor((Date.parse("2026-11-18T09:00:00Z") - Date.parse(cursor?.since ?? "2026-11-18T09:00:00Z")) / 60_000) + 3;
  const conditions = [project && `project = ${JSON.stringify(project)}`, jql && `(${jql})`, `${field} >= -${minutes}m`];
  return issueSearch.searchForIssuesUsingJqlEnhancedSearchPost({
    jql: `${conditions.filter(Boolean).join(" AND ")} ORDER BY ${field} ASC`,
    fields: [...new Set([...fields, ...(field === "updated" ? ["updated"] : [])])],
    maxResults: 50,
    nextPageToken: cursor?.page,
  });
}

/** @type {import("../service.d.ts").Service<import("jira.js").Version2Client>} */
export default {
  client: "jira.js",
  auth: "basic",
  secrets: { token: "ATATT-made-up" },
  headers: ["x-atlassian-token"],
  connect: ({ at, secrets }) => new Version2Client({ host: at("https://acme.atlassian.net"), authentication: { basic: { email: "ada@example.com", apiToken: secrets.token } } }),
  operations: {
    create_issue: async ({ issues }, i) => {
      const meta = some(i.fields) && (await issues.getCreateIssueMetaIssueTypeId({ projectIdOrKey: i.project, issueTypeId: i.type, maxResults: 200 }));
      const known = meta && meta.fields.map(({ fieldId, ...field }) => ({ id: fieldId, ...field }));
      await issues.createIssue({
        fields: {
          project: { key: i.project },
          issuetype: { id: i.type },
          summary: i.summary,
          description: i.description,
          assignee: i.assignee && { id: i.assignee },
          priority: i.priority && { name: i.priority },
          labels: i.labels,
          duedate: i.due_date,
          parent: i.parent && { key: i.parent },
          ...fields(i.fields, known),
        },
      });
    },
    update_issue: async ({ issues }, i) => {
      const meta = some(i.fields) && (await issues.getEditIssueMeta({ issueIdOrKey: i.issue }));
      const known = meta && Object.entries(meta.fields).map(([id, field]) => ({ ...field, id }));
      const labels = [...(i.add_labels ?? []).map((add) => ({ add })), ...(i.remove_labels ?? []).map((remove) => ({ remove }))];
      await issues.editIssue({
        issueIdOrKey: i.issue,
        fields: {
          summary: i.summary,
          description: i.description,
          priority: i.priority && { name: i.priority },
          duedate: i.due_date,
          ...fields(i.fields, known),
        },
        update: labels.length > 0 ? { labels } : undefined,
      });
    },
    get_issue: ({ issues }, i) => issues.getIssue({ issueIdOrKey: i.issue, fields: i.fields }),
    search_issues: async ({ issueSearch }, i) => {
      let nextPageToken;
      await pages(100, i, async ({ maxResults }) => {
        const found = await issueSearch.searchForIssuesUsingJqlEnhancedSearchPost({ jql: i.jql, fields: i.fields ?? standard, maxResults, nextPageToken });
        nextPageToken = found.nextPageToken;
        return { count: found.issues.length, last: !nextPageToken };
      });
    },
    "triggers/new_issue": (jira, i) => since(jira, "created", i),
    "triggers/issue_changed": (jira, i) => since(jira, "updated", i),
    transition_issue: async ({ issues }, i) => {
      const { fields } = await issues.getIssue({ issueIdOrKey: i.issue, fields: ["status"] });
      const is = (name) => name.toLowerCase() === i.status.toLowerCase();
      if (is(fields.status.name)) return;
      const { transitions } = await issues.getTransitions({ issueIdOrKey: i.issue });
      const chosen = transitions.find(({ to, name }) => is(to.name) || is(name));
      if (!chosen) throw new Error("there is no such transition");
      await issues.doTransition({
        issueIdOrKey: i.issue,
        transition: { id: chosen.id },
        fields: i.resolution && { resolution: { name: i.resolution } },
        update: i.comment && { comment: [{ add: { body: i.comment } }] },
      });
    },
    assign_issue: ({ issues }, i) => issues.assignIssue({ issueIdOrKey: i.issue, accountId: i.user ?? null }),
    add_comment: ({ issueComments }, i) => issueComments.addComment({ issueIdOrKey: i.issue, comment: i.text }),
    list_comments: ({ issueComments }, i) =>
      pages(100, i, async (at) => {
        const { comments, total } = await issueComments.getComments({ issueIdOrKey: i.issue, ...at, orderBy: "created" });
        return { count: comments.length, last: at.startAt + comments.length >= total };
      }),
    add_attachment: ({ issueAttachments }, i) =>
      issueAttachments.addAttachment({ issueIdOrKey: i.issue, attachment: { filename: i.file.name, file: i.file.content, mimeType: "text/plain; charset=utf-8" } }),
    get_attachment: async ({ issueAttachments }, i) => {
      await issueAttachments.getAttachment({ id: i.attachment });
      await issueAttachments.getAttachmentContent({ id: i.attachment, redirect: false });
    },
    find_user: ({ userSearch }, i) => userSearch.findUsers({ query: i.search, maxResults: 50 }),
    list_projects: ({ projects }, i) => pages(50, i, async (at) => page(await projects.searchProjects({ query: i.search, ...at }))),
    list_types: ({ issues }, i) => issues.getCreateIssueMetaIssueTypes({ projectIdOrKey: i.project, maxResults: 200 }),
    list_users: ({ userSearch }, i) =>
      userSearch.findAssignableUsers({ project: i.issue ? undefined : i.project, issueKey: i.issue, query: i.search, maxResults: 1000 }),
    list_priorities: ({ issuePriorities }, i) => pages(50, i, async (at) => page(await issuePriorities.searchPriorities(at))),
    list_labels: ({ labels }, i) => pages(1000, i, async (at) => page(await labels.getAllLabels(at))),
    list_transitions: ({ issues }, i) => issues.getTransitions({ issueIdOrKey: i.issue }),
    list_fields: ({ issues }, i) => issues.getCreateIssueMetaIssueTypeId({ projectIdOrKey: i.project, issueTypeId: i.type, maxResults: 200 }),
    list_issue_fields: ({ issues }, i) => issues.getEditIssueMeta({ issueIdOrKey: i.issue }),
  },
};
