import { Gitlab } from "@gitbeaker/rest";

// pages says how many items to read.
const pages = ({ limit = 100, all }) => ({ perPage: all ? 100 : Math.min(limit, 100), ...(!all && { maxPages: Math.ceil(limit / 100) }) });

// given leaves out what is not set.
const given = (options) => Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));

const joined = (list) => list?.join(",");
const event = (state) => ({ open: "reopen", closed: "close" })[state];
const state = (i) => (i.state === "all" ? undefined : (i.state ?? "opened"));
const notes = (gitlab, { kind }) => (kind === "merge_request" ? gitlab.MergeRequestNotes : gitlab.IssueNotes);

// newest says which page a poll reads; the first one reads a single item.
const newest = ({ cursor }) =>
  /** @type {const} */ ({ orderBy: "created_at", sort: "desc", perPage: cursor ? 30 : 1, maxPages: 1, ...(cursor && { page: cursor.page ?? 1 }) });

/** @type {import("../service.d.ts").Service<InstanceType<typeof import("@gitbeaker/rest").Gitlab>>} */
export default {
  client: "@gitbeaker/rest",
  auth: "bearer",
  secrets: { token: "glpat-made-up" },
  connect: ({ at, secrets }) => new Gitlab({ host: at("https://gitlab.com"), oauthToken: secrets.token }),
  operations: {
    "hooks/project": ({ ProjectHooks }, i) => {
      if (i.does !== "register") return ProjectHooks.remove(i.project, i.subscription.id);
      const on = (event) => i.events.includes(event);
      return ProjectHooks.add(i.project, i.hook.url, {
        token: i.hook.secret,
        pushEvents: on("push"),
        pushEventsBranchFilter: i.branch,
        tagPushEvents: on("tag"),
        issuesEvents: on("issue"),
        confidentialIssuesEvents: on("issue"),
        mergeRequestsEvents: on("merge_request"),
        noteEvents: on("comment"),
        confidentialNoteEvents: on("comment"),
        pipelineEvents: on("pipeline"),
        jobEvents: on("job"),
        deploymentEvents: on("deployment"),
        releasesEvents: on("release"),
        wikiPageEvents: on("wiki_page"),
      });
    },
    create_issue: ({ Issues }, i) =>
      Issues.create(i.project, i.title, {
        description: i.description,
        labels: joined(i.labels),
        assigneeIds: i.assignees,
        dueDate: i.due_date,
        milestoneId: i.milestone,
        confidential: i.confidential,
      }),
    update_issue: ({ Issues }, i) =>
      Issues.edit(i.project, i.number, {
        title: i.title,
        description: i.description,
        stateEvent: event(i.state),
        addLabels: joined(i.add_labels),
        removeLabels: joined(i.remove_labels),
        assigneeIds: i.assignees,
        dueDate: i.due_date,
        milestoneId: i.milestone,
      }),
    get_issue: ({ Issues }, i) => Issues.show(i.number, { projectId: i.project }),
    list_issues: ({ Issues }, i) =>
      Issues.all({
        projectId: i.project,
        state: state(i),
        labels: joined(i.labels),
        assigneeUsername: i.assignee,
        search: i.search,
        updatedAfter: i.updated_since,
        orderBy: i.order_by,
        sort: i.sort,
        ...pages(i),
      }),
    "triggers/new_issue": ({ Issues }, i) => Issues.all({ projectId: i.project, ...newest(i) }),
    "triggers/new_merge_request": ({ MergeRequests }, i) => MergeRequests.all({ projectId: i.project, targetBranch: i.target, ...newest(i) }),
    add_comment: (gitlab, i) => notes(gitlab, i).create(i.project, i.number, i.text, given({ internal: i.internal })),
    list_comments: (gitlab, i) => notes(gitlab, i).all(i.project, i.number, { orderBy: "created_at", sort: "asc", ...pages(i) }),
    create_merge_request: ({ MergeRequests }, i) =>
      MergeRequests.create(i.project, i.source, i.target, i.title, {
        description: i.description,
        labels: joined(i.labels),
        assigneeIds: i.assignees,
        reviewerIds: i.reviewers,
        removeSourceBranch: i.remove_source,
        squash: i.squash,
      }),
    update_merge_request: ({ MergeRequests }, i) =>
      MergeRequests.edit(i.project, i.number, {
        title: i.title,
        description: i.description,
        stateEvent: event(i.state),
        addLabels: joined(i.add_labels),
        removeLabels: joined(i.remove_labels),
        assigneeIds: i.assignees,
        reviewerIds: i.reviewers,
      }),
    get_merge_request: ({ MergeRequests }, i) => MergeRequests.show(i.project, i.number),
    list_merge_requests: ({ MergeRequests }, i) =>
      MergeRequests.all({
        projectId: i.project,
        state: state(i),
        sourceBranch: i.source,
        targetBranch: i.target,
        labels: joined(i.labels),
        search: i.search,
        updatedAfter: i.updated_since,
        ...pages(i),
      }),
    merge: ({ MergeRequests }, i) =>
      MergeRequests.merge(i.project, i.number, {
        squash: i.squash,
        shouldRemoveSourceBranch: i.remove_source,
        mergeCommitMessage: i.message,
        sha: i.sha,
        ...given({ autoMerge: i.when_ready }),
      }),
    run_pipeline: ({ Pipelines }, i) => {
      const variables = i.variables && Object.entries(i.variables).map(([key, value]) => ({ key, value: String(value) }));
      return Pipelines.create(i.project, i.ref, given({ variables }));
    },
    get_pipeline: ({ Pipelines }, i) => Pipelines.show(i.project, i.pipeline),
    list_pipelines: ({ Pipelines }, i) => Pipelines.all(i.project, { ref: i.ref, status: i.status, ...pages(i) }),
    get_file: ({ RepositoryFiles }, i) => RepositoryFiles.showRaw(i.project, i.path, i.ref ?? "HEAD"),
    put_file: async ({ RepositoryFiles }, { project, path, branch, message, file }) => {
      const options = /** @type {const} */ ({ encoding: "base64" });
      const content = file.content.toString("base64");
      const write = async () => {
        const last = await RepositoryFiles.show(project, path, branch, { showExpanded: true }).then(
          ({ headers }) => headers["x-gitlab-last-commit-id"],
          () => undefined,
        );
        if (last === undefined) return RepositoryFiles.create(project, path, branch, content, message, options);
        return RepositoryFiles.edit(project, path, branch, content, message, { ...options, lastCommitId: String(last) });
      };
      await write().catch((error) => {
        if (!error.cause?.description?.includes("has changed since")) throw error;
        return write();
      });
    },
    list_projects: ({ Projects }, i) =>
      Projects.all({ pagination: "offset", membership: true, simple: true, orderBy: "last_activity_at", search: i.search, ...pages(i) }),
    list_branches: ({ Branches }, i) => Branches.all(i.project, given({ search: i.search, ...pages(i) })),
    list_members: ({ ProjectMembers }, i) => ProjectMembers.all(i.project, { includeInherited: true, query: i.search, ...pages(i) }),
    list_labels: ({ ProjectLabels }, i) => ProjectLabels.all(i.project, pages(i)),
    list_milestones: ({ ProjectMilestones }, i) => ProjectMilestones.all(i.project, { state: "active", ...given({ includeAncestors: true }), ...pages(i) }),
  },
  // The client sends an empty object with DELETE.
  normalize: (request) => {
    if (request.method === "DELETE") delete request.json;
  },
  differences: [
    { operation: "list_projects", at: "query/pagination", client: "offset", why: "it is the default, which the types of the client require" },
    { operation: "put_file", at: "method", client: "GET", ours: "HEAD", why: "the client reads the whole file to learn its last commit, which is in a header too" },
  ],
};
