import { Octokit } from "@octokit/rest";

const repo = ({ repository }) => {
  const [owner, name] = repository.split("/");
  return { owner, repo: name };
};

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

export default {
  client: "@octokit/rest",
  auth: "bearer",
  secrets: { token: "made-up" },
  headers: ["accept"],
  connect: ({ at, secrets }) =>
    new Octokit({ auth: secrets.token, baseUrl: at("https://api.github.com"), log: { debug() {}, info() {}, warn() {}, error() {} } }),
  operations: {
    create_issue: ({ rest }, i) =>
      rest.issues.create({ ...repo(i), title: i.title, body: i.body, labels: i.labels, assignees: i.assignees, milestone: i.milestone }),
    update_issue: ({ rest }, { number, repository, ...changes }) => rest.issues.update({ ...repo({ repository }), issue_number: number, ...changes }),
    get_issue: ({ rest }, i) => rest.issues.get({ ...repo(i), issue_number: i.number }),
    list_issues: (octokit, i) =>
      list(
        octokit,
        octokit.rest.issues.listForRepo,
        { ...repo(i), state: i.state ?? "open", labels: i.labels?.join(","), assignee: i.assignee, since: i.since, sort: i.sort, direction: i.direction },
        i,
      ),
    search_issues: (octokit, i) => list(octokit, octokit.rest.search.issuesAndPullRequests, { q: i.query, sort: i.sort, order: i.order }, i),
    add_comment: ({ rest }, i) => rest.issues.createComment({ ...repo(i), issue_number: i.number, body: i.body }),
    list_comments: (octokit, i) => list(octokit, octokit.rest.issues.listComments, { ...repo(i), issue_number: i.number, since: i.since }, i),
    add_labels: ({ rest }, i) => rest.issues.addLabels({ ...repo(i), issue_number: i.number, labels: i.labels }),
    create_pull_request: ({ rest }, i) => rest.pulls.create({ ...repo(i), title: i.title, head: i.head, base: i.base, body: i.body, draft: i.draft }),
    list_pull_requests: (octokit, i) =>
      list(octokit, octokit.rest.pulls.list, { ...repo(i), state: i.state ?? "open", head: i.head, base: i.base, sort: i.sort, direction: i.direction }, i),
    get_pull_request: ({ rest }, i) => rest.pulls.get({ ...repo(i), pull_number: i.number }),
    request_reviewers: ({ rest }, i) =>
      rest.pulls.requestReviewers({ ...repo(i), pull_number: i.number, reviewers: i.reviewers, team_reviewers: i.team_reviewers }),
    merge_pull_request: ({ rest }, i) =>
      rest.pulls.merge({
        ...repo(i),
        pull_number: i.number,
        merge_method: i.method,
        commit_title: i.commit_title,
        commit_message: i.commit_message,
        sha: i.sha,
      }),
    create_release: ({ rest }, i) =>
      rest.repos.createRelease({
        ...repo(i),
        tag_name: i.tag,
        target_commitish: i.target,
        name: i.name,
        body: i.body,
        generate_release_notes: i.generate_notes,
        draft: i.draft,
        prerelease: i.prerelease,
      }),
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
    get_file: ({ rest }, i) => rest.repos.getContent({ ...repo(i), path: i.path, ref: i.ref, mediaType: { format: "raw" } }),
    put_file: async ({ rest }, i) => {
      for (;;) {
        const current = await rest.repos
          .getContent({ ...repo(i), path: i.path, ref: i.branch, mediaType: { format: "object" } })
          .catch(() => ({ data: {} })); // a new file
        try {
          return await rest.repos.createOrUpdateFileContents({
            ...repo(i),
            path: i.path,
            message: i.message,
            content: i.file.content.toString("base64"),
            sha: current.data.sha,
            branch: i.branch,
          });
        } catch (error) {
          if (error.status !== 409) throw error;
        }
      }
    },
    run_workflow: ({ rest }, i) =>
      rest.actions.createWorkflowDispatch({ ...repo(i), workflow_id: i.workflow, ref: i.ref, inputs: i.inputs, return_run_details: true }),
    list_commits: (octokit, i) =>
      list(octokit, octokit.rest.repos.listCommits, { ...repo(i), sha: i.branch, path: i.path, author: i.author, since: i.since, until: i.until }, i),
    list_releases: of("repos", "listReleases"),
    list_repositories: (octokit, i) => list(octokit, octokit.rest.repos.listForAuthenticatedUser, { sort: "pushed" }, i),
    list_branches: of("repos", "listBranches"),
    list_labels: of("issues", "listLabelsForRepo"),
    list_assignees: of("issues", "listAssignees"),
    list_milestones: of("issues", "listMilestones"),
    list_workflows: of("actions", "listRepoWorkflows"),
  },
  differences: [
    { at: "headers/authorization", client: "token made-up", ours: "Bearer made-up", why: "GitHub accepts both; its documentation has Bearer" },
    {
      at: "headers/accept",
      client: "application/vnd.github.v3+json",
      ours: "application/vnd.github+json",
      why: "the header X-GitHub-Api-Version has replaced the version in the media type",
    },
    { at: "headers/accept", client: "application/vnd.github.v3.raw", ours: "application/vnd.github.raw+json", why: "likewise" },
    { at: "headers/accept", client: "application/vnd.github.v3.object", ours: "application/vnd.github.object+json", why: "likewise" },
    ...["read%20me.pdf", "report.pdf"].map((name) => ({
      at: "url",
      client: `https://api.github.com/repos/octocat/hello-world/contents/docs%2F${name}`,
      ours: `https://api.github.com/repos/octocat/hello-world/contents/docs/${name}`,
      why: "GitHub accepts both; its documentation has plain slashes",
    })),
  ],
};
