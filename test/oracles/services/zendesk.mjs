import { Readable } from "node:stream";
import zendesk from "node-zendesk";

const secrets = { email: "ada@example.com", token: "a-made-up-token" };

const numbered = (fields) => fields && Object.entries(fields).map(([id, value]) => ({ id: Number(id), value }));

// uploads uploads files, and returns their tokens.
async function uploads(client, files) {
  if (!files) return undefined;
  const tokens = [];
  for (const { name, content } of files) {
    const { upload } = await client.attachments.upload(Readable.from([content]), { filename: name, binary: false });
    tokens.push(upload.token);
  }
  return tokens;
}

const comment = (i, more) => ({ ...(i.html ? { html_body: i.text } : { body: i.text }), ...more });
const requester = (i) => i.requester_email && { email: i.requester_email, name: i.requester_name };
const ticketOf = (i) => ({
  status: i.status,
  priority: i.priority,
  type: i.type,
  subject: i.subject,
  assignee_id: i.assignee,
  group_id: i.group,
  requester_id: i.requester,
  tags: i.tags,
  custom_fields: numbered(i.custom_fields),
  due_at: i.due,
  external_id: i.external_id,
});
const userOf = (i) => ({
  user: {
    name: i.name,
    email: i.email,
    phone: i.phone,
    organization_id: i.organization,
    role: i.role,
    notes: i.notes,
    tags: i.tags,
    verified: i.verified,
    external_id: i.external_id,
    user_fields: i.fields,
  },
});
const organizationOf = (i) => ({
  organization: {
    name: i.name,
    domain_names: i.domains,
    notes: i.notes,
    details: i.details,
    tags: i.tags,
    external_id: i.external_id,
    organization_fields: i.fields,
  },
});

const listed = "the client has no option for it";
const binary = "the client sends it for browsers; the body has the type of the file";
const polled = { new_ticket: "-id", ticket_changed: "-updated_at" };

/** @type {import("../service.d.ts").Service<any>} */
export default {
  client: "node-zendesk",
  auth: "basic",
  secrets,
  connect: ({ at }) => zendesk.createClient({ username: secrets.email, token: secrets.token, subdomain: "acme", endpointUri: at("https://acme.zendesk.com/api/v2") }),
  operations: /** @type {Record<string, (client: import("node-zendesk").ZendeskClient, input: any) => unknown>} */ ({
    create_ticket: async (client, i) => {
      const more = { public: i.private ? false : undefined, uploads: await uploads(client, i.files) };
      const ticket = /** @type {any} */ ({ ...ticketOf(i), comment: comment(i, more), requester: requester(i), ticket_form_id: i.form });
      await client.tickets.create({ ticket });
    },
    update_ticket: ({ tickets }, i) => tickets.update(i.ticket, { ticket: /** @type {any} */ (ticketOf(i)) }),
    add_comment: async (client, i) => {
      const more = { public: i.private !== true, author_id: i.author, uploads: await uploads(client, i.files) };
      await client.tickets.update(i.ticket, { ticket: { comment: comment(i, more), status: i.status } });
    },
    get_ticket: ({ tickets }, i) => tickets.show(i.ticket),
    list_tickets: ({ tickets, views }, i) => (i.view ? views.tickets(i.view) : tickets.list()),
    search: ({ search }, i) => search.exportResults(i.query, i.type ?? "ticket"),
    list_comments: ({ tickets }, i) => tickets.getComments(i.ticket),
    delete_ticket: ({ tickets }, i) => tickets.delete(i.ticket),
    add_tags: ({ tickets }, i) => tickets.addTags(i.ticket, /** @type {any} */ ({ tags: i.tags })),
    create_user: ({ users }, i) => users.create(userOf(i)),
    upsert_user: ({ users }, i) => users.createOrUpdate(userOf(i)),
    update_user: ({ users }, i) => users.update(i.user, userOf(i)),
    get_user: ({ users }, i) => users.show(i.user),
    find_user: ({ users }, i) => users.search({ query: `email:${i.email}` }),
    create_organization: ({ organizations }, i) => organizations.create(organizationOf(i)),
    update_organization: ({ organizations }, i) => organizations.update(i.organization, organizationOf(i)),
    get_organization: ({ organizations }, i) => organizations.show(i.organization),
    list_user_choices: ({ users }, i) => (i.search ? users.search({ query: i.search }) : users.list()),
    list_organization_choices: ({ organizations }, i) => (i.search ? organizations.autocomplete({ name: i.search }) : organizations.list()),
    list_agents: ({ users }) => users.listWithFilter("role[]", "agent"),
    list_groups: ({ groups }) => groups.list(),
    list_views: ({ views }) => views.listActive(),
    list_ticket_forms: ({ ticketforms }) => ticketforms.list(),
    list_ticket_fields: ({ ticketfields }) => ticketfields.list(),
    list_user_fields: ({ userfields }) => userfields.list(),
    list_organization_fields: ({ organizationfields }) => organizationfields.list(),
    "hooks/webhook": async ({ webhooks }, i) => {
      if (i.does !== "register") return webhooks.delete(i.subscription.id);
      const subscriptions = i.events.map((name) => `zen:event-type:${name}`);
      const made = /** @type {any} */ (
        await webhooks.create({ webhook: { name: "Stepmill", endpoint: i.hook.url, http_method: "POST", request_format: "json", status: "active", subscriptions } })
      );
      return webhooks.getSigningSecret(made.result.id);
    },
    ...Object.fromEntries(Object.keys(polled).map((name) => [`triggers/${name}`, ({ tickets }) => tickets.list()])),
  }),
  differences: [
    { operation: "create_ticket", test: "with everything", request: 1, at: "query/binary", client: "false", why: binary },
    { operation: "create_ticket", test: "with everything", request: 2, at: "query/binary", client: "false", why: binary },
    { operation: "add_comment", test: "a reply that solves", request: 1, at: "query/binary", client: "false", why: binary },
    { operation: "list_tickets", test: "two pages", request: 1, at: "query/sort", ours: "-updated_at", why: listed },
    { operation: "list_tickets", test: "of a view", at: "query", ours: { "page[size]": "100" }, why: listed },
    { operation: "list_comments", at: "query", ours: { "page[size]": "100" }, why: listed },
    { operation: "list_agents", at: "query/role[]", client: "agent", ours: ["agent", "admin"], why: "the client can only ask for one role" },
    ...Object.entries(polled).flatMap(([name, sort]) => [
      { operation: `triggers/${name}`, at: "query/sort", ours: sort, why: listed },
      { operation: `triggers/${name}`, test: "the last page of thousands", at: "query/page[after]", ours: "eyJ0", why: listed },
    ]),
  ],
  without: { remove_tags: "the client cannot remove tags of a ticket" },
};
