import { Octokit } from "@octokit/rest";

const repo = ({ repository }) => {
  const [owner, name] = repository.split("/");
  return { owner, repo: name };
};

/**
 * as checks the names of parameters.
 * @template {import("../github.d.ts").Id} Id
 * @param {Id} _id the operation in GitHub's OpenAPI document
 * @param {import("../github.d.ts").Params<Id>} params
 * @returns {any} Octokit's types are of another version
 */
const as = (_id, params) => params;

// list reads pages until there are enough items.
async function list(octokit, method, params, { limit = 100, all }) {
  let count = 0;
  await octokit.paginate(method, { ...params, per_page: all ? 100 : Math.min(limit, 100) }, ({ data }, done) => {
    count += data.length;
    if (!all && count >= limit) done();
    return data;
  });
}

// of returns an operation that lists something of a repository.
const of = (group, method) => (octokit, i) => list(octokit, octokit.rest[group][method], repo(i), i);

// part says which page a poll reads; the first one reads a single item.
const part = ({ cursor }, size) => (cursor ? { per_page: size, page: cursor.page } : { per_page: 1 });

/** @type {import("../service.d.ts").Service<import("@octokit/rest").Octokit>} */
export default {
  client: "@octokit/rest",
  auth: "bearer",
  secrets: { token: "made-up" },
  headers: ["accept"],
  connect: ({ at, secrets }) =>
    new Octokit({
      auth: secrets.token,
      baseUrl: at("https://api.github.com"),
      log: { debug() {}, info() {}, warn() {}, error() {} },
    }),
  operations: {
    "hooks/repository": ({ rest }, i) =>
      i.does === "register"
        ? rest.repos.createWebhook(
            as("repos/create-webhook", { ...repo(i), name: "web", active: true, events: i.events, config: { url: i.hook.url, content_type: "json", secret: i.hook.secret } }),
          )
        : rest.repos.deleteWebhook(as("repos/delete-webhook", { ...repo(i), hook_id: i.subscription.id })),
    "triggers/new_issue": ({ rest }, i) =>
      rest.issues.listForRepo(as("issues/list-for-repo", { ...repo(i), state: "all", sort: "created", direction: "desc", ...part(i, 30) })),
    "triggers/new_pull_request": ({ rest }, i) =>
      rest.pulls.list(as("pulls/list", { ...repo(i), state: "all", base: i.base, sort: "created", direction: "desc", ...part(i, 30) })),
    "triggers/new_release": ({ rest }, i) => rest.repos.listReleases(as("repos/list-releases", { ...repo(i), per_page: 30, page: i.cursor?.page })),
    "triggers/new_commit": async ({ rest }, i) => {
      let head = i.cursor?.head;
      if (!head) ({ sha: head } = (await rest.repos.getCommit(as("repos/get-commit", { ...repo(i), ref: i.branch ?? "HEAD" }))).data);
      if (!i.cursor || head === i.cursor.sha) return;
      const basehead = `${i.cursor.sha}...${head}`;
      await rest.repos.compareCommitsWithBasehead(as("repos/compare-commits-with-basehead", { ...repo(i), basehead, per_page: 100, page: i.cursor.page ?? 1 }));
    },
    create_issue: ({ rest }, i) =>
      rest.issues.create(
        as("issues/create", {
          ...repo(i),
          title: i.title,
          body: i.body,
          labels: i.labels,
          assignees: i.assignees,
          milestone: i.milestone,
        }),
      ),
    update_issue: ({ rest }, i) =>
      rest.issues.update(
        as("issues/update", {
          ...repo(i),
          issue_number: i.number,
          title: i.title,
          body: i.body,
          state: i.state,
          state_reason: i.state_reason,
          labels: i.labels,
          assignees: i.assignees,
          milestone: i.milestone,
        }),
      ),
    get_issue: ({ rest }, i) => rest.issues.get(as("issues/get", { ...repo(i), issue_number: i.number })),
    list_issues: (octokit, i) =>
      list(
        octokit,
        octokit.rest.issues.listForRepo,
        as("issues/list-for-repo", {
          ...repo(i),
          state: i.state ?? "open",
          labels: i.labels?.join(","),
          assignee: i.assignee,
          since: i.since,
          sort: i.sort,
          direction: i.direction,
        }),
        i,
      ),
    search_issues: (octokit, i) =>
      list(
        octokit,
        octokit.rest.search.issuesAndPullRequests,
        as("search/issues-and-pull-requests", { q: i.query, sort: i.sort, order: i.order }),
        i,
      ),
    add_comment: ({ rest }, i) => rest.issues.createComment(as("issues/create-comment", { ...repo(i), issue_number: i.number, body: i.body })),
    list_comments: (octokit, i) =>
      list(octokit, octokit.rest.issues.listComments, as("issues/list-comments", { ...repo(i), issue_number: i.number, since: i.since }), i),
    add_labels: ({ rest }, i) => rest.issues.addLabels(as("issues/add-labels", { ...repo(i), issue_number: i.number, labels: i.labels })),
    create_pull_request: ({ rest }, i) =>
      rest.pulls.create(as("pulls/create", { ...repo(i), title: i.title, head: i.head, base: i.base, body: i.body, draft: i.draft })),
    list_pull_requests: (octokit, i) =>
      list(
        octokit,
        octokit.rest.pulls.list,
        as("pulls/list", {
          ...repo(i),
          state: i.state ?? "open",
          head: i.head,
          base: i.base,
          sort: i.sort,
          direction: i.direction,
        }),
        i,
      ),
    get_pull_request: ({ rest }, i) => rest.pulls.get(as("pulls/get", { ...repo(i), pull_number: i.number })),
    request_reviewers: ({ rest }, i) =>
      rest.pulls.requestReviewers(
        as("pulls/request-reviewers", {
          ...repo(i),
          pull_number: i.number,
          reviewers: i.reviewers,
          team_reviewers: i.team_reviewers,
        }),
      ),
    merge_pull_request: ({ rest }, i) =>
      rest.pulls.merge(
        as("pulls/merge", {
          ...repo(i),
          pull_number: i.number,
          merge_method: i.method,
          commit_title: i.commit_title,
          commit_message: i.commit_message,
          sha: i.sha,
        }),
      ),
    create_release: ({ rest }, i) =>
      rest.repos.createRelease(
        as("repos/create-release", {
          ...repo(i),
          tag_name: i.tag,
          target_commitish: i.target,
          name: i.name,
          body: i.body,
          generate_release_notes: i.generate_notes,
          draft: i.draft,
          prerelease: i.prerelease,
        }),
      ),
    upload_release_asset: ({ rest }, i, { at }) =>
      rest.repos.uploadReleaseAsset({
        ...repo(i),
        release_id: i.release,
        name: i.name ?? i.file.name,
        label: i.label,
        data: i.file.content,
        baseUrl: at("https://uploads.github.com"),
        headers: { "content-type": "application/pdf" },
      }),
    get_file: ({ rest }, i) =>
      rest.repos.getContent({
        ...as("repos/get-content", { ...repo(i), path: i.path, ref: i.ref }),
        mediaType: { format: "raw" },
      }),
    put_file: async ({ rest }, i) => {
      for (;;) {
        /** @type {{data: any}} */
        const current = await rest.repos
          .getContent({
            ...as("repos/get-content", { ...repo(i), path: i.path, ref: i.branch }),
            mediaType: { format: "object" },
          })
          .catch(() => ({ data: {} })); // a new file
        try {
          return await rest.repos.createOrUpdateFileContents(
            as("repos/create-or-update-file-contents", {
              ...repo(i),
              path: i.path,
              message: i.message,
              content: i.file.content.toString("base64"),
              sha: current.data.sha,
              branch: i.branch,
            }),
          );
        } catch (error) {
          if (error.status !== 409) throw error;
        }
      }
    },
    run_workflow: ({ rest }, i) =>
      rest.actions.createWorkflowDispatch(
        as("actions/create-workflow-dispatch", {
          ...repo(i),
          workflow_id: i.workflow,
          ref: i.ref,
          inputs: i.inputs,
          return_run_details: true,
        }),
      ),
    list_commits: (octokit, i) =>
      list(
        octokit,
        octokit.rest.repos.listCommits,
        as("repos/list-commits", {
          ...repo(i),
          sha: i.branch,
          path: i.path,
          author: i.author,
          since: i.since,
          until: i.until,
        }),
        i,
      ),
    list_releases: of("repos", "listReleases"),
    list_repositories: (octokit, i) =>
      list(octokit, octokit.rest.repos.listForAuthenticatedUser, as("repos/list-for-authenticated-user", { sort: "pushed" }), i),
    list_branches: of("repos", "listBranches"),
    list_labels: of("issues", "listLabelsForRepo"),
    list_assignees: of("issues", "listAssignees"),
    list_milestones: of("issues", "listMilestones"),
    list_workflows: of("actions", "listRepoWorkflows"),
  },
  differences: [
    {
      at: "headers/authorization",
      client: "token made-up",
      ours: "Bearer made-up",
      why: "GitHub accepts both; its documentation has Bearer",
    },
    {
      at: "headers/accept",
      client: "application/vnd.github.v3+json",
      ours: "application/vnd.github+json",
      why: "the header X-GitHub-Api-Version has replaced the version in the media type",
    },
    {
      at: "headers/accept",
      client: "application/vnd.github.v3.raw",
      ours: "application/vnd.github.raw+json",
      why: "likewise",
    },
    {
      at: "headers/accept",
      client: "application/vnd.github.v3.object",
      ours: "application/vnd.github.object+json",
      why: "likewise",
    },
    ...["read%20me.pdf", "report.pdf"].map((name) => ({
      at: "url",
      client: `https://api.github.com/repos/octocat/hello-world/contents/docs%2F${name}`,
      ours: `https://api.github.com/repos/octocat/hello-world/contents/docs/${name}`,
      why: "GitHub accepts both; its documentation has plain slashes",
    })),
  ],
};
