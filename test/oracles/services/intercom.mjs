import { IntercomClient } from "intercom-client";

const seconds = (time) => time && Date.parse(time) / 1000;

/** @typedef {import("intercom-client").Intercom.SearchRequest} SearchRequest */

// searchFor returns a search. The types of the client know no sort.
const searchFor = (query, pagination, sort = undefined) => /** @type {SearchRequest} */ (/** @type {unknown} */ ({ query, sort, pagination }));

// attributes returns own attributes as the API takes them: times end in _at.
const attributes = (values) =>
  values && Object.fromEntries(Object.entries(values).map(([name, value]) => [name, name.endsWith("_at") && typeof value === "string" ? seconds(value) : value]));

const contactOf = (i) => ({
  email: i.email,
  external_id: i.external_id,
  name: i.name,
  phone: i.phone,
  avatar: i.avatar,
  owner_id: i.owner && Number(i.owner),
  signed_up_at: seconds(i.signed_up),
  unsubscribed_from_emails: i.unsubscribed,
  custom_attributes: attributes(i.attributes),
});

// ticketAttributes returns the attributes of a ticket with those that all types have.
const ticketAttributes = (i) => {
  if (i.title === undefined && i.description === undefined && i.attributes === undefined) return undefined;
  return { _default_title_: i.title, _default_description_: i.description, ...i.attributes };
};

const operators = { equal: "=", in: "IN", greater: ">", contains: "~" };

// pages reads pages until there are enough items.
async function pages(i, first) {
  let page = await first(i.all ? 150 : Math.min(i.limit ?? 100, 150));
  for (let count = page.data.length; page.hasNextPage() && (i.all || count < (i.limit ?? 100)); count += page.data.length) page = await page.getNextPage();
}

const all = { field: "created_at", operator: ">", value: 0 };

const poll = (resource) => (intercom, { cursor }) =>
  intercom[resource].search(
    searchFor(
      { field: "created_at", operator: ">", value: (cursor?.since ?? 1794991500) - 172800 },
      { per_page: 150, starting_after: cursor?.after },
      { field: "created_at", order: "descending" },
    ),
  );

/** @type {import("../service.d.ts").Service<IntercomClient>} */
export default {
  client: "intercom-client",
  auth: "bearer",
  secrets: { token: "made-up" },
  headers: ["intercom-version"],
  connect: ({ at, secrets }) => new IntercomClient({ token: secrets.token, baseUrl: at("https://api.intercom.io"), version: "2.14", maxRetries: 0 }),
  operations: {
    create_contact: ({ contacts }, i) => contacts.create({ role: i.role ?? "user", ...contactOf(i) }),
    update_contact: ({ contacts }, i) => contacts.update({ contact_id: i.contact, role: i.role, ...contactOf(i) }),
    upsert_contact: async ({ contacts }, i) => {
      const field = i.match ?? "email";
      const value = [
        { field: "role", operator: "=", value: "user" },
        { field, operator: "=", value: i[field] },
      ];
      const { data } = await contacts.search(searchFor({ operator: "AND", value }, { per_page: 1 }));
      await (data.length > 0 ? contacts.update({ contact_id: data[0].id, ...contactOf(i) }) : contacts.create({ role: "user", ...contactOf(i) }));
    },
    get_contact: ({ contacts }, i) => contacts.find({ contact_id: i.contact }),
    search_contacts: ({ contacts }, i) => {
      const value = i.filters?.map(({ field, operator, value }) => ({ field, operator: operators[operator], value: field.endsWith("_at") ? seconds(value) : value }));
      const query = value ? { operator: i.match === "any" ? "OR" : "AND", value } : all;
      const sort = i.sort && { field: i.sort, order: i.descending ? "descending" : "ascending" };
      return pages(i, (per_page) => contacts.search(searchFor(query, { per_page }, sort)));
    },
    delete_contact: ({ contacts }, i) => contacts.delete({ contact_id: i.contact }),
    add_note: ({ notes }, i) => notes.create({ contact_id: i.contact, body: i.text, admin_id: i.admin }),
    tag_contact: ({ tags }, i) => tags.tagContact({ contact_id: i.contact, id: i.tag }),
    untag_contact: ({ tags }, i) => tags.untagContact({ contact_id: i.contact, tag_id: i.tag }),
    upsert_company: ({ companies }, i) =>
      companies.createOrUpdate({
        company_id: i.external_id,
        name: i.name,
        plan: i.plan,
        monthly_spend: i.monthly_spend,
        size: i.size,
        website: i.website,
        industry: i.industry,
        remote_created_at: seconds(i.created),
        custom_attributes: attributes(i.attributes),
      }),
    add_contact_to_company: ({ companies }, i) => companies.attachContact({ contact_id: i.contact, id: i.company }),
    list_companies: async ({ companies }) => {
      let page = await companies.list({ page: 1, per_page: 60 });
      while (page.response.pages.page < page.response.pages.total_pages) page = await page.getNextPage();
    },
    send_message: ({ messages }, i) =>
      messages.create({
        message_type: i.kind ?? "inapp",
        subject: i.subject,
        body: i.text,
        template: i.template,
        from: { type: "admin", id: Number(i.admin) },
        to: { type: i.role ?? "user", id: i.contact },
        create_conversation_without_contact_reply: i.open,
      }),
    reply_to_conversation: ({ conversations }, i) =>
      conversations.reply({
        conversation_id: i.conversation,
        body: { message_type: i.note ? "note" : "comment", type: "admin", admin_id: i.admin, body: i.text, attachment_urls: i.attachments },
      }),
    set_conversation_state: ({ conversations }, i) => {
      const conversation_id = i.conversation;
      if (i.state === "open") return conversations.manage({ conversation_id, body: { message_type: "open", admin_id: i.admin } });
      if (i.state === "snoozed") return conversations.manage({ conversation_id, body: { message_type: "snoozed", admin_id: i.admin, snoozed_until: seconds(i.until) } });
      return conversations.manage({ conversation_id, body: { message_type: "close", type: "admin", admin_id: i.admin, body: i.text } });
    },
    assign_conversation: ({ conversations }, i) =>
      conversations.manage({
        conversation_id: i.conversation,
        body: { message_type: "assignment", type: i.team ? "team" : "admin", admin_id: i.admin, assignee_id: i.team ?? i.assignee ?? "0" },
      }),
    tag_conversation: ({ tags }, i) => tags.tagConversation({ conversation_id: i.conversation, id: i.tag, admin_id: i.admin }),
    get_conversation: ({ conversations }, i) => conversations.find({ conversation_id: i.conversation, display_as: i.plain && "plaintext" }),
    search_conversations: ({ conversations }, i) => {
      const value = [
        { field: "created_at", operator: ">", value: seconds(i.since) ?? 0 },
        i.state && { field: "state", operator: "=", value: i.state },
        i.assignee && { field: "admin_assignee_id", operator: "=", value: i.assignee },
        i.team && { field: "team_assignee_id", operator: "=", value: i.team },
        i.contact && { field: "contact_ids", operator: "=", value: i.contact },
        i.changed_since && { field: "updated_at", operator: ">", value: seconds(i.changed_since) },
      ].filter(Boolean);
      const sort = { field: "updated_at", order: "descending" };
      return pages(i, (per_page) => conversations.search(searchFor({ operator: "AND", value }, { per_page }, sort)));
    },
    create_ticket: ({ tickets }, i) =>
      tickets.create({
        ticket_type_id: i.ticket_type,
        contacts: [i.contact.includes("@") ? { email: i.contact } : { id: i.contact }],
        company_id: i.company,
        .../** @type {any} */ ({ ticket_attributes: ticketAttributes(i) }), // its types lack them
        assignment: i.assignee && { admin_assignee_id: i.assignee, team_assignee_id: i.team },
        skip_notifications: i.quiet,
      }),
    update_ticket: ({ tickets }, i) =>
      tickets.update({
        ticket_id: i.ticket,
        ticket_state_id: i.state,
        open: i.open,
        ticket_attributes: ticketAttributes(i),
        assignee_id: i.assignee,
        admin_id: i.admin && Number(i.admin),
        is_shared: i.shared,
        snoozed_until: seconds(i.snoozed_until),
        .../** @type {any} */ ({ skip_notifications: i.quiet }), // its types lack it
      }),
    track_event: ({ events }, i) => {
      const event = { event_name: i.event, created_at: seconds(i.time) ?? 1794992400, metadata: i.metadata };
      if (i.user_is === "external_id") return events.create({ ...event, user_id: i.user });
      if (i.user_is === "id") return events.create({ ...event, id: i.user });
      return events.create({ ...event, email: i.user });
    },
    list_contact_choices: ({ contacts }, i) => {
      const value = ["name", "email"].map((field) => ({ field, operator: "~", value: i.search }));
      return pages(i, (per_page) => contacts.search(searchFor(i.search ? { operator: "OR", value } : all, { per_page })));
    },
    list_contact_fields: ({ dataAttributes }) => dataAttributes.list({ model: "contact" }),
    list_contact_attributes: ({ dataAttributes }) => dataAttributes.list({ model: "contact" }),
    list_company_attributes: ({ dataAttributes }) => dataAttributes.list({ model: "company" }),
    list_ticket_attributes: ({ ticketTypes }) => ticketTypes.list(),
    list_ticket_types: ({ ticketTypes }) => ticketTypes.list(),
    list_ticket_states: ({ ticketStates }) => ticketStates.listTicketStates(),
    list_admins: ({ admins }) => admins.list(),
    list_teams: ({ teams }) => teams.list(),
    list_assignees: async ({ admins, teams }) => {
      await admins.list();
      await teams.list();
    },
    list_tags: ({ tags }) => tags.list(),
    "triggers/new_contact": poll("contacts"),
    "triggers/new_conversation": poll("conversations"),
  },
};
